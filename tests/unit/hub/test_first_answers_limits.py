"""What a client asks first takes no more memory than a few answers, however it asks."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any

import anyio
import pytest

from overspill.hub import frames
from overspill.hub.first_answers import FirstAnswers
from overspill.hub.link import FrontLink

pytestmark = pytest.mark.anyio

LIST: dict[str, Any] = {"tools": [{"name": "long", "description": "x" * 100_000, "inputSchema": {"type": "object"}}]}


def request(id: object, **params: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": params}


def first(folder: Path) -> FirstAnswers:
    found = FirstAnswers(folder / "lists", ["proxy"], "/", {})
    found.load()
    return found


def learn(folder: Path, *requests: dict[str, Any], answer: dict[str, Any] = LIST) -> None:
    known = first(folder)
    for each in requests:
        asked = known.find_asked(each["method"], each["params"])
        assert asked
        known.note(asked, b"1", answer)
    known.save()


def find_file(folder: Path) -> Path:
    (file,) = (folder / "lists").glob("first-*.json")
    return file


def kept(folder: Path) -> list[Any]:
    """The parameters of the questions that the file answers."""
    return [json.loads(params) for _, params, *_ in json.loads(find_file(folder).read_bytes())["answers"]]


async def test_a_question_that_is_never_the_same_is_kept_once_for_each_conversation(tmp_path: Path):
    learn(tmp_path, *(request(1, _meta={"progressToken": number}) for number in range(100)))
    assert kept(tmp_path) == [{"_meta": {"progressToken": 0}}]


async def test_the_oldest_of_many_answers_are_forgotten(tmp_path: Path):
    for number in range(70):
        learn(tmp_path, request(1, number=number), answer={"tools": []})
    assert kept(tmp_path) == [{"number": number} for number in range(6, 70)]


async def test_a_clients_files_are_looked_at_only_in_the_thread_that_may_wait_for_them(tmp_path: Path):
    early, settings = FirstAnswers(tmp_path / "lists", ["proxy"], str(tmp_path), {}), tmp_path / ".overspill.json"
    settings.write_text("{}")
    early.load()
    asked = early.find_asked("tools/list", {})
    assert asked
    early.note(asked, b"1", LIST)
    early.save()
    assert FirstAnswers(tmp_path / "lists", ["proxy"], str(tmp_path), {}).load()
    settings.write_text("{ }")
    assert not FirstAnswers(tmp_path / "lists", ["proxy"], str(tmp_path), {}).load()


@pytest.mark.parametrize("t", ["1e999", "-1e999", "NaN", "null", '"now"', "[]"])
async def test_a_file_with_an_impossible_time_is_not_used(tmp_path: Path, t: str):
    learn(tmp_path, request(1))
    file = find_file(tmp_path)
    content = json.loads(file.read_bytes())
    file.write_text(json.dumps(content).replace(json.dumps(content["t"]), t))
    assert not FirstAnswers(tmp_path / "lists", ["proxy"], "/", {}).load()


async def answer_unread(known: FirstAnswers, lines: bytes) -> list[tuple[bytes, bytes]]:
    """Give a client that reads nothing its answers. Returns the frames that are then left for the hub."""
    ours, front = socket.socketpair()
    link = FrontLink(ours)
    with front:
        front.sendall(frames.pack(frames.DATA, lines))
        async with anyio.create_task_group() as group:
            group.start_soon(known.give, link)
            await anyio.wait_readable(front)
            await anyio.wait_all_tasks_blocked()
            await known.end(link)
            group.cancel_scope.cancel()
        front.shutdown(socket.SHUT_WR)
        left: list[tuple[bytes, bytes]] = []
        while (frame := await link.receive()) is not None:
            left.append(frame)
        link.close()
    return left


async def test_a_client_that_does_not_read_is_given_no_more(tmp_path: Path):
    learn(tmp_path, request(1))
    lines = [json.dumps(request(number)).encode() + b"\n" for number in range(200)]
    left = await answer_unread(first(tmp_path), b"".join(lines))
    replays = [payload for kind, payload in left if kind == frames.REPLAY]
    assert 0 < len(replays) < 50
    assert b"".join(payload for _, payload in left) == b"".join(lines)


async def test_lines_beyond_the_first_are_left_for_the_hub(tmp_path: Path):
    known = first(tmp_path)
    lines = b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n' * 2_500
    left = await answer_unread(known, lines)
    assert 0 < sum(len(payload) for kind, payload in left if kind == frames.REPLAY) <= 100_000
    assert b"".join(payload for _, payload in left) == lines


@pytest.mark.parametrize(("age", "most"), [(40, 20_000), (-3600, 60_000)], ids=["later", "with a clock set back"])
async def test_what_is_kept_again_is_not_fresh_again(tmp_path: Path, age: int, most: int):
    learn(tmp_path, request(1), answer={"tools": [], "ttlMs": 60_000})
    file = find_file(tmp_path)
    content = json.loads(file.read_bytes())
    file.write_text(json.dumps({**content, "t": content["t"] - age}))
    learn(tmp_path, request(1, other=True), answer={"tools": []})
    left = json.loads(file.read_bytes())["answers"][0][3]["ttlMs"]
    assert 0 < left <= most
