"""A client that declares the extension gets a task for each slow call, of servers that know tasks and of those that do not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from task_server import LARGE, TaskFolder, text
from upstream import script
from waiting import wait_until
from wire import CAPABILITIES, META, Served, Wire, config, every

EXTENSION = META + "tasks"
DECLARED = {**CAPABILITIES, "extensions": {EXTENSION: {}}}
AT_ONCE = {"asyncTimeoutSecs": 0.05}
ASKED = {"q1": {"method": "elicitation/create", "params": {"message": "Which?", "requestedSchema": {"type": "object"}}}}
SAID = {"action": "accept", "content": {"which": "this"}}


def serve(store: Path, *servers: Any, declares: bool = True, **options: Any) -> Served:
    wire = Served(servers, store, modern=True, settings={**AT_ONCE, **options.pop("settings", {})}, **options)
    wire.capabilities = DECLARED if declares else CAPABILITIES
    return wire


def get(wire: Wire, id: str) -> dict[str, Any]:
    return wire.result("tasks/get", {"taskId": id})


def follow(wire: Wire, id: str, until: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    return wait_until(lambda: get(wire, id), until)


def finish(wire: Wire, id: str) -> dict[str, Any]:
    return follow(wire, id, lambda task: task["status"] in ("completed", "failed", "cancelled"))


@pytest.fixture
def tasks(tmp_path: Path) -> TaskFolder:
    return TaskFolder(tmp_path / "s")


def start(wire: Wire, name: str = "a", tool: str = "work", **task: Any) -> dict[str, Any]:
    return wire.call(tool, {"name": name, "task": {"pollIntervalMs": 100, **task}})


@pytest.fixture(params=["legacy", "modern"])
def plain(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Wire]:
    """In front of a server that has never heard of tasks."""
    with serve(tmp_path / "store", config(every(request.param)), settings={"asyncTimeoutSecs": 1}) as wire:
        wire.hello()
        yield wire


def test_the_extension_is_announced(plain: Wire) -> None:
    assert plain.result("server/discover")["capabilities"]["extensions"][EXTENSION] == {}


@pytest.mark.promise("small-things-untouched")
def test_a_quick_call_is_no_task(tmp_path: Path) -> None:
    with serve(tmp_path / "store", config(every("modern")), settings={"asyncTimeoutSecs": 20}) as wire:
        wire.hello()
        assert wire.call("pid")["resultType"] == "complete"


@pytest.mark.promise("no-turn-blocked")
def test_a_slow_call_of_any_server_is_a_task_from_the_first_on(plain: Wire) -> None:
    task = plain.call("wait", {"until": "told", "then": "done"})
    assert task["resultType"] == "task"
    assert task["status"] == "working"
    assert task["pollIntervalMs"] > 0
    assert task["ttlMs"] == 7 * 86_400_000
    assert get(plain, task["taskId"])["statusMessage"] == "1 of 4: warming up"
    plain.call("release", {"word": "told"})
    done = finish(plain, task["taskId"])
    assert done["status"] == "completed"
    assert done["result"]["content"][0]["text"] == "done"
    assert done["createdAt"] == task["createdAt"]
    assert done["lastUpdatedAt"] >= done["createdAt"]
    assert get(plain, task["taskId"])["result"] == done["result"]


def test_a_small_result_comes_as_the_server_sent_it(tasks: TaskFolder, tmp_path: Path) -> None:
    result = {**text("done"), "structuredContent": {"rows": [1]}, "_meta": {"x": 1}, "isError": False}
    with serve(tmp_path / "store", tasks.server()) as wire:
        wire.hello()
        id = start(wire)["taskId"]
        tasks.set("a", status="completed", result=result)
        assert finish(wire, id)["result"] == result


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize("count", [1, 2])
def test_a_large_result_passes_the_gate_when_it_is_fetched(tmp_path: Path, count: int) -> None:
    folders = [TaskFolder(tmp_path / f"s{number}") for number in range(count)]
    with serve(tmp_path / "store", *(tasks.server() for tasks in folders)) as wire:
        wire.hello()
        ids = [start(wire, "same", "work" if count == 1 else f"s{number}__work")["taskId"] for number in range(count)]
        assert len(set(ids)) == count
        for number, tasks in enumerate(folders):
            tasks.set("same", status="completed", result=text(f"server {number}\n{LARGE}"))
        for number, id in enumerate(ids):
            done = finish(wire, id)
            assert len(json.dumps(done)) < 20_000
            link = next(block for block in done["result"]["content"] if block["type"] == "resource_link")
            part = wire.result("resources/read", {"uri": link["uri"]})["contents"][0]["text"]
            assert part.startswith(f"server {number}\n")


def test_a_failed_call_is_a_failed_task_and_a_tool_that_reports_an_error_completes(tasks: TaskFolder, tmp_path: Path) -> None:
    with serve(tmp_path / "store", tasks.server()) as wire:
        wire.hello()
        failed, reported = start(wire, "f")["taskId"], start(wire, "r")["taskId"]
        error = {"code": -32050, "message": "no more coal", "data": {"left": 0}}
        tasks.set("f", status="failed", error=error)
        tasks.set("r", status="completed", result={**text("no such file"), "isError": True})
        ended = finish(wire, failed)
        assert (ended["status"], ended["error"]) == ("failed", error)
        ended = finish(wire, reported)
        assert (ended["status"], ended["result"]["isError"]) == ("completed", True)


IMAGE = {"content": [{"type": "image", "data": "A" * 2_000_000, "mimeType": "image/png"}]}
LARGE_ENDS = [
    {"status": "failed", "error": {"code": -32050, "message": LARGE}},
    {"status": "failed", "error": {"code": -32050, "message": "no", "data": LARGE}},
    {"status": "completed", "result": {**text(LARGE), "isError": True}},
    {"status": "completed", "result": {**text("small"), "structuredContent": {"rows": [LARGE]}}},
    {"status": "completed", "result": IMAGE},
]


@pytest.mark.promise("nothing-silently-cut")
@pytest.mark.parametrize("end", LARGE_ENDS, ids=["message", "data", "reported", "structured", "image"])
def test_nothing_large_comes_with_a_task(tasks: TaskFolder, tmp_path: Path, end: dict[str, Any]) -> None:
    with serve(tmp_path / "store", tasks.server()) as wire:
        wire.hello()
        id = start(wire)["taskId"]
        tasks.set("a", **end)
        assert len(json.dumps(finish(wire, id))) < 20_000


def test_a_cancelled_task_is_cancelled_at_its_server_too(tasks: TaskFolder, tmp_path: Path) -> None:
    with serve(tmp_path / "store", tasks.server()) as wire:
        wire.hello()
        id = start(wire)["taskId"]
        assert wire.result("tasks/cancel", {"taskId": id})["resultType"] == "complete"
        assert finish(wire, id)["status"] == "cancelled"
        assert "result" not in get(wire, id)
        assert tasks.count("tasks/cancel", "a") == 1
        assert wire.result("tasks/cancel", {"taskId": id})["resultType"] == "complete"
        assert "cancelled" in wire.text("get_tool_output", {"id": id, "mode": "raw"})


def test_a_cancelled_call_of_a_server_without_tasks_is_cancelled_there(plain: Wire) -> None:
    id = plain.call("wait", {"until": "never"})["taskId"]
    plain.result("tasks/cancel", {"taskId": id})
    assert finish(plain, id)["status"] == "cancelled"
    plain.seen("notifications/cancelled")


def test_a_task_that_needs_input_says_so_and_gets_it_by_an_update(tasks: TaskFolder, tmp_path: Path) -> None:
    with serve(tmp_path / "store", tasks.server()) as wire:
        wire.hello()
        id = start(wire)["taskId"]
        after = {"status": "completed", "result": text("thanks")}
        tasks.set("a", status="input_required", inputRequests=ASKED, after=after)
        waiting = follow(wire, id, lambda task: task["status"] == "input_required")
        (key,) = waiting["inputRequests"]
        assert waiting["inputRequests"][key] == ASKED["q1"]
        wire.result("tasks/update", {"taskId": id, "inputResponses": {"no such key": SAID}})
        assert get(wire, id)["status"] == "input_required"
        wire.result("tasks/update", {"taskId": id, "inputResponses": {key: SAID}})
        assert finish(wire, id)["result"]["content"] == text("thanks")["content"]
        wire.result("tasks/update", {"taskId": id, "inputResponses": {key: SAID}})
    assert tasks.said("tasks/update", "a") == [[{"q1": SAID}]]


@pytest.mark.parametrize("wrong", [None, [], "yes", 5])
def test_an_update_without_answers_is_refused(tasks: TaskFolder, tmp_path: Path, wrong: object) -> None:
    with serve(tmp_path / "store", tasks.server()) as wire:
        wire.hello()
        id = start(wire)["taskId"]
        answer = wire.request("tasks/update", {"taskId": id, "inputResponses": wrong})
        assert answer["error"]["code"] == -32602


def test_a_client_hears_of_its_tasks_on_a_stream(tasks: TaskFolder, tmp_path: Path) -> None:
    with serve(tmp_path / "store", tasks.server()) as wire:
        wire.hello()
        id = start(wire)["taskId"]
        stream = wire.begin("subscriptions/listen", {"notifications": {"taskIds": [id, "art_0_0000000000000000000", 5]}})
        first = wire.told("notifications/subscriptions/acknowledged")
        assert first["params"]["notifications"]["taskIds"] == [id]
        tasks.set("a", status="completed", result=text(LARGE))
        done = wire.wait(lambda each: each.get("params", {}).get("status") == "completed")
        assert done["method"] == "notifications/tasks"
        assert done["params"]["taskId"] == id
        assert done["params"]["_meta"][META + "subscriptionId"] == stream
        assert len(json.dumps(done)) < 20_000
        assert done["params"]["result"] == get(wire, id)["result"]


UNKNOWN = ["art_0_0000000000000000000", "t1", "", "../../etc/passwd", 5, None, ["a"], {"a": 1}, "x" * 100_000]


@pytest.mark.promise("nobody-elses")
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_an_unknown_task_is_refused(plain: Wire, method: str) -> None:
    for id in UNKNOWN:
        answer = plain.request(method, {"taskId": id, "inputResponses": {}})
        assert answer["error"]["code"] == -32602, id
        assert len(json.dumps(answer)) < 2_000


@pytest.mark.promise("nobody-elses")
def test_a_task_of_a_client_with_other_rights_is_unknown(tasks: TaskFolder, tmp_path: Path) -> None:
    with serve(tmp_path / "store", tasks.server()) as wire:
        wire.hello()
        id = start(wire)["taskId"]
        tasks.set("a", status="completed", result=text(LARGE))
        finish(wire, id)
    with serve(tmp_path / "store", script("tasks", "modern", name="other")) as wire:
        wire.hello()
        assert wire.request("tasks/get", {"taskId": id})["error"]["code"] == -32602


@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_a_client_that_does_not_declare_the_extension_is_told_which_one_it_needs(tmp_path: Path, method: str) -> None:
    with serve(tmp_path / "store", config(every("modern")), declares=False) as wire:
        wire.hello()
        wire.stay()
        assert "Tool Output ID" in wire.text("wait", {"until": "never"})
        error = wire.request(method, {"taskId": "art_0_0000000000000000000"})["error"]
        assert error["code"] == -32021
        assert error["data"] == {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
        stream = {"notifications": {"taskIds": ["art_0_0000000000000000000"]}}
        assert wire.request("subscriptions/listen", stream)["error"]["code"] == -32021


def test_methods_that_the_extension_does_not_have_reach_no_server(plain: Wire) -> None:
    for method in ("tasks/result", "tasks/list", "tasks/other"):
        assert plain.request(method, {"taskId": "t1"})["error"]["code"] == -32601


def test_progress_is_the_message_of_a_task(tasks: TaskFolder, tmp_path: Path) -> None:
    with serve(tmp_path / "store", tasks.server()) as wire:
        wire.hello()
        id = start(wire, statusMessage="3 of 10 parts")["taskId"]
        assert follow(wire, id, lambda task: "statusMessage" in task)["statusMessage"] == "3 of 10 parts"
