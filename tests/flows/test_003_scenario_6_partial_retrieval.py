"""Scenario 6 of document 003: of an artifact only the lines asked for are returned."""

from pathlib import Path

import pytest

from overspill import Session, Settings


def read_file(path: str) -> str:
    return Path(path).read_text()


@pytest.mark.parametrize(
    ("asked", "first", "last"),
    [
        ({"start_line": 500, "end_line": 510}, 500, 510),
        ({"lines": "1-1"}, 1, 1),
        ({"lines": "5999-9999"}, 5999, 6000),
        ({"start_line": 5990}, 5990, 6000),
        ({"end_line": 3}, 1, 3),
    ],
)
async def test_only_the_requested_lines_are_returned(tmp_path: Path, asked: dict[str, object], first: int, last: int):
    lines = [f"line {number:06}\n" for number in range(1, 6_001)]
    (tmp_path / "large.txt").write_text("".join(lines))
    async with Session(Settings(preset="artifacts", storeDir=str(tmp_path / "store"))) as session:
        reply = await session.call("read_file", {"path": str(tmp_path / "large.txt")}, read_file)
        assert reply.kept is not None
        part = await session.invoke("get_artifact", {"artifact_id": reply.kept.artifact_id, **asked})
        assert part.text == "".join(lines[first - 1 : last])
        assert (part.is_error, part.kept) == (False, None)
