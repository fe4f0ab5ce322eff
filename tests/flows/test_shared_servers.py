"""One server for several conversations: each gets what belongs to it, and nothing of another."""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import weakref
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from http_proxy import ANN, BOB, SERVER, Listening
from hubs import ENVIRON, HubFront, HubHome, hub_home
from upstream import is_alive
from waiting import wait_until
from wire import OVERSPILL, config, every

from overspill.errors import SettingsError
from overspill.mcp.client.config import server_configs
from overspill.mcp.client.handshake import ClientIdentity
from overspill.mcp.client.peer import Peer, ServerAccess
from overspill.mcp.client.shared_servers import SharedServers
from overspill.mcp.host_configs.entries import edit_entry, find_refusal, recognize, unwrap_entry, wrap_entry
from overspill.text import jsonc

NOTES = "file:///notes.txt"
ONE_AT_A_TIME = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "serverInfo": {"name": "e", "version": "1"}}
    result |= {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    if message["method"] == "tools/list":
        result["tools"] = [{"name": name, "inputSchema": {"type": "object"}} for name in ("pid", "block")]
    if message["method"] == "tools/call":
        if message["params"]["name"] == "block":
            open(message["params"]["arguments"]["until"]).close()
        result["content"] = [{"type": "text", "text": str(os.getpid())}]
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
"""A server that reads nothing while it works on a call. Its tool `block` waits until another process opens a pipe."""
ASKS = {"requests": [{"method": "roots/list", "params": {}}]}


@pytest.fixture
def home() -> Iterator[HubHome]:
    with hub_home() as found:
        yield found


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as found:
        yield found


def join(home: HubHome, opened: ExitStack, *options: str, era: str = "modern", **env: str) -> HubFront:
    """Open a conversation with a server that is shared in its era."""
    share = ["--share"] if era == "legacy" else []
    front = opened.enter_context(home.front(*share, *options, server=every(era), modern=era == "modern", **env))
    front.hello()
    return front


def pid(front: HubFront) -> int:
    return int(front.text("pid"))


def pair(home: HubHome, opened: ExitStack, era: str = "modern") -> tuple[HubFront, HubFront]:
    one, other = join(home, opened, era=era), join(home, opened, era=era)
    assert pid(one) == pid(other)
    return one, other


def heard(front: HubFront, method: str) -> list[dict[str, Any]]:
    return [each for each in front.received if each.get("method") == method]


both_eras = pytest.mark.parametrize("era", ["modern", "legacy"])


@both_eras
def test_conversations_share_a_server_until_the_last_one_leaves(era: str, home: HubHome, opened: ExitStack):
    one, other = pair(home, opened, era)
    shared = pid(one)
    one.end()
    assert pid(other) == shared
    third = join(home, opened, era=era)
    assert pid(third) == shared
    other.end()
    third.end()
    wait_until(lambda: not is_alive(shared))


def test_a_server_with_sessions_is_not_shared_unless_its_entry_says_so(home: HubHome, tmp_path: Path, opened: ExitStack):
    command, *args = every()
    entry = {"command": command, "args": args}
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps({"mcpServers": {"shared": {**entry, "share": True}, "own": entry}}))
    fronts = [HubFront([*OVERSPILL, "proxy", "--config", str(file)], home.env) for _ in range(2)]
    for front in fronts:
        opened.enter_context(front).hello()
    assert len({front.text("shared__pid") for front in fronts}) == 1
    assert len({front.text("own__pid") for front in fronts}) == 2


def test_conversations_that_start_together_share_too(home: HubHome, opened: ExitStack):
    fronts = [opened.enter_context(home.front(server=every("modern"), modern=True)) for _ in range(4)]
    calls = [front.begin("tools/call", {"name": "pid", "arguments": {}}) for front in fronts]
    pids = {front.answer(call)["result"]["content"][0]["text"] for front, call in zip(fronts, calls, strict=True)}
    assert len(pids) == 1


