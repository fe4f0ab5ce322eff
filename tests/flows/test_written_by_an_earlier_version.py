"""A store and a client's file that an earlier version wrote: today's version reads, checks, continues and undoes them.

`written_before.tar.gz` holds a kept session named "old" (four outputs, an extraction and a job in its journal), a client's file
that `overspill wrap` changed, and that file as it was before.
"""

import hashlib
import json
import os
import tarfile
from pathlib import Path

import pytest
from commands import Place

from overspill.record.events import JobChanged, OutputExtracted, decode_events
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.files.store import FileStore

ARCHIVE = Path(__file__).parent / "written_before.tar.gz"
LOG, USERS, NOTE, BUILD = (
    "session-01a1e126-3d6f-7e17-9b31-2859bb35bc56/" + id
    for id in (
        "01a1e126-3d71-7d09-9352-543e62cb418d",
        "01a1e126-3e62-74b8-b5c0-c743c90fac66",
        "01a1e126-4117-70c4-8726-da1c5ed41338",
        "01a1e126-4124-7697-882a-3a88f011809d",
    )
)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(tmp_path, filter="tar")  # "data" would drop the owner-only modes of the folders
    for path in (tmp_path / "store").rglob("*"):
        os.utime(path)  # or the keep limits would remove it
    return Place(tmp_path, monkeypatch, capsys)


@pytest.mark.anyio
@pytest.mark.promise("nothing-lost")
async def test_a_kept_session_is_opened_again_with_all_its_outputs(place: Place):
    async with Session(Settings(store_dir=str(place.store)), name="old") as session:
        assert [(kept.handle, kept.tool) for kept in session.kept()] == [
            (LOG, "read_log"),
            (USERS, "list_users"),
            (NOTE, "notes"),
            (BUILD, "build"),
        ]
        for kept in session.kept():
            with session.open(kept.name) as by_name:  # it was stored before there were names
                assert by_name.kept == kept
            with session.open(kept.handle) as stored:
                assert hashlib.sha256(stored.bytes()).hexdigest() == kept.sha256
        page = await session.invoke("get_tool_output", {"id": LOG, "mode": "grep", "pattern": "request 97 "})
        assert "2026-01-08 request 97 timed out after 30 s" in page.text
        found = await session.extract(LOG, "which requests timed out?")
        assert "request 582 timed out" in found.text
        new = await session.keep("written today", "notes")
    async with Session(Settings(store_dir=str(place.store)), name="old") as session:
        assert [kept.id for kept in session.kept()][-1] == new.id


def test_commands_list_read_and_verify_it(place: Place):
    listed = json.loads(place.overspill("artifacts", "list", "--json").out)
    assert [item["tool"] for item in listed] == ["read_log", "list_users", "notes", "build"]
    assert place.overspill("artifacts", "show", NOTE).out.endswith("a note that was kept on request\n")
    verified = place.overspill("verify")
    assert (verified.code, verified.err) == (0, "")
    assert "4 checked" in verified.out
    assert place.overspill("stats").code == 0


def test_every_line_of_its_journal_is_understood(place: Place):
    shelf = FileStore(place.store).read_shelf(LOG[8:44])
    happened = list(decode_events(shelf.journal()))
    assert len(happened) == len(list(shelf.journal())) == 12
    assert [event.state for event in happened if isinstance(event, JobChanged)] == ["queued", "running", "ready"]
    assert [len(event.quotes) for event in happened if isinstance(event, OutputExtracted)] == [7]


@pytest.mark.promise("every-quote-checked")
def test_verify_notices_a_changed_byte_in_it(place: Place):
    (path,) = place.store.glob(f"*/{LOG}")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"request 97 timed", b"request 98 timed"))
    checked = place.overspill("verify")
    assert checked.code == 1
    assert "the SHA-256 differs" in checked.out


def test_unwrap_restores_a_client_file_that_was_wrapped_then(place: Place):
    file = place.root / "mcp.json"
    assert place.overspill("unwrap", str(file)).code == 0
    assert file.read_text() == (place.root / "before.json").read_text()
