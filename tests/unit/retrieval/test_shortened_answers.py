"""Whatever gives way when an answer is shortened, what matches stays, and the counts below it are true."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from slow import slow

from overspill import ContextBudget, Settings, SyncSession
from overspill.store.memory import MemoryStore

SIMILAR = 30
MATCHING = 3


def list_folder(name: str, files: list[str]) -> dict[str, Any]:
    return {"name": name, "type": "directory", "children": [{"name": file, "type": "file"} for file in files]}


def write_tree(nesting: int = 20) -> str:
    """A listing of folders, indented as servers do, in which what is asked for comes last."""
    similar = [[f"{part}-utils.{end}" for part in ("auth", "uri", "path") for end in ("js", "d.ts", "js.map")] for _ in range(40)]
    folders: list[Any] = [list_folder(f"where{number}", files) for number, files in enumerate(similar)]
    folders.append(list_folder("dist", [f"roots-utils-{number:02}.js" for number in range(MATCHING)]))
    for _ in range(nesting):
        folders = [{"name": "node_modules", "type": "directory", "children": folders}]
    return json.dumps(folders, indent=2)


def write_records(similar: Callable[[int], str], matching: Callable[[int], str]) -> Iterator[str]:
    yield from map(similar, range(SIMILAR * 10))
    yield from map(matching, range(MATCHING))
    yield from map(similar, range(SIMILAR))


def write_json() -> str:
    records = write_records(
        lambda n: json.dumps({"order": n, "status": "card accepted", "note": "x" * 90}, indent=8),
        lambda n: json.dumps({"order": f"needle-{n:02}", "status": "refused, card expired", "note": "y" * 90}, indent=8),
    )
    return f"[{','.join(records)}]"


def write_csv() -> str:
    rows = write_records(
        lambda n: f"{n},card accepted{' ' * 300}end", lambda n: f"needle-{n:02},refused because the card expired{' ' * 300}end"
    )
    return "\n".join(("order,status", *rows))


def write_log() -> str:
    lines = write_records(
        lambda n: f"12:00:{n % 60:02} INFO card of order {n} accepted{' ' * 300}.",
        lambda n: f"12:30:{n:02} ERROR order needle-{n:02} refused: card expired{' ' * 300}.",
    )
    return "\n".join(lines)


def write_code() -> str:
    functions = write_records(
        lambda n: f"def accept_card_{n}(order):\n{' ' * 200}return order.card\n",
        lambda n: f"def refuse_expired(order):\n{' ' * 200}raise Refused('needle-{n:02}: expired card refused')\n",
    )
    return "\n".join(functions)


def write_markdown() -> str:
    sections = write_records(
        lambda n: f"## Order {n}\n\nThe card was accepted.{' ' * 300}Done.\n",
        lambda n: f"## Order needle-{n:02}\n\nIt was refused, because the card had expired.{' ' * 300}Done.\n",
    )
    return "\n".join(sections)


REFUSED = "orders refused because the card expired"
DOCUMENTS = {
    "tree": (write_tree, "where is roots-utils", r"roots-utils-(\d\d)"),
    "json": (write_json, REFUSED, r"needle-(\d\d)"),
    "csv": (write_csv, REFUSED, r"needle-(\d\d)"),
    "log": (write_log, REFUSED, r"needle-(\d\d)"),
    "code": (write_code, REFUSED, r"needle-(\d\d)"),
    "markdown": (write_markdown, REFUSED, r"needle-(\d\d)"),
}


def ask(document: str, question: str, *, window: int | None = None, tool: str = "tool_output", **settings: Any) -> str:
    with SyncSession(
        Settings(intent="off", **settings), budget=window and ContextBudget(window=window), store=MemoryStore()
    ) as s:
        kept = s.call("read", {}, lambda: document).kept
        assert kept is not None
        args = {"handle": kept.handle, "extract": question}
        if tool == "get_tool_output":
            args = {"id": kept.name, "mode": "extract", "query": question}
        return s.invoke(tool, args).text


@pytest.mark.promise("nothing-silently-cut")
@pytest.mark.parametrize("limit", [{"answerMaxBytes": 2_000}, *slow({}, {"answerMaxChars": 3_000}), {"window": 700}])
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_what_matches_is_shown_and_counted_at_every_bound(kind: str, limit: dict[str, int]):
    write, question, marks = DOCUMENTS[kind]
    answer = ask(write(), question, **limit)
    assert len(answer.encode()) <= limit.get("answerMaxBytes", limit.get("answerMaxChars", 12_288))
    assert "Remainder omitted" not in answer
    closing = re.search(r"^\(matched (?:more than )?(\d+) records?, (?:all shown|showing (\d+))", answer, re.MULTILINE)
    assert closing, answer
    shown, claimed = len(set(re.findall(marks, answer))), int(closing[2] or closing[1])
    assert shown >= (1 if kind == "tree" else min(claimed, MATCHING)), answer  # of the tree, one folder is one record


@pytest.mark.promise("no-answer-over-budget")
@pytest.mark.parametrize("window", [300, *slow(450)])
@pytest.mark.parametrize("kind", DOCUMENTS)
def test_with_hardly_any_room_left_an_answer_still_says_that_something_matches(kind: str, window: int):
    write, question, marks = DOCUMENTS[kind]
    answer = ask(write(), question, window=window)
    if not re.search(marks, answer):
        assert re.search(r"\((matched \d+ records(, none fits.*)?|What matches does not fit into this answer\.)\)$", answer), (
            answer
        )


@pytest.mark.parametrize("kind", DOCUMENTS)
def test_snippets_that_match_stay_when_others_give_way(kind: str):
    write, question, marks = DOCUMENTS[kind]
    answer = json.loads(ask(write(), question, tool="get_tool_output", answerMaxBytes=1_500))
    assert re.search(marks, json.dumps(answer["snippets"])), answer


@pytest.mark.parametrize("max_bytes", [1_000, 2_000])
def test_a_small_answer_is_mostly_passages(max_bytes: int):
    with SyncSession(Settings(answerMaxBytes=max_bytes), store=MemoryStore()) as session:
        lines = "\n".join(f"order {number} was refused because card {number * 7} expired" for number in range(2_000))
        handle = session.keep(lines, "get_orders").handle
        reply = session.invoke("tool_output", {"handle": handle, "extract": "which orders were refused?"}).text
    passages = reply[reply.index("[L") : reply.index("[end of untrusted data")]
    assert len(passages.encode()) >= max_bytes - 300
    assert len(reply.encode()) <= max_bytes
