"""Scenario 5 of document 003: a search with many results stays valid JSON, with its first and last elements and a count."""

import json
from pathlib import Path
from typing import Any

from overspill import Session, Settings


def search_files(directory: str, pattern: str) -> list[dict[str, Any]]:
    paths = sorted(Path(directory).glob(pattern))
    return [{"path": path.name, "size": path.stat().st_size, "line": path.read_text()} for path in paths]


async def test_many_results_stay_valid_json(tmp_path: Path):
    (place := tmp_path / "files").mkdir()
    for number in range(300):
        (place / f"file{number:03}.txt").write_text(f"match number {number}")
    async with Session(Settings(preset="artifacts", storeDir=str(tmp_path / "store"))) as session:
        reply = await session.call("search_files", {"directory": str(place), "pattern": "*.txt"}, search_files)
        shown, reference = (block["text"] for block in reply.content)
        value = json.loads(shown)
        assert [each["path"] for each in value[:5]] == [f"file{number:03}.txt" for number in range(5)]
        assert [each["path"] for each in value[-5:]] == [f"file{number:03}.txt" for number in range(295, 300)]
        assert value[5:-5] == ["... 290 items omitted ..."]
        assert len(shown) <= 8_000
        assert reply.kept is not None
        assert reference.startswith(
            f"[Artifact: {reply.kept.artifact_id}] search_files: files (18 KB)\nShortened by element to {len(shown)} of "
        )
        assert reply.truncation is not None
        assert reply.truncation.strategy_used == "element"
        assert json.loads(session.open(reply.kept.handle).text()) == search_files(str(place), "*.txt")
        found = await session.invoke("get_artifact", {"id": reply.kept.artifact_id, "query": "/150/path"})
        assert found.text == "file150.txt"
