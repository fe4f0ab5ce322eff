"""Clients that open a session for each call and close it after the answer: LangChain's adapter and the MCP inspector."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest
from running import TOKEN, Overspill, plain_environ, running
from waiting import until

pytestmark = pytest.mark.slow

SERVER = [sys.executable, str(Path(__file__).parents[1] / "every_server.py")]
CLIENT = Path(__file__).parent / "clients" / "langchain_client.py"
SOON = ("--set", "asyncTimeoutSecs=0.01", "--set", "waitMaxSecs=10", "--tools", "always")
OUTPUT = "everything that it found"


class LangChain:
    def __init__(self, python: Path, place: Path) -> None:
        self._start = [str(python / "python"), str(CLIENT)]
        self.environ = {**plain_environ(), "HOME": str(place)}

    def over_stdio(self, command: Sequence[str], environ: Mapping[str, str], name: str, args: Mapping[str, Any]) -> list[str]:
        connection = {"transport": "stdio", "command": command[0], "args": command[1:], "env": environ}
        return [*self._start, json.dumps(connection), name, json.dumps(args)]

    def over_http(self, url: str, name: str, args: Mapping[str, Any]) -> list[str]:
        connection = {"transport": "streamable_http", "url": url, "headers": {"Authorization": f"Bearer {TOKEN}"}}
        return [*self._start, json.dumps(connection), name, json.dumps(args)]

    def read(self, output: str) -> str:
        return output


class Inspector:
    def __init__(self, command: list[str], place: Path) -> None:
        self._start = command
        self._file = place / "mcp.json"
        self.environ = {**plain_environ(), "HOME": str(place)}

    def over_stdio(self, command: Sequence[str], environ: Mapping[str, str], name: str, args: Mapping[str, Any]) -> list[str]:
        server = {"command": command[0], "args": command[1:], "env": environ}
        self._file.write_text(json.dumps({"mcpServers": {"slow": server}}))
        return [*self._start, "--config", str(self._file), "--server", "slow", *self._call(name, args)]

    def over_http(self, url: str, name: str, args: Mapping[str, Any]) -> list[str]:
        return [*self._start, url, "--transport", "http", "--header", f"Authorization: Bearer {TOKEN}", *self._call(name, args)]

    def _call(self, name: str, args: Mapping[str, Any]) -> list[str]:
        given = [option for key, value in args.items() for option in ("--tool-arg", f"{key}={value}")]
        return ["--method", "tools/call", "--tool-name", name, *given]

    def read(self, output: str) -> str:
        return json.loads(output)["content"][0]["text"]


Client = LangChain | Inspector


@pytest.fixture(params=["langchain", "inspector"])
def client(request: pytest.FixtureRequest, tmp_path: Path) -> Client:
    if request.param == "inspector":
        return Inspector(request.getfixturevalue("inspector"), tmp_path)
    python: Callable[[str], Path] = request.getfixturevalue("python")
    return LangChain(python("langchain"), tmp_path)


async def answer(client: Client, command: Sequence[str]) -> str:
    with anyio.fail_after(120):
        done = await anyio.run_process(command, env=client.environ, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return client.read(done.stdout.decode())


async def test_a_slow_call_over_stdio_gets_the_whole_output(client: Client, tmp_path: Path) -> None:
    go, begun = tmp_path / "go", tmp_path / "begun"
    overspill = Overspill(tmp_path)
    command = overspill.proxy("--", *SERVER, before=SOON)
    arguments = {"file": str(go), "begun": str(begun), "then": OUTPUT}
    answers: list[str] = []

    async def call() -> None:
        answers.append(await answer(client, client.over_stdio(command, overspill.environ, "wait", arguments)))

    async with anyio.create_task_group() as group:
        group.start_soon(call)
        await until(begun.exists, within=120)
        go.touch()
    assert answers == [OUTPUT]


async def test_a_slow_call_over_http_is_finished_and_read_by_the_next_sessions(client: Client, tmp_path: Path) -> None:
    go = tmp_path / "go"
    overspill = Overspill(tmp_path)
    proxy = overspill.proxy("--http", "127.0.0.1:0", "--", *SERVER, before=SOON)
    async with running(proxy, r"http://\S+", overspill.environ) as url:

        async def call(name: str, **arguments: str) -> str:
            return await answer(client, client.over_http(url, name, arguments))

        started = await call("wait", file=str(go), then=OUTPUT)
        (id, *_) = re.findall(r"art_\w+", started)
        assert started.startswith(f"Tool Output ID: {id}\n")
        go.touch()
        while (told := await call("get_tool_output", id=id, mode="wait")) != OUTPUT:
            assert id in told