def test_other_surroundings_get_another_server(home: HubHome, opened: ExitStack, tmp_path: Path):
    options = {"setting": ["--set=toolResponseMaxBytes=5000"], "store": [f"--set=storeDir={tmp_path}"], "name": ["--name=other"]}
    seen = {pid(join(home, opened))}
    for differs in ("variable", "folder", "server", *options):
        server = every("modern", "other" if differs == "server" else "every")
        env = {"TOKEN": "other"} if differs == "variable" else {}
        folder = tmp_path if differs == "folder" else None
        other = opened.enter_context(home.front(*options.get(differs, []), server=server, cwd=folder, modern=True, **env))
        other.hello()
        assert pid(other) not in seen, differs
        seen.add(pid(other))


def test_a_variable_that_says_nothing_keeps_nobody_apart(home: HubHome, opened: ExitStack):
    assert pid(join(home, opened, SHLVL="1")) == pid(join(home, opened, SHLVL="2"))


def test_only_a_server_that_is_said_to_be_shared_serves_sessions_that_give_it_ways_to_reach_them(
    home: HubHome, opened: ExitStack, tmp_path: Path
):
    """Claude Code gives each session a token of its own. A shared server gets none: it would be the first session's."""
    name = "CLAUDE_CODE_MESSAGING_TOKEN"
    one, other = [join(home, opened, **{name: value}) for value in "12"]
    assert pid(one) != pid(other)
    code = tmp_path / "server.py"
    code.write_text(ENVIRON.replace("WHOSE", name))
    found: list[Any] = []
    for value in "12":
        front = opened.enter_context(home.front("--share", server=[sys.executable, str(code)], **{name: value}))
        front.hello()
        found.append(json.loads(front.text("where")))
    assert [whose for _, whose, _ in found] == [None, None]
    status = home.status()
    assert status is not None
    pids = {server["pid"] for front in status["fronts"] for server in front["servers"]}
    assert len(pids) == 3


@both_eras
def test_progress_reaches_only_the_call_it_belongs_to(era: str, home: HubHome, opened: ExitStack):
    one, other = pair(home, opened, era)
    steps = {"steps": [{"progress": 1, "message": "half"}]}
    calls = [
        (front, front.begin("tools/call", {"name": "steps", "arguments": steps, "_meta": {"progressToken": token}}))
        for front, token in ((one, "a"), (other, "b"))
    ]
    for front, call in calls:
        front.answer(call)
    assert [each["params"]["progressToken"] for each in heard(one, "notifications/progress")] == ["a"]
    assert [each["params"]["progressToken"] for each in heard(other, "notifications/progress")] == ["b"]


def test_log_messages_reach_only_the_client_that_asked_for_them(home: HubHome, opened: ExitStack):
    one, other = pair(home, opened)
    for front, words in ((one, "mine"), (other, "yours")):
        front.log_level = "debug"
        front.call("log", {"level": "warning", "data": words})
        front.log_level = None
    other.call("log", {"level": "warning", "data": "nobody's"})
    assert [each["params"]["data"] for each in heard(one, "notifications/message")] == ["mine"]
    assert [each["params"]["data"] for each in heard(other, "notifications/message")] == ["yours"]


def test_while_one_call_may_log_no_other_client_gets_its_messages(home: HubHome, opened: ExitStack):
    one, other = pair(home, opened)
    one.log_level = other.log_level = "debug"
    waiting = one.begin("tools/call", {"name": "wait", "arguments": {"until": "later"}})
    one.log_level = None
    one.stay()
    other.call("log", {"level": "warning", "data": "left out"})
    other.log_level = None
    other.text("release", {"word": "later"})
    one.answer(waiting)
    assert heard(one, "notifications/message") == heard(other, "notifications/message") == []
    other.log_level = "debug"
    other.call("log", {"level": "warning", "data": "heard again"})
    assert len(heard(other, "notifications/message")) == 1


@both_eras
def test_a_cancelled_call_is_the_only_one_that_is_cancelled(era: str, home: HubHome, opened: ExitStack, tmp_path: Path):
    one, other = pair(home, opened, era)
    begun = [tmp_path / name for name in ("one", "other")]
    calls = [
        front.begin("tools/call", {"name": "wait", "arguments": {"until": "now", "then": "done", "begun": str(file)}})
        for front, file in zip((one, other), begun, strict=True)
    ]
    wait_until(lambda: all(file.exists() for file in begun))
    one.notify("notifications/cancelled", {"requestId": calls[0]})
    assert len(other.seen("notifications/cancelled")) == 1
    one.text("release", {"word": "now"})
    assert other.answer(calls[1])["result"]["content"][0]["text"] == "done"
    assert not [each for each in one.received if each.get("id") == calls[0]]


