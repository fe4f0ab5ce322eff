"""The official reference servers, by the official client: directly and through `overspill proxy`, which must agree."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import mcp_types
import pytest
from both import both
from large import LARGE
from official import Node

pytestmark = pytest.mark.slow

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==")
EITHER_PROTOCOL = pytest.mark.parametrize("mode", ["auto", "legacy"])


async def elicited(_: Any, asked: Any) -> mcp_types.ElicitResult:
    return mcp_types.ElicitResult(action="accept", content={"name": "Ada", "check": True})


async def sampled(_: Any, asked: Any) -> mcp_types.CreateMessageResult:
    words = mcp_types.TextContent(type="text", text=f"{len(asked.messages)} message, {asked.max_tokens} tokens")
    return mcp_types.CreateMessageResult(role="assistant", content=words, model="test/model", stop_reason="endTurn")


async def roots(_: Any) -> mcp_types.ListRootsResult:
    return mcp_types.ListRootsResult(roots=[mcp_types.Root(uri="file:///somewhere", name="Somewhere")])


ABLE = {"elicitation_callback": elicited, "sampling_callback": sampled, "list_roots_callback": roots}


def listening(heard: list[Any]) -> Callable[..., Any]:
    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    return hear


@EITHER_PROTOCOL
async def test_everything_answers_as_it_does_directly(node: Node, mode: Any, tmp_path: Path) -> None:
    async with both(node.everything(), tmp_path, mode=mode) as pair:
        await pair.same_lists()
        await pair.same_call("echo", message="Grüße")
        await pair.same_call("get-sum", a=2, b=3)
        await pair.same_call("get-sum", a="two")
        await pair.same_call("get-tiny-image")
        await pair.same_call("get-annotated-message", messageType="error", includeImage=True)
        await pair.same_call("get-resource-links", count=4)
        structured = await pair.same_call("get-structured-content", location="Chicago")
        assert structured["structuredContent"]
        await pair.same_call("no-such-tool")
        await pair.same(lambda client: client.get_prompt("args-prompt", {"city": "Köln"}))
        await pair.same(lambda client: client.get_prompt("no-such-prompt"))
        await pair.same(lambda client: client.read_resource("demo://resource/static/document/features.md"))
        await pair.same(lambda client: client.read_resource("demo://resource/none"))
        reference = mcp_types.PromptReference(type="ref/prompt", name="completable-prompt")
        await pair.same(lambda client: client.complete(reference, {"name": "department", "value": "E"}))
        heard: dict[int, list[Any]] = {}
        arguments = {"duration": 0.8, "steps": 4}
        await pair.same(
            lambda client: client.call_tool(
                "trigger-long-running-operation", arguments, progress_callback=listening(heard.setdefault(id(client), []))
            )
        )
        assert heard[id(pair.through)] == heard[id(pair.direct)]
        assert [progress for progress, _, _ in heard[id(pair.through)]] == [1, 2, 3, 4]
        assert await pair.kept("echo", message=LARGE) == f"Echo: {LARGE}"


@EITHER_PROTOCOL
async def test_everything_asks_the_client_through_the_proxy_too(node: Node, mode: Any, tmp_path: Path) -> None:
    async with both(node.everything(), tmp_path, mode=mode, **ABLE) as pair:
        await pair.same_lists()
        answer = await pair.same_call("trigger-elicitation-request")
        assert "Ada" in answer["content"][1]["text"]
        answer = await pair.same_call("trigger-sampling-request", prompt="Say something", maxTokens=12)
        assert "1 message, 12 tokens" in answer["content"][0]["text"]
        answer = await pair.same_call("get-roots-list")
        assert "file:///somewhere" in answer["content"][0]["text"]


async def test_filesystem_answers_as_it_does_directly(node: Node, tmp_path: Path) -> None:
    folder = (tmp_path / "files").resolve()
    (folder / "inner").mkdir(parents=True)
    small, image, large = folder / "small.txt", folder / "image.png", folder / "large.txt"
    small.write_text("one\ntwo\nthree\n")
    image.write_bytes(PNG)
    large.write_text(LARGE)
    async with both(node.filesystem(folder), tmp_path) as pair:
        await pair.same_lists()
        await pair.same_call("list_allowed_directories")
        await pair.same_call("list_directory", path=str(folder))
        await pair.same_call("directory_tree", path=str(folder))
        await pair.same_call("search_files", path=str(folder), pattern="*.txt")
        await pair.same_call("read_text_file", path=str(small))
        await pair.same_call("read_text_file", path=str(large), head=3)
        await pair.same_call("read_multiple_files", paths=[str(small), str(folder / "none")])
        await pair.same_call("read_media_file", path=str(image))
        await pair.same_call("write_file", path=str(folder / "new.txt"), content="new\n")
        outside = await pair.same_call("read_text_file", path=str(tmp_path / "outside.txt"))
        assert outside["isError"] is True
        await pair.same_call("read_text_file")
        assert await pair.kept("read_text_file", path=str(large)) == LARGE


@pytest.mark.parametrize(
    ("home", "mode"), [("mcp-2.3", "auto"), ("mcp-2.3", "legacy"), ("mcp-1.30", "auto"), ("mcp-1.1", "legacy")]
)
async def test_git_answers_as_it_does_directly(
    python: Callable[[str], Path], repository: Path, home: str, mode: Any, tmp_path: Path
) -> None:
    where = {"repo_path": str(repository)}
    async with both([str(python(home) / "mcp-server-git")], tmp_path, mode=mode) as pair:
        await pair.same_lists()
        await pair.same_call("git_status", **where)
        log = await pair.same_call("git_log", **where)
        assert "Begin" in str(log)
        await pair.same_call("git_create_branch", **where, branch_name="bad name")
        await pair.same_call("git_no_such")
        diff = await pair.kept("git_diff_unstaged", **where)
        assert "+05999 größer 漢字 🙂" in diff


async def test_time_answers_as_it_does_directly(python: Callable[[str], Path], tmp_path: Path) -> None:
    zones = {"source_timezone": "Asia/Tokyo", "target_timezone": "America/Lima"}
    async with both([str(python("mcp-1.30") / "mcp-server-time")], tmp_path) as pair:
        await pair.same_lists()
        await pair.same_call("convert_time", **zones, time="12:30")
        await pair.same_call("convert_time", **zones, time="later")
        await pair.same_call("get_current_time", timezone="Nowhere/None")


async def test_a_server_that_dies_of_the_newest_handshake_still_works_through_the_proxy(
    python: Callable[[str], Path], tmp_path: Path
) -> None:
    """Directly, the official client has to be told to speak the older one."""
    zones = {"source_timezone": "Asia/Tokyo", "target_timezone": "America/Lima"}
    async with both([str(python("mcp-1.1") / "mcp-server-time")], tmp_path, mode="auto", directly="legacy") as pair:
        assert (pair.direct.protocol_version, pair.through.protocol_version) == ("2024-11-05", "2026-07-28")
        assert [tool.name for tool in (await pair.through.list_tools()).tools][:2] == ["get_current_time", "convert_time"]
        await pair.same_call("convert_time", **zones, time="12:30")
        await pair.same_call("convert_time", **zones, time="later")


class Page(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = (LARGE if self.path == "/large.txt" else "A small page.\n").encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(("home", "flags"), [("mcp-2.3", ["--allow-private-ips"]), ("mcp-1.30", [])])
async def test_fetch_answers_as_it_does_directly(
    python: Callable[[str], Path], site: str, home: str, flags: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    server = [str(python(home) / "mcp-server-fetch"), "--ignore-robots-txt", *flags]
    async with both(server, tmp_path) as pair:
        await pair.same_lists()
        page = await pair.same_call("fetch", url=f"{site}/small", raw=True)
        assert "A small page." in str(page)
        await pair.same_call("fetch", url=f"{site}/large.txt", raw=True, max_length=300)
        await pair.same_call("fetch", url="not an address")
        await pair.same(lambda client: client.get_prompt("fetch", {"url": f"{site}/small"}))
        assert LARGE in await pair.kept("fetch", url=f"{site}/large.txt", raw=True, max_length=900_000)
