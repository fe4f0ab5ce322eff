"""Scenario 2 of document 003: a medium file is truncated in its middle, with a marker, head and tail preserved."""

import re
from pathlib import Path

import pytest

from overspill import Session, Settings
from overspill.wording import replies as wording


def read_file(path: str) -> str:
    return Path(path).read_text()


@pytest.mark.promise("nothing-silently-cut")
async def test_a_medium_file_is_truncated_in_its_middle(tmp_path: Path):
    lines = [f"line {number:05}\n" for number in range(1, 2001)]
    content = "".join(lines)
    (tmp_path / "medium.txt").write_text(content)
    async with Session(Settings(preset="artifacts", storeDir=str(tmp_path / "store"))) as session:
        reply = await session.call("read_file", {"path": str(tmp_path / "medium.txt")}, read_file)
        shown, reference = (block["text"] for block in reply.content)
        assert len(shown) <= 8_000
        marker = re.search(r"\n\.\.\. \[([\d,]+) lines / ([\d,]+) chars omitted\] \.\.\.\n", shown)
        assert marker
        head, tail = shown.split(marker[0])
        omitted_lines, omitted_chars = (int(figure.replace(",", "")) for figure in marker.groups())
        assert content.startswith(head)
        assert content.endswith(tail)
        assert len(head) > len(tail) > 2_000
        assert len(head.splitlines()) + omitted_lines + len(tail.splitlines()) == 2_000
        assert len(head) + omitted_chars + len(tail) == len(content)
        assert reply.kept is not None
        assert reference.startswith(f"[Artifact: {reply.kept.artifact_id}] read_file: medium.txt (22 KB)\n")
        assert reference == wording.shortened_reference(reply.kept, "head_tail", len(shown))
        assert reply.text == f"{shown}\n\n{reference}"
        assert reply.kept.reason == "char_limit"
        assert session.open(reply.kept.artifact_id).text() == content
        assert reply.truncation is not None
        assert (reply.truncation.omitted_lines, reply.truncation.omitted_chars) == (omitted_lines, omitted_chars)
        assert (reply.truncation.strategy_used, reply.truncation.was_truncated) == ("head_tail", True)
        assert (reply.truncation.original_size, reply.truncation.truncated_size) == (len(content), len(shown))
        assert reply.truncation.artifact_id == reply.kept.artifact_id