def test_a_changed_list_is_announced_to_all_once(home: HubHome, opened: ExitStack):
    one, other = pair(home, opened, "legacy")
    one.text("touch", {"kind": "tools"})
    for front in (one, other):
        front.wait(lambda each: each.get("method") == "notifications/tools/list_changed")
        assert len(heard(front, "notifications/tools/list_changed")) == 1


def listen(front: HubFront, **wanted: Any) -> int:
    id = front.begin("subscriptions/listen", {"notifications": wanted})
    front.wait(lambda each: each.get("method") == "notifications/subscriptions/acknowledged")
    return id


def test_clients_of_the_newer_protocol_hear_of_a_changed_list_once_each(home: HubHome, opened: ExitStack):
    one, other = pair(home, opened)
    for front in (one, other):
        listen(front, toolsListChanged=True)
    one.text("touch", {"kind": "tools"})
    for front in (one, other):
        front.wait(lambda each: each.get("method") == "notifications/tools/list_changed")
        front.call("pid")
        assert len(heard(front, "notifications/tools/list_changed")) == 1


def test_a_changed_resource_reaches_only_the_clients_that_subscribe(home: HubHome, opened: ExitStack):
    one, other = pair(home, opened, "legacy")
    third = join(home, opened, era="legacy")
    for front in (one, other):
        front.result("resources/subscribe", {"uri": NOTES})
    one.text("touch", {"uri": NOTES})
    for front in (one, other):
        front.wait(lambda each: each.get("method") == "notifications/resources/updated")
    one.result("resources/unsubscribe", {"uri": NOTES})
    assert not third.seen("resources/unsubscribe", 0)  # the other one still subscribes
    one.text("touch", {"uri": NOTES})
    wait_until(lambda: len(heard(other, "notifications/resources/updated")) == 2)
    for front in (one, third):
        front.call("pid")
    assert len(heard(one, "notifications/resources/updated")) == 1
    assert not heard(third, "notifications/resources/updated")
    other.end()
    assert len(third.seen("resources/unsubscribe")) == 1


def test_a_stream_ends_when_its_client_leaves(home: HubHome, opened: ExitStack):
    one, other = pair(home, opened)
    listen(one, resourceSubscriptions=[NOTES])
    listen(other, toolsListChanged=True)
    other.text("touch", {"uri": NOTES})
    one.wait(lambda each: each.get("method") == "notifications/resources/updated")
    other.call("pid")
    assert not heard(other, "notifications/resources/updated")
    cancelled = len(other.seen("notifications/cancelled", 0))
    one.end()
    other.seen("notifications/cancelled", cancelled + 1)


def test_a_shared_server_with_sessions_can_ask_no_client_anything(home: HubHome, opened: ExitStack):
    one, other = pair(home, opened, "legacy")
    (asked,) = json.loads(one.text("ask", ASKS))
    assert asked["code"] == -32601
    assert not heard(one, "roots/list")
    assert not heard(other, "roots/list")
    other.result("x/echo")
    own = opened.enter_context(home.front())
    own.hello()
    own.asked = {"roots/list": {"result": {"roots": []}}}
    assert json.loads(own.text("ask", ASKS)) == [{"roots": []}]


def test_a_shared_server_with_sessions_logs_to_no_client(home: HubHome, opened: ExitStack):
    one, other = pair(home, opened, "legacy")
    one.text("notify", {"method": "notifications/message", "params": {"level": "alert", "data": "whose?"}})
    one.text("notify", {"method": "notifications/x/odd"})
    for front in (one, other):
        front.call("pid")
        assert not heard(front, "notifications/message")
        assert not heard(front, "notifications/x/odd")
        assert b"which does not say whom it is for" in front.errors


def test_a_server_that_is_busy_keeps_no_new_conversation_waiting(home: HubHome, opened: ExitStack, tmp_path: Path):
    server = [sys.executable, "-c", ONE_AT_A_TIME]
    one, other = [opened.enter_context(home.front(server=server, modern=True)) for _ in range(2)]
    one.hello()
    shared = pid(one)
    os.mkfifo(pipe := tmp_path / "pipe")
    blocked = one.begin("tools/call", {"name": "block", "arguments": {"until": str(pipe)}})
    other.hello()
    assert pid(other) != shared
    pipe.open("w").close()
    one.answer(blocked)
    assert pid(one) == shared


