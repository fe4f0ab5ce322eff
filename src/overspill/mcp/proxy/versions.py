"""Adapt results between the handshake protocol and the stateless one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import mcp_types
from mcp.shared.exceptions import MCPError
from mcp_types.methods import CACHEABLE_METHODS

from overspill.mcp.client.connection import Handshake, Raw, as_mapping
from overspill.mcp.proxy.client_request import Ask

_MODERN_KEYS = ("resultType", "ttlMs", "cacheScope")
_MAX_INPUT_ROUNDS = 10


def adapt_result(result: Raw, method: str, *, modern: bool, handshake: Handshake | None = None) -> Raw:
    """The result in the client's protocol. Unchanged if the server speaks the same one."""
    if handshake is not None and handshake.is_modern == modern:
        return result
    if not modern:
        return {key: value for key, value in result.items() if key not in _MODERN_KEYS}
    stamps: Raw = {"resultType": "complete"}
    if method in CACHEABLE_METHODS and result.get("resultType", "complete") == "complete":
        stamps |= {"ttlMs": 0, "cacheScope": "private"}
    if handshake is not None:
        meta = {mcp_types.SERVER_INFO_META_KEY: handshake.info, **as_mapping(result.get("_meta"))}
        return {**stamps, **result, "_meta": meta}
    return {**stamps, **result}


def wants_input(result: Raw) -> bool:
    return result.get("resultType") == "input_required"


async def ask_for_input(
    result: Raw,
    params: Raw,
    *,
    ask: Ask,
    again: Callable[[Raw], Awaitable[Raw]],
) -> Raw:
    """Ask an older client for the input that a newer server wants, and repeat the call until there is a result."""
    for _ in range(_MAX_INPUT_ROUNDS):
        if not wants_input(result):
            return result
        responses = await _collect_answers(as_mapping(result.get("inputRequests")), ask)
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        result = await again({**params, **state, **({"inputResponses": responses} if responses else {})})
    if wants_input(result):
        raise MCPError(mcp_types.INTERNAL_ERROR, f"The server asked for input {_MAX_INPUT_ROUNDS} times without giving a result.")
    return result


async def _collect_answers(wanted: Raw, ask: Ask) -> Raw:
    """Ask all questions together. The first refusal ends the call."""
    answers: Raw = {}
    refusals: list[MCPError] = []

    async def one(key: str, request: Raw) -> None:
        try:
            answers[key] = await ask(str(request.get("method")), as_mapping(request.get("params")))
        except MCPError as refusal:  # raised below, because the group would wrap it
            refusals.append(refusal)
            group.cancel_scope.cancel()

    async with anyio.create_task_group() as group:
        for key, request in wanted.items():
            group.start_soon(one, key, as_mapping(request))
    if refusals:
        raise refusals[0]
    return answers
