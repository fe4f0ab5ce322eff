"""Following the continuations that answers spell, to the letter, gives back every byte of an output."""

from __future__ import annotations

import ast
import base64
from pathlib import Path
from typing import Any

import pytest
from frames import parted

from overspill import ContextBudget, Session, Settings

pytestmark = [pytest.mark.slow, pytest.mark.no_cover]

MEGABYTE = 1 << 20


def continuation(text: str) -> tuple[str, str, dict[str, Any]] | None:
    """The content before the last line, and the call that line spells: parsed, not understood."""
    content, footer = parted(text)
    if "Next: " not in footer:
        return None
    call = ast.parse(footer.partition("Next: ")[2].removesuffix("]"), mode="eval").body
    assert isinstance(call, ast.Call)
    assert isinstance(call.func, ast.Name)
    return content, call.func.id, {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}


async def reassembled(session: Session, name: str, args: dict[str, Any]) -> tuple[str, int]:
    pieces: list[str] = []
    most = session.settings.answer_max_bytes or 1 << 40
    while True:
        reply = await session.invoke(name, args)
        assert not reply.is_error, reply.text
        assert len(reply.text.encode("utf-8", "surrogatepass")) <= most
        found = continuation(reply.text)
        if found is None:
            return "".join([*pieces, parted(reply.text)[0]]), len(pieces) + 1
        content, name, args = found
        assert content
        pieces.append(content)


TEXTS = {
    "lines": "".join(f"line {number:06}\n" for number in range(20_000)),
    "crlf": "".join(f"line {number:06}\r\n" for number in range(20_000)),
    "cr": "".join(f"line {number:06}\r" for number in range(20_000)),
    "mixed ends": "a\r\n\r\rb\n\n\r\n" * 15_000,
    "one line": "0123456789" * 20_000,
    "non-ASCII line": "aé€😀" * 20_000,
    "non-ASCII lines": "".join(f"zeile {number} äöü€😀\r\n" for number in range(8_000)),
    "long and short lines": ("x" * 30_000 + "\n" + "short\n" * 10) * 5,
    "blank lines": "\n" * 100_000,
    "what looks like a footer": "\n\n[Characters 0-9, lines 1-1, bytes 0-9 of 9.]\n" * 3_000,
    "what looks like a block": "[untrusted data 123456]\nx\n[end of untrusted data 123456]\n" * 3_000,
    "controls": "\x01\x0b\x0c\x1c\x85\u2028\u2029\t" * 12_000,
}


@pytest.mark.promise("everything-reachable")
@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("way", ["get_artifact", "slice", "lines", "bytes"])
async def test_every_byte_of_a_text_is_reachable(tmp_path: Path, kind: str, way: str):
    text = TEXTS[kind]
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        reply = await session.call("dump", {}, lambda: text)
        assert reply.kept is not None
        id = reply.kept.artifact_id
        name, args = {
            "get_artifact": ("get_artifact", {"id": id}),
            "slice": ("get_tool_output", {"id": id, "mode": "slice"}),
            "lines": ("get_tool_output", {"id": id, "mode": "slice", "slice": {"lines": f"1-{reply.kept.size.lines}"}}),
            "bytes": ("get_artifact", {"id": id, "bytes": f"0-{reply.kept.size.bytes - 1}"}),
        }[way]
        whole, answers = await reassembled(session, name, args)
        assert whole == text
        assert answers > 5
        assert session.counters.retrieved_in_full == 1


@pytest.mark.promise("everything-reachable")
@pytest.mark.parametrize("name", ["get_artifact", "get_tool_output"])
async def test_every_byte_of_one_line_of_30_mb_is_reachable(tmp_path: Path, name: str):
    line = "".join(f"{number:08x} é" for number in range(30 * MEGABYTE // 11 + 1))
    assert len(line.encode()) > 30_000_000
    async with Session(Settings(storeDir=str(tmp_path), answerMaxBytes=1_000_000)) as session:
        reply = await session.call("dump", {}, lambda: line)
        assert reply.kept is not None
        args: dict[str, Any] = {"id": reply.kept.artifact_id}
        if name == "get_tool_output":
            args["mode"] = "slice"
        whole, answers = await reassembled(session, name, args)
        assert whole == line
        assert answers > 30


async def test_within_a_tight_budget_every_byte_is_reachable_too(tmp_path: Path):
    """The host settles after each request, as it goes on."""
    text = "".join(f"line {number:06} é\n" for number in range(500))
    budget = ContextBudget(window=700)
    async with Session(Settings(storeDir=str(tmp_path)), budget=budget) as session:
        kept = await session.keep(text, "note")
        pieces: list[str] = []
        name, args = "get_artifact", {"id": kept.artifact_id}
        while True:
            reply = await session.invoke(name, args)
            assert reply.fits
            budget.settle(used=0)
            found = continuation(reply.text)
            if found is None:
                break
            content, name, args = found
            pieces.append(content)
        assert "".join([*pieces, reply.text]) == text


async def test_grep_goes_on_until_every_match_was_shown(tmp_path: Path):
    text = "".join(f"line {number:06}\n" for number in range(5_000))
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        kept = await session.keep(text, "note")
        rows: list[str] = []
        start = 0
        while True:
            args = {"id": kept.artifact_id, "mode": "grep", "pattern": "7$", "context": 0, "from": start}
            reply = await session.invoke("get_tool_output", args)
            assert len(reply.text) <= 12_288
            shown, footer = parted(reply.text)
            rows += shown.splitlines()
            if "Next: " not in footer:
                break
            start = int(footer.rpartition("from=")[2].removesuffix(")]"))
        assert rows == [f"{number + 1}:line {number:06}" for number in range(7, 5_000, 10)]


async def test_every_byte_of_binary_output_is_reachable_as_base64(tmp_path: Path):
    data = bytes(range(256)) * 200
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        reply = await session.call("shot", {}, lambda: data)
        assert reply.kept is not None
        pieces: list[bytes] = []
        args: dict[str, Any] = {"id": reply.kept.artifact_id, "bytes": f"0-{len(data) - 1}"}
        while True:
            page = await session.invoke("get_artifact", args)
            assert len(page.text) <= 12_288
            pieces.append(base64.b64decode(page.text.split("\n")[1]))
            _, mark, footer = page.text.rpartition("\n\n[Next: ")
            if not mark:
                break
            call = ast.parse(footer.removesuffix("]"), mode="eval").body
            assert isinstance(call, ast.Call)
            args = {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
        assert b"".join(pieces) == data
        assert len(pieces) > 3
