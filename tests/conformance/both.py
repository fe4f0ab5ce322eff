"""One official client connected to a server, and another to the proxy in front of the same server."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import mcp_types
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import MCPError
from running import Overspill, plain_environ

from overspill.retrieval.definitions import TOOLS

_LONGEST = 90  # seconds
_HANDLE = re.compile(r"session-[0-9a-f-]{36}/[0-9a-f-]{36}|\bout_[0-9a-z]{6,12}\b")
_STAMPS = ("resultType", "ttlMs", "cacheScope")
_SLICE = 3000  # characters, which are within an answer's bound whatever they are


class Both(NamedTuple):
    direct: Client
    through: Client

    async def same(self, ask: Callable[[Client], Awaitable[Any]]) -> Any:
        """What both got."""
        with anyio.fail_after(_LONGEST):
            direct, through = await _outcome(ask, self.direct), await _outcome(ask, self.through)
        assert through == direct
        return direct

    async def same_call(self, name: str, **arguments: Any) -> Any:
        """A result that is small enough to pass."""
        return await self.same(lambda client: client.call_tool(name, arguments))

    async def same_lists(self) -> None:
        """All there is to list. A promise about structured results is widened, so that a handle keeps it too. A tool can be a
        task only where client and server both speak 2025-11-25."""
        direct, through = await _tools(self.direct), await _tools(self.through)
        spoken = {self.direct.protocol_version, self.through.protocol_version}
        if spoken != {"2025-11-25"} or not self.direct.server_capabilities.tasks:
            direct = [_without_task(tool) for tool in direct]
        assert [{**tool, "outputSchema": None} for tool in through] == [{**tool, "outputSchema": None} for tool in direct]
        assert [bool(tool["outputSchema"]) for tool in through] == [bool(tool["outputSchema"]) for tool in direct]
        has = self.direct.server_capabilities
        if has.prompts:
            await self.same(lambda client: client.list_prompts())
        if has.resources:
            await self.same(lambda client: client.list_resources())
            await self.same(lambda client: client.list_resource_templates())
        assert self.through.server_info == self.direct.server_info
        assert self.through.instructions == self.direct.instructions

    async def kept(self, name: str, **arguments: Any) -> str:
        """The text of a large result: directly as it is, through the proxy read back in slices behind a handle."""
        with anyio.fail_after(_LONGEST):
            direct = _text(await self.direct.call_tool(name, arguments))
            told = await self.through.call_tool(name, arguments)
            found = _HANDLE.search(_text(told))
            assert found is not None, told
            assert len(_text(told)) < 12_288 < len(direct)
            starts = range(0, len(direct), _SLICE)
            assert "".join([await self._slice(found.group(), start) for start in starts]) == direct
            assert len(await self._slice(found.group(), len(direct) - 5)) == 5
        return direct

    async def _slice(self, handle: str, start: int) -> str:
        asked = {"id": handle, "mode": "slice", "slice": {"start": start, "length": _SLICE}}
        result = await self.through.call_tool("get_tool_output", asked)
        assert not result.is_error, result
        return _text(result)


def _without_task(tool: dict[str, Any]) -> dict[str, Any]:
    offers = (tool.get("execution") or {}).get("taskSupport") in ("optional", "required")
    return {**tool, "execution": None} if offers else tool


@asynccontextmanager
async def both(server: Sequence[str], place: Path, *, directly: str = "", **options: Any) -> AsyncGenerator[Both]:
    """`options` are the official client's; `directly` is the mode of the one that has to do without the proxy."""
    overspill = Overspill(place)
    with (place / "stderr").open("w") as log:

        def client(command: Sequence[str], environ: dict[str, str], **more: Any) -> Client:
            started = StdioServerParameters(command=command[0], args=list(command[1:]), env=environ)
            return Client(stdio_client(started, log), **{**options, **more})

        direct = client(server, plain_environ(), **({"mode": directly} if directly else {}))
        through = client(overspill.proxy("--", *server), overspill.environ)
        async with direct, through:
            yield Both(direct, through)


async def _tools(client: Client) -> list[Any]:
    return [tool.model_dump(by_alias=True, mode="json") for tool in (await client.list_tools()).tools if tool.name not in TOOLS]


async def _outcome(ask: Callable[[Client], Awaitable[Any]], client: Client) -> Any:
    """Results and refusals alike, without what only says in which protocol they were sent."""
    try:
        result = (await ask(client)).model_dump(by_alias=True, mode="json", exclude_none=True)
    except MCPError as refusal:
        return refusal.error.model_dump()
    meta = {key: value for key, value in result.pop("_meta", {}).items() if key != mcp_types.SERVER_INFO_META_KEY}
    return {key: value for key, value in result.items() if key not in _STAMPS} | ({"_meta": meta} if meta else {})


def _text(result: mcp_types.CallToolResult) -> str:
    return "".join(block.text for block in result.content if isinstance(block, mcp_types.TextContent))
