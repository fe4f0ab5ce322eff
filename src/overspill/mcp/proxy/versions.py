"""The differences between the handshake protocol and the stateless one: how a session starts, and what a result has.

Also MCP tasks, whose results must not bypass the gate: those of 2025-11-25 pass only if both sides speak that version.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import anyio
import mcp_types
from mcp.shared.exceptions import MCPError
from mcp_types.methods import CACHEABLE_METHODS
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION, MODERN_PROTOCOL_VERSIONS

from overspill.errors import ServerError
from overspill.mcp.client.connection import ClientIdentity, Handshake, Raw, as_mapping
from overspill.mcp.client.handshake import TASKS, merge_freshness
from overspill.text.humanize import one_line
from overspill.wording import framing

Handshakes: TypeAlias = Mapping[str, Handshake | ServerError]
Ask: TypeAlias = Callable[[str, Raw], Awaitable[Raw]]
_ALL = {"tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"listChanged": True}}
_MAX_INPUT_ROUNDS = 10
ROUTED_IN = "2025-11-25"  # the only version in which clients ask for tasks


def initialize_result(params: Mapping[str, Any], handshakes: Handshakes) -> Raw:
    """Answer a client's handshake as the server behind the proxy would, plus what the proxy adds."""
    requested = params.get("protocolVersion")
    version = requested if requested in HANDSHAKE_PROTOCOL_VERSIONS else LATEST_HANDSHAKE_VERSION
    up = [each for each in handshakes.values() if isinstance(each, Handshake)]
    able = [as_mapping(each.capabilities["tasks"]) for each in up if offers_tasks(each)]
    more: Raw = {name: {} for name in ("list", "cancel") if all(name in each for each in able)}
    tasks: Raw = {"tasks": {**more, "requests": {"tools": {"call": {}}}}} if able and version == ROUTED_IN else {}
    return {
        "protocolVersion": version,
        "capabilities": {**_merge_capabilities(handshakes), **tasks},
        "serverInfo": _info(handshakes),
        **_instructions(handshakes),
    }


def discover_result(handshakes: Handshakes) -> Raw:
    """Answer `server/discover` in the same way. In the stateless protocol, slow calls can be tasks."""
    able = _merge_capabilities(handshakes)
    left = merge_freshness(each.left if isinstance(each, Handshake) else {} for each in handshakes.values())
    return {
        "resultType": "complete",
        "supportedVersions": list(MODERN_PROTOCOL_VERSIONS),
        "capabilities": {**able, "extensions": {**as_mapping(able.get("extensions")), TASKS: {}}},
        **(left or {"ttlMs": 0, "cacheScope": "private"}),
        **_instructions(handshakes),
        "_meta": {mcp_types.SERVER_INFO_META_KEY: _info(handshakes)},
    }


def _info(handshakes: Handshakes) -> Raw:
    """Return the server's own info, or the proxy's info if there are several servers or none is up."""
    first = next(iter(handshakes.values()), None)
    return first.info if len(handshakes) == 1 and isinstance(first, Handshake) else ClientIdentity().info


def _instructions(handshakes: Handshakes) -> Raw:
    """Return one server's instructions unchanged, or several in named blocks that they cannot close. Says why one is missing."""
    parts: list[str] = []
    for name, handshake in handshakes.items():
        if isinstance(handshake, ServerError):
            parts.append(f"The server {one_line(name)} is not available yet: {handshake}")
        elif (text := handshake.instructions) is not None:
            parts.append(text if len(handshakes) == 1 else framing.block(f"instructions of the server {one_line(name)}", text))
    return {"instructions": "\n\n".join(parts)} if parts else {}


