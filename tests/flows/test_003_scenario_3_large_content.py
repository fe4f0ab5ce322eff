"""Scenario 3 of document 003: a large file becomes an artifact; the reference leads to it."""

import re
from pathlib import Path

from frames import parted

from overspill import Session, Settings


def read_file(path: str) -> str:
    return Path(path).read_text()


async def test_a_large_file_becomes_an_artifact(tmp_path: Path):
    content = "".join(f"line {number:06}\n" for number in range(1, 10_001))
    (tmp_path / "large.txt").write_text(content)
    async with Session(Settings(preset="artifacts", storeDir=str(tmp_path / "store"))) as session:
        offered = session.tools()
        assert [tool["name"] for tool in offered] == ["get_artifact"]
        reply = await session.call("read_file", {"path": str(tmp_path / "large.txt")}, read_file)
        assert reply.kept is not None
        id = reply.kept.artifact_id
        assert reply.text == (
            f"[Artifact: {id}] read_file: large.txt (120 KB)\n"
            "\n"
            "Use the get_artifact tool to retrieve specific portions:\n"
            f'- get_artifact(id="{id}") for full content\n'
            f'- get_artifact(id="{id}", lines="1-100") for first 100 lines'
        )
        assert session.tools() == offered

        facts = reply.truncation
        assert facts is not None
        assert (facts.original_size, facts.truncated_size, facts.omitted_lines, facts.omitted_chars) == (
            120_000,
            0,
            10_000,
            120_000,
        )
        assert (facts.strategy_used, facts.was_truncated, facts.artifact_id) == ("reference", True, id)
        found = re.search(r"\[Artifact: (\S+)\]", reply.text)
        assert found
        full = await session.invoke("get_artifact", {"artifact_id": found[1]})
        assert len(full.text) <= 50_000
        assert parted(full.text)[0].startswith("line 000001\nline 000002\n")
        assert f'Next: get_artifact(id="{id}", lines="' in full.text
        part = await session.invoke("get_artifact", {"id": id, "lines": "1-100"})
        assert part.text == content[:1200]
        assert session.open(id).text() == content
