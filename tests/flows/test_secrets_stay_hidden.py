"""With `redact: {shown: on}`, what a client of the proxy or a reader at the shell gets has marks in place of secrets."""

from __future__ import annotations

import json
import random
import re
import string
import sys
from pathlib import Path
from typing import Any

import pytest
from commands import bare_environment
from forked import run as run_forked
from upstream import up
from waiting import wait_until
from wire import Served, Wire, config, every

from overspill import Output, Session, Settings

SECRET = "".join(random.Random(5).choices(string.ascii_letters + string.digits, k=30))  # noqa: S311
MARK = re.compile(r"\[redacted:[a-z0-9-]+:[a-z2-7]{8}\]")


def say(wire: Wire, words: str) -> dict[str, Any]:
    return wire.call("say", {"result": {"content": [{"type": "text", "text": words}]}})


@pytest.mark.parametrize("place", ["off", "on"])
def test_a_servers_own_variables_are_hidden_from_the_proxys_client(tmp_path: Path, place: str) -> None:
    server = config(every("legacy"), env={"UPSTREAM_TOKEN": SECRET})
    with Served([server], tmp_path, settings={"redact": {"shown": place}}) as wire:
        wire.hello()
        small = say(wire, f"here is {SECRET} for you")
        large = say(wire, f"{'many words ' * 2000}{SECRET}{' and more' * 2000}")
        (link,) = [block for block in large["content"] if block["type"] == "resource_link"]
        read, uri = "", link["uri"]
        for _ in range(20):
            contents = wire.result("resources/read", {"uri": uri})["contents"]
            read += contents[0]["text"]
            if len(contents) == 1:
                break
            uri = contents[1]["uri"]
    assert (SECRET in json.dumps(small)) == (place == "off")
    assert (SECRET in read) == (place == "off")
    if place == "on":
        assert SECRET[:8] not in json.dumps((small, large)) + read
        assert MARK.findall(json.dumps(small))
        assert set(MARK.findall(read)) == set(MARK.findall(small["content"][0]["text"]))


def test_the_progress_of_a_slow_tool_is_read_with_marks(tmp_path: Path) -> None:
    server = config(every("legacy"), env={"UPSTREAM_TOKEN": "warming up"})
    with Served([server], tmp_path, settings={"redact": {"shown": "on"}, "asyncTimeoutSecs": 0.3, "waitMaxSecs": 0.3}) as wire:
        wire.hello()
        wire.stay()
        wire.call("wait", {"until": "never"}, _meta={"progressToken": "p"})
        wait_until(lambda: MARK.sub("M", wire.text("wait_for_tool_output")), lambda told: "1 of 4: M" in told)


@pytest.mark.anyio
async def test_the_progress_of_a_slow_tool_without_the_proxy_is_read_with_marks() -> None:
    settings = Settings(redact={"shown": "on"}, asyncTimeoutSecs=0.3, waitMaxSecs=0.3)
    async with up(config(every("legacy"))) as server, Session(settings, secrets={"UPSTREAM_TOKEN": "warming up"}) as session:

        async def wait(**args: str) -> Output:
            return await server.call_tool("wait", args)

        await session.call("wait", {"until": "never"}, wait, background=True)
        while "1 of 4: M" not in MARK.sub("M", (await session.invoke("wait_for_tool_output", {})).text):
            pass


def test_what_a_command_prints_is_kept_and_read_with_marks(tmp_path: Path) -> None:
    folder = tmp_path / ".config" / "overspill"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"storeDir: {tmp_path / 'store'}\nredact: {{shown: on}}\n")
    environ = {**bare_environment(tmp_path), "DEPLOY_TOKEN": SECRET}

    def run(*args: str) -> str:
        done = run_forked(args, env=environ, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    printing = "import os; print('token', os.environ['DEPLOY_TOKEN'])"
    assert MARK.sub("M", run("keep", "--", sys.executable, "-c", printing)) == "token M\n\n"
    many = f"{printing}; [print('line', n) for n in range(4000)]; {printing}"
    kept = run("keep", "--", sys.executable, "-c", many)
    name = re.findall(r"out_[0-9a-z]{6,}", kept)[0]
    shown = kept + run("get", name, "--lines", "1-2") + run("get", name, "--grep", "token") + run("get", name, "--ask", "token")
    (tmp_path / "own.log").write_text(f"they said {SECRET} yesterday\n")
    shown += run("extract", "what they said", "own.log")
    assert SECRET[:8] not in shown
    assert len(MARK.findall(shown)) >= 6
    assert SECRET in run("artifacts", "show", name)


ASKING_SERVER = """
import json, os, sys

token = os.environ["UPSTREAM_TOKEN"]
schema = {"type": "object", "properties": {"key": {"type": "string", "default": token}}}
known = {"tools": {}, "resources": {}, "prompts": {}}
info = {"name": "asking", "version": "1"}
answers = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": known, "serverInfo": info, "instructions": f"use {token}"},
    "tools/list": {"tools": [{"name": "ask", "description": "asks", "inputSchema": schema}]},
    "resources/list": {"resources": [{"uri": f"db://app:{token}@host/orders", "name": "orders"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": f"db://app:{token}@host/{{x}}", "name": "x"}]},
    "prompts/list": {"prompts": [{"name": "p", "description": f"with {token}"}]},
    "tools/call": {"content": [{"type": "text", "text": "asked"}]},
}
said = {"role": "user", "content": {"type": "text", "text": f"what is {token}"}}


def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


for message in map(json.loads, sys.stdin):
    method, id = message.get("method"), message.get("id")
    if method == "tools/call":
        send({"id": "s1", "method": "sampling/createMessage", "params": {"messages": [said], "maxTokens": 5}})
        assert json.loads(sys.stdin.readline())["id"] == "s1"
    if method == "resources/read":
        send({"id": id, "error": {"code": -32000, "message": f"{token} is wrong", "data": [token]}})
    elif method is not None and id is not None:
        send({"id": id, "result": answers.get(method, {})})
"""
LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")


@pytest.mark.parametrize("settings", [{"redact": {"shown": "on"}}, {"servers": {"every": {"redactShown": "on"}}}])
@pytest.mark.parametrize("others", [0, 1], ids=["one server", "two servers"])
def test_lists_instructions_errors_and_sampling_are_read_with_marks(
    tmp_path: Path, settings: dict[str, object], others: int
) -> None:
    file = tmp_path / "asking.py"
    file.write_text(ASKING_SERVER)
    servers = [config([sys.executable, str(file)], env={"UPSTREAM_TOKEN": SECRET}), *[config(every(), "other")] * others]
    with Served(servers, tmp_path, settings=settings) as wire:
        answer = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "no"}}
        wire.asked["sampling/createMessage"] = {"result": answer}
        read = [wire.hello(), *map(wire.result, LISTS), wire.request("resources/read", {"uri": "db://x"})]
        assert wire.text("every__ask" if others else "ask") == "asked"
    assert [len(MARK.findall(json.dumps(each))) > 0 for each in read] == [True] * 6
    (asked,) = [each for each in wire.received if each.get("method") == "sampling/createMessage"]
    assert MARK.search(json.dumps(asked))
    assert SECRET[:8] not in json.dumps((read, wire.received))