def _merge_capabilities(handshakes: Handshakes) -> Raw:
    """Combine what all servers can do, except tasks, and add changing tools and resources. An absent server may do anything."""
    merged: Raw = {}
    for handshake in handshakes.values():
        theirs = _ALL if isinstance(handshake, ServerError) else drop_tasks(handshake.capabilities)
        for name, value in theirs.items():
            known = merged.get(name)
            merged[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
    merged["tools"] = {**as_mapping(merged.get("tools")), "listChanged": True}
    merged["resources"] = as_mapping(merged.get("resources"))
    return merged


def adapt_result(result: Raw, method: str, *, modern: bool, handshake: Handshake | None = None) -> Raw:
    """Return the result in the client's protocol. Unchanged if the server speaks the same protocol."""
    if handshake is not None and handshake.is_modern == modern:
        return result
    if not modern:
        return {key: value for key, value in result.items() if key not in ("resultType", "ttlMs", "cacheScope")}
    stamps: Raw = {"resultType": "complete"}
    if method in CACHEABLE_METHODS and result.get("resultType", "complete") == "complete":
        stamps |= {"ttlMs": 0, "cacheScope": "private"}
    if handshake is not None:
        meta = {mcp_types.SERVER_INFO_META_KEY: handshake.info, **as_mapping(result.get("_meta"))}
        return {**stamps, **result, "_meta": meta}
    return {**stamps, **result}


def wants_input(result: Raw) -> bool:
    return result.get("resultType") == "input_required"


async def ask_for_input(result: Raw, params: Raw, *, ask: Ask, again: Callable[[Raw], Awaitable[Raw]]) -> Raw:
    """Ask an older client for the input that a newer server wants, and repeat the call until there is a result."""
    for _ in range(_MAX_INPUT_ROUNDS):
        responses = await collect_answers(as_mapping(result.get("inputRequests")), ask)
        state = {"requestState": result["requestState"]} if "requestState" in result else {}
        result = await again({**params, **state, **({"inputResponses": responses} if responses else {})})
        if not wants_input(result):
            return result
    raise MCPError(mcp_types.INTERNAL_ERROR, f"The server asked for input {_MAX_INPUT_ROUNDS} times without giving a result.")


async def collect_answers(wanted: Raw, ask: Ask) -> Raw:
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


def drop_tasks(capabilities: Raw) -> Raw:
    """Return capabilities without tasks, which are a capability of the older protocol and an extension of the newer one."""
    rest = {name: value for name, value in capabilities.items() if name != "tasks"}
    for kind in ("extensions", "experimental"):  # some SDKs have had tasks among the experimental ones
        if known := as_mapping(rest.get(kind)):
            rest[kind] = {name: value for name, value in known.items() if name not in ("tasks", TASKS)}
    return rest


def drop_from_request(method: str, params: Raw) -> Raw:
    """Return a client's request without its declaration of tasks as a capability."""
    if method == "initialize":
        return {**params, "capabilities": drop_tasks(as_mapping(params.get("capabilities")))}
    meta, key = as_mapping(params.get("_meta")), mcp_types.CLIENT_CAPABILITIES_META_KEY
    return {**params, "_meta": {**meta, key: drop_tasks(as_mapping(meta[key]))}} if key in meta else params


def drop_task_support(tool: Raw) -> Raw:
    """Return the tool without `taskSupport`. The call of a tool that does not declare it cannot become a task."""
    if (execution := as_mapping(tool.get("execution"))).get("taskSupport", "forbidden") == "forbidden":
        return tool
    rest = {name: value for name, value in execution.items() if name != "taskSupport"}
    return {**{name: value for name, value in tool.items() if name != "execution"}, **({"execution": rest} if rest else {})}


def offers_tasks(handshake: Handshake) -> bool:
    """Whether a server makes a task of a tool call when the client asks for it."""
    requests = as_mapping(as_mapping(handshake.capabilities.get("tasks")).get("requests"))
    return handshake.version == ROUTED_IN and "call" in as_mapping(requests.get("tools"))


def require_tasks(possible: object) -> None:
    """Raise MCPError unless a task is possible. Its code says that this tool cannot be a task."""
    if not possible:
        raise MCPError(mcp_types.METHOD_NOT_FOUND, "There are no such tasks here. Call the tool without a task.")