@both_eras
def test_a_crash_is_told_to_each_caller_and_one_new_server_serves_all(era: str, home: HubHome, opened: ExitStack):
    one, other = pair(home, opened, era)
    before = pid(one)
    calls = [(front, front.begin("tools/call", {"name": "wait", "arguments": {"until": "never"}})) for front in (one, other)]
    one.call("pid")
    other.call("pid")
    os.kill(before, signal.SIGKILL)
    for front, call in calls:
        result = front.answer(call)
        assert "was ended by signal 9" in json.dumps(result)
    after = pid(one)
    assert after != before
    assert pid(other) == after


def test_what_a_server_said_about_one_client_does_not_reach_another_when_it_ends(home: HubHome, opened: ExitStack):
    one, other = pair(home, opened)
    waiting = other.begin("tools/call", {"name": "wait", "arguments": {"until": "never"}})
    other.call("pid")
    one.begin("tools/call", {"name": "end", "arguments": {"words": "tuesday was secret"}})
    assert "ended with exit code 3" in json.dumps(other.answer(waiting))
    assert "tuesday" not in json.dumps(other.received)
    assert b"tuesday" not in other.errors
    assert "tuesday was secret" in Path(home.place.log).read_text()


def test_what_a_server_said_before_others_joined_does_not_reach_them_when_it_ends(home: HubHome, opened: ExitStack):
    server = ["sh", "-c", 'echo "tuesday was secret" >&2; exec "$@"', "sh", *every("modern")]
    one, other = [opened.enter_context(home.front(server=server, modern=True)) for _ in range(2)]
    one.hello()
    shared = pid(one)
    wait_until(lambda: b"tuesday" in one.errors)
    other.hello()
    assert pid(other) == shared
    waiting = other.begin("tools/call", {"name": "wait", "arguments": {"until": "never"}})
    other.call("pid")
    os.kill(shared, signal.SIGKILL)
    assert "was ended by signal 9" in json.dumps(other.answer(waiting))
    assert "tuesday" not in json.dumps(other.received)


def test_a_front_that_is_killed_disturbs_no_other(home: HubHome, opened: ExitStack, tmp_path: Path):
    one, other = pair(home, opened)
    begun = tmp_path / "begun"
    one.begin("tools/call", {"name": "wait", "arguments": {"until": "never", "begun": str(begun)}})
    waiting = other.begin("tools/call", {"name": "wait", "arguments": {"until": "soon", "then": "still here"}})
    wait_until(begun.exists)
    one.process.send_signal(signal.SIGKILL)
    one.process.wait()
    other.text("release", {"word": "soon"})
    assert other.answer(waiting)["result"]["content"][0]["text"] == "still here"


def test_a_client_that_does_not_read_holds_up_no_other(home: HubHome, opened: ExitStack):
    one, other = pair(home, opened)
    steps = {"steps": [{"progress": number, "message": "x" * 100_000} for number in range(60)]}
    call = one.begin("tools/call", {"name": "steps", "arguments": steps, "_meta": {"progressToken": "p"}})
    os.kill(one.process.pid, signal.SIGSTOP)
    try:
        for _ in range(20):
            other.call("pid")
    finally:
        os.kill(one.process.pid, signal.SIGCONT)
    assert one.answer(call)["result"]["content"][0]["text"] == "60 steps, heard"


def test_a_task_stays_with_the_client_that_started_it(home: HubHome, opened: ExitStack):
    server = [sys.executable, str(Path(__file__).parents[1] / "servers" / "tasks.py"), "legacy"]
    one, other = [opened.enter_context(home.front("--share", server=server)) for _ in range(2)]
    one.hello()
    other.hello()
    task = one.call("report", task={})["task"]["taskId"]
    assert one.result("tasks/get", {"taskId": task})["status"] == "completed"
    assert [each["taskId"] for each in one.result("tasks/list")["tasks"]] == [task]
    assert "started no task with this id" in other.request("tasks/get", {"taskId": task})["error"]["message"]
    assert "started no task with this id" in other.request("tasks/cancel", {"taskId": "t1"})["error"]["message"]
    assert other.result("tasks/list")["tasks"] == []


