"""Scenario 1 of document 003: a small file passes whole, unmarked, and no artifact is made."""

from pathlib import Path

from overspill import Session, Settings


def read_file(path: str) -> str:
    return Path(path).read_text()


async def test_a_small_file_passes_whole(tmp_path: Path):
    content = "".join(f"line {number}\n" for number in range(1, 850))
    assert 7_000 < len(content) < 8_000
    (tmp_path / "small.txt").write_text(content)
    store = tmp_path / "store"
    async with Session(Settings(preset="artifacts", storeDir=str(store))) as session:
        reply = await session.call("read_file", {"path": str(tmp_path / "small.txt")}, read_file)
        assert reply.text == content
        assert "omitted" not in reply.text
        assert "[Artifact:" not in reply.text
        assert (reply.kept, reply.truncation, session.counters.kept) == (None, None, 0)
        assert [path.name for path in store.rglob("session-*/*") if not path.name.startswith(("journal", "lock"))] == []


async def test_a_file_of_exactly_the_limit_passes_whole(tmp_path: Path):
    (tmp_path / "limit.txt").write_text("é" * 8_000)
    async with Session(Settings(preset="artifacts", storeDir=str(tmp_path / "store"))) as session:
        reply = await session.call("read_file", {"path": str(tmp_path / "limit.txt")}, read_file)
        assert (reply.text, reply.kept) == ("é" * 8_000, None)
