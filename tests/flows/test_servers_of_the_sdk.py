"""Servers made with the SDK, over pipes and HTTP, in both versions of the protocol: the same calls have the same answers."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from upstream import connected, script, up, web, words
from waiting import until

from overspill.errors import ServerError
from overspill.mcp.client.connection import ClientIdentity
from overspill.mcp.client.server import Server

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@asynccontextmanager
async def served(way: str, modern: bool) -> AsyncIterator[Server]:
    async with AsyncExitStack() as stack:
        how = [] if way == "pipes" else [stack.enter_context(web("high", *way.split()[1:]))]
        config = how[0].config(name="high") if how else script("high")
        yield await stack.enter_async_context(up(config, client=ClientIdentity(is_modern=modern)))


@pytest.mark.parametrize("modern", [False, True], ids=["handshake", "stateless"])
@pytest.mark.parametrize("way", ["pipes", "http", pytest.param("http json", marks=pytest.mark.slow)])
async def test_calls_progress_and_large_results_come_through(way: str, modern: bool, tmp_path: Path):
    async with served(way, modern) as server:
        assert (await server.wait_until_connected()).handshake.is_modern == modern
        assert (await server.wait_until_connected()).handshake.info["name"] == "high"
        assert [tool["name"] for tool in await server.list_tools()] == ["echo", "large", "steps", "hang", "headers", "die"]
        assert (await server.call_tool("echo", {"words": "hi"})).content == [{"type": "text", "text": "hi"}]
        assert len(words(await server.call_tool("large", {"size": 3_000_000}))) == 3_000_000
        if way != "http json":  # which has no room for them
            steps: list[float] = []

            async def progress(params: dict[str, Any]) -> None:
                steps.append(params["progress"])

            await server.request("tools/call", {"name": "steps", "arguments": {"count": 3}}, progress=progress)
            assert steps == [0, 1, 2]
        if way == "http json" and modern:
            return  # such a server does not notice that nobody waits
        file = tmp_path / "hanging"
        async with anyio.create_task_group() as group:
            group.start_soon(server.call_tool, "hang", {"path": str(file)})
            await until(file.exists)
            group.cancel_scope.cancel()
        await until(lambda: file.read_text() == "cancelled")
        assert server.starts == 1


async def test_a_server_of_the_low_level_is_read_in_pages():
    async with up(script("low")) as server:
        described = {"description": "Of the low level.", "inputSchema": {"type": "object"}}
        assert await server.list_tools() == [{"name": name, **described} for name in ("first", "second")]
        result = await server.call_tool("second", {})
        assert (result.content, result.is_error) == ([{"type": "text", "text": "second"}], True)


@pytest.mark.parametrize(
    ("modern", "words_"),
    [
        (False, "The server web closed the stream before its answer was complete: SSE stream ended without a response."),
        pytest.param(True, "The connection to the server web broke before it answered.", marks=pytest.mark.slow),
    ],
    ids=["handshake", "stateless"],
)
async def test_a_server_over_http_that_restarts_is_found_again(modern: bool, words_: str, tmp_path: Path):
    with web("high") as upstream:
        async with up(upstream.config(), client=ClientIdentity(is_modern=modern)) as server:
            await server.call_tool("echo", {"words": "before"})
            failures: list[str] = []
            file = tmp_path / "hanging"

            async def hang() -> None:
                with pytest.raises(ServerError) as caught:
                    await server.call_tool("hang", {"path": str(file)})
                failures.append(str(caught.value))

            async with anyio.create_task_group() as group:
                group.start_soon(hang)
                await until(file.exists)
                upstream.kill()
            assert failures == [words_]
            upstream.start()
            assert words(await server.call_tool("echo", {"words": "after"})) == "after"


@pytest.mark.slow
async def test_a_restart_is_noticed_without_a_call():
    with web("high") as upstream:
        async with connected(upstream.config()) as link:
            await link.request("tools/list")
            upstream.kill()
            upstream.start()
            with anyio.fail_after(30):
                await link.ended.wait()
            assert link.transport.problem in (
                "The server web no longer knows this session. It may have restarted.",
                "The server web cannot be reached: All connection attempts failed.",
            )
