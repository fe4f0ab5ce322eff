"""The proxy is killed while servers run tasks for it. The next one follows those that their servers kept."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from slow import slow
from task_server import LARGE, TaskFolder, text
from waiting import wait_until
from wire import CAPABILITIES, META, Process, config, every, proxied

DECLARED = {**CAPABILITIES, "extensions": {META + "tasks": {}}}


def serve(tmp_path: Path, servers: list[Any], *, declares: bool = True) -> Process:
    listed = {each.name: {"command": each.command, "args": list(each.args)} for each in servers}
    (tmp_path / "servers.json").write_text(json.dumps({"mcpServers": listed}))
    settings = ("--set", f"storeDir={tmp_path / 'store'}", "--set", "asyncTimeoutSecs=0.1")
    wire = Process(proxied([], "--config", str(tmp_path / "servers.json"), *settings), modern=True)
    wire.capabilities = DECLARED if declares else CAPABILITIES
    wire.hello()
    return wire


def kill(wire: Process) -> None:
    os.kill(wire.process.pid, signal.SIGKILL)
    wire.close()


def finish(wire: Process, id: str) -> dict[str, Any]:
    ended = ("completed", "failed", "cancelled")
    return wait_until(lambda: wire.result("tasks/get", {"taskId": id}), lambda task: task["status"] in ended)


@pytest.fixture
def tasks(tmp_path: Path) -> TaskFolder:
    return TaskFolder(tmp_path / "s")


def start(wire: Process, name: str, tool: str = "work") -> str:
    return wire.call(tool, {"name": name, "task": {"pollIntervalMs": 100}})["taskId"]


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize("end", [kill, *slow(Process.close)], ids=["killed", "ended"])
def test_tasks_that_their_servers_kept_are_followed_by_the_next_proxy(tmp_path: Path, end: Callable[[Process], None]) -> None:
    folders = [TaskFolder(tmp_path / f"s{number}") for number in range(2)]
    servers = [each.server() for each in folders]
    wire = serve(tmp_path, servers)
    ids = [start(wire, "same", f"s{number}__work") for number in range(2)]
    folders[0].set("same", status="completed", result=text(f"of 0\n{LARGE}"))
    finished = finish(wire, ids[0])
    end(wire)
    folders[1].set("same", status="completed", result=text(f"of 1\n{LARGE}"))
    with serve(tmp_path, servers) as wire:
        for number, id in enumerate(ids):
            done = finish(wire, id)
            link = next(block for block in done["result"]["content"] if block["type"] == "resource_link")
            assert wire.result("resources/read", {"uri": link["uri"]})["contents"][0]["text"].startswith(f"of {number}\n")
            assert folders[number].count("call", "same") == 1
            assert folders[number].count("tasks/cancel", "same") == 0
    assert finished["status"] == "completed"
    with serve(tmp_path, servers) as wire:
        asked = [folder.count("tasks/get", "same") for folder in folders]
        assert [finish(wire, id)["status"] for id in ids] == ["completed", "completed"]
        assert [folder.count("tasks/get", "same") for folder in folders] == asked


def test_a_model_waits_for_a_task_that_an_earlier_proxy_began(tmp_path: Path, tasks: TaskFolder) -> None:
    wire = serve(tmp_path, [tasks.server()], declares=False)
    wire.stay()
    id = wire.text("work", {"name": "a"}).split("Tool Output ID: ")[1].split()[0]
    kill(wire)
    with serve(tmp_path, [tasks.server()], declares=False) as wire:
        wait_until(lambda: tasks.count("tasks/get", "a"))
        tasks.set("a", status="completed", result=text("after all"))
        assert id in wire.text("wait_for_tool_output")
        assert "after all" in wire.text("get_tool_output", {"id": id, "mode": "raw"})


@pytest.mark.promise("failures-are-answers")
def test_a_task_that_its_server_lost_fails_and_says_why(tmp_path: Path, tasks: TaskFolder) -> None:
    wire = serve(tmp_path, [tasks.server()])
    id = start(wire, "a")
    kill(wire)
    (tasks.folder / "a.known").unlink()
    with serve(tmp_path, [tasks.server()]) as wire:
        done = finish(wire, id)
    assert done["status"] == "failed"
    assert "no longer has the task" in done["error"]["message"]


def test_a_call_of_a_server_without_tasks_fails_and_says_why(tmp_path: Path) -> None:
    servers = [config(every("modern"))]
    wire = serve(tmp_path, servers)
    id = wire.call("wait", {"until": "never"})["taskId"]
    kill(wire)
    with serve(tmp_path, servers) as wire:
        done = finish(wire, id)
    assert done["status"] == "failed"
    assert "interrupted" in done["error"]["message"]


@pytest.mark.promise("nobody-elses")
def test_what_is_written_down_about_a_task_is_for_its_owner_alone(tmp_path: Path, tasks: TaskFolder) -> None:
    wire = serve(tmp_path, [tasks.server()])
    start(wire, "a")
    kill(wire)
    written = [file for file in (tmp_path / "store").rglob("*") if file.is_file() and b"task-a" in file.read_bytes()]
    assert written
    assert {file.stat().st_mode & 0o077 for file in written} == {0}
