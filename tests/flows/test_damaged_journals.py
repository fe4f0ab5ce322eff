"""A store that somebody else has written to: what cannot be read is damaged, whatever it is, and the rest stays usable."""

from __future__ import annotations

from pathlib import Path

import pytest
from every_store import EVERY_STORE, MAKERS

from overspill import Session, Settings, handles
from overspill.errors import StoreError
from overspill.retrieval.archive import Archive
from overspill.store.files.store import FileStore
from overspill.store.protocols import Store

pytestmark = [pytest.mark.anyio]
DEEP = b"[" * 100_000 + b"]" * 100_000
DAMAGED = {
    "a deep event": b'{"event":"kept","t":1,"more":' + DEEP + b"}\n",
    "an endless event": b'{"event":"kept","kept":' + b'{"kept":' * 100_000 + b"\n",
    "no JSON": b"\xff\xfe\x00\n",
    "no line": DEEP + b"\n",
}


@pytest.fixture(params=EVERY_STORE)
def store(request: pytest.FixtureRequest) -> Store:
    return MAKERS[request.param](request)()


@pytest.mark.parametrize("line", DAMAGED.values(), ids=DAMAGED)
async def test_a_journal_with_a_damaged_line_is_read_without_it(store: Store, line: bytes):
    shelf = store.open_shelf(handles.new(), name=f"team/{handles.new()}", retention="keep")
    shelf.append_journal(line)
    shelf.close()
    assert Archive([store]).items() == []
    async with Session(name="team", shared=True, store=store) as session:
        assert session.notice() == ""
        assert session.kept() == []
        kept = await session.keep("text", "note")
        assert session.open(kept.name).text() == "text"
    store.close()


UNKNOWN = {
    "a reason of a later version": (b'"reason":"requested"', b'"reason":"of a later version"'),
    "an event of a later version": (b'"event":"kept"', b'"event":"kept2"'),
    "a damaged event": (b'"reason"', b"\xff"),
}


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize(("known", "unknown"), UNKNOWN.values(), ids=UNKNOWN)
async def test_an_output_whose_record_is_not_understood_is_kept(tmp_path: Path, known: bytes, unknown: bytes):
    settings = Settings(storeDir=str(tmp_path), retention="keep")
    async with Session(settings, name="mine") as session:
        kept = await session.keep("text", "note")
    (journal,) = tmp_path.glob("*/session-*/journal*")
    written = journal.read_bytes()
    journal.write_bytes(written.replace(known, unknown))
    async with Session(settings, name="mine") as session:
        assert session.kept() == []
    journal.write_bytes(written)
    async with Session(settings, name="mine") as session:
        assert session.open(kept.name).text() == "text"


def damage_file(root: Path, line: bytes) -> None:
    (journal,) = root.glob("*/session-*/journal*")
    journal.write_bytes(line)


@pytest.mark.parametrize("line", [b'{"event":"session","session":"x","deep":' + DEEP[:1500] * 2 + b"\n", b"{}\n", b"\xff\n"])
async def test_a_session_whose_opening_in_a_file_is_damaged_is_kept(tmp_path: Path, line: bytes):
    async with Session(Settings(storeDir=str(tmp_path), retention="keep")) as session:
        await session.keep("text", "note")
    damage_file(tmp_path, line)
    store = FileStore(tmp_path)
    (label,) = store.shelves()
    assert (label.name, label.retention) == ("", "keep")
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        assert (await session.call("add", {}, lambda: "3")).text == "3"
    assert store.label(label.session) == label
    said: list[str] = []
    assert Archive([store], said.append).items() == []
    assert "damaged" in "".join(said)


@pytest.mark.slow
@pytest.mark.parametrize("line", [b'{"event":"session","session":"x","deep":' + DEEP, b"{}\n", b"\xff\n"])
async def test_a_session_whose_opening_in_a_bucket_is_damaged_is_kept(s3_url: str, line: bytes):
    from overspill.store.objects.bucket import Bucket  # noqa: PLC0415  # only where the package is
    from overspill.store.objects.store import ObjectStore  # noqa: PLC0415

    store = ObjectStore(s3_url)
    async with Session(name="mine", store=store) as session:
        kept = await session.keep("text", "note")
    bucket = Bucket(s3_url)
    bucket.put(f"openings/{kept.session}", line)
    other = ObjectStore(s3_url)
    assert [(label.name, label.retention) for label in other.shelves()] == [("", "keep")]
    assert other.label(kept.session).retention == "keep"
    assert Archive([other]).find(kept.handle).kept == kept
    bucket.put(next(item.key for item in bucket.list("names/")), b'{"session":' + DEEP)
    with pytest.raises(StoreError, match="The name 'mine' is damaged"):
        await Session(name="mine", store=other).begin()
    bucket.put(f"journal/{kept.session}/no-entry")
    said: list[str] = []
    assert Archive([other], said.append).items() == []
    assert "Its journal is damaged" in "".join(said)
    store.close()
    other.close()


@pytest.mark.slow
async def test_an_entry_that_claims_endless_writes_costs_nothing(s3_url: str):
    from overspill.store.objects.bucket import Bucket  # noqa: PLC0415  # only where the package is
    from overspill.store.objects.store import ObjectStore  # noqa: PLC0415

    store = ObjectStore(s3_url)
    shelf = store.open_shelf(handles.new(), retention="keep")
    shelf.append_journal(b"{}\n")
    Bucket(s3_url).put(f"journal/{shelf.session}/0000000000000.other.00000000.99999999", b"[]\n")
    assert list(shelf.journal())[1:] == [b"[]\n", b"{}\n"]
    store.close()