def test_the_status_of_the_hub_says_who_shares_a_server(home: HubHome, opened: ExitStack):
    one = join(home, opened)
    other = opened.enter_context(home.elsewhere(server=every("modern"), modern=True))
    other.hello()
    assert pid(one) == pid(other)
    lines = home.overspill("hub", "status").stdout.splitlines()
    found = [line for line in lines if f"python: process {pid(one)}" in line]
    assert len(found) == 2
    assert f"shared with process {other.process.pid}" in found[0] + found[1]
    assert f"shared with process {home.client}" in found[0] + found[1]


@both_eras
def test_an_idle_conversation_leaves_the_server_to_the_others(era: str, home: HubHome, opened: ExitStack):
    one = join(home, opened, "--idle-minutes=0.002", era=era)
    other = join(home, opened, era=era)
    shared = pid(one)

    def states() -> list[str]:
        return [server["state"] for front in (home.status() or {})["fronts"] for server in front["servers"]]

    wait_until(lambda: sorted(states()) == ["idle", "up"])
    assert pid(other) == shared
    assert pid(one) == shared


@pytest.mark.anyio
async def test_a_server_holds_on_to_no_client_that_has_left():
    servers, own, gone = SharedServers(), config(every("modern")), list[weakref.ref[Peer]]()
    came, may_leave, left = anyio.Event(), anyio.Event(), anyio.Event()

    async def visit() -> None:
        access = ServerAccess(own, os.environ, ClientIdentity(is_modern=True))
        gone.append(weakref.ref(access.peer))
        async with servers.connect("me", access):
            came.set()
            await may_leave.wait()
        left.set()

    async with anyio.create_task_group() as group:
        group.start_soon(visit)
        await came.wait()
        async with servers.connect("me", ServerAccess(own, os.environ, ClientIdentity(is_modern=True))) as stays:
            may_leave.set()
            await left.wait()
            await anyio.wait_all_tasks_blocked()
            gc.collect()
            assert gone[0]() is None
            assert not stays.ended.is_set()


@pytest.mark.anyio
async def test_over_http_only_clients_with_the_same_token_share_a_server(tmp_path: Path):
    proxy = Listening(tmp_path, server=(SERVER, "modern"))
    try:
        async with proxy.client(ANN) as one, proxy.client(ANN) as two, proxy.client(BOB) as bob:
            found = [(await client.call_tool("pid", {})).content[0].text for client in (one, two, bob)]
        assert found[0] == found[1] != found[2]
    finally:
        proxy.end()


def test_wrap_keeps_what_an_entry_says_about_sharing_and_idleness():
    for said, words in (
        ('"share": true', ["--share"]),
        ('"share": false', []),
        ('"idleMinutes": 2.5', ["--idle-minutes", "2.5"]),
    ):
        entry = jsonc.scan(f'{{"command": "uvx", "args": ["x"], {said}}}', "it")
        wrapped = edit_entry(entry, wrap_entry("x", entry, ["overspill"]))
        assert json.loads(wrapped)["args"] == ["proxy", "--name", "x", *words, "--", "uvx", "x"]
        found = recognize("x", jsonc.scan(wrapped, "it"))
        assert found is not None
        assert edit_entry(jsonc.scan(wrapped, "it"), unwrap_entry(jsonc.scan(wrapped, "it"), found) or []) == entry.raw


@pytest.mark.parametrize("said", ['"idleMinutes": true', '"idleMinutes": -1', '"idleMinutes": 1e999', '"share": "yes"'])
def test_wrap_leaves_an_entry_alone_whose_sharing_or_idleness_is_no_value_for_it(said: str):
    key = said.split('"')[1]
    assert find_refusal("x", jsonc.scan(f'{{"command": "uvx", "args": ["x"], {said}}}', "it")).startswith(f"its {key} is ")


def test_a_bad_value_for_sharing_is_refused():
    with pytest.raises(SettingsError, match="`share` must be true or false"):
        server_configs({"a": {"command": "a", "share": "yes"}}, "here")
