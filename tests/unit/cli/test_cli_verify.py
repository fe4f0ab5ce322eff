"""`overspill verify`: damage is found, named and told by the exit code."""

import json
import os

import anyio
import pytest
from commands import Place

from overspill.retrieval.archive import Archive
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.files.store import FileStore


def test_unchanged_outputs_pass(place: Place):
    first, _ = place.keep(a="one", b="two" * 1_000_000)
    assert place.overspill("verify") == (0, "2 checked, 0 changed.\n", "")
    assert place.overspill("verify", first.handle) == (0, "1 checked, 0 changed.\n", "")
    assert json.loads(place.overspill("verify", first.id, "--json").out) == [
        {"artifact_id": first.artifact_id, "sound": True, "problem": ""}
    ]


def test_a_changed_byte_and_a_shortened_file_are_found(place: Place):
    changed, shortened, sound = place.keep(a="one", b="two two", c="three")
    place.file(changed).write_bytes(b"0ne")
    place.file(shortened).write_bytes(b"two")
    code, out, err = place.overspill("verify")
    assert (code, err) == (1, "")
    assert "3 checked, 2 changed." in out
    assert f"{changed.artifact_id}\tits bytes are not those that were stored: the SHA-256 differs" in out
    assert f"{shortened.artifact_id}\thas 3 bytes; 7 were stored" in out
    assert sound.artifact_id not in out
    assert place.overspill("verify", sound.artifact_id).code == 0


@pytest.mark.parametrize("trick", ["link", "folder", "pipe"])
def test_anything_else_in_place_of_an_output_is_damage_and_is_not_followed(place: Place, trick: str):
    kept, sound = place.keep(a="one", b="two")
    file = place.file(kept)
    file.unlink()
    secret = place.root / "secret"
    secret.write_text("one")
    {"link": lambda: file.symlink_to(secret), "folder": file.mkdir, "pipe": lambda: os.mkfifo(file)}[trick]()
    code, out, _ = place.overspill("verify")
    assert code == 1
    assert "2 checked, 1 changed." in out
    assert sound.artifact_id in place.overspill("artifacts", "list").out
    shown = place.overspill("artifacts", "show", kept.artifact_id)
    assert (shown.code, shown.out) == (2, "")
    assert shown.err.startswith("overspill: error: ")


def test_garbage_in_a_journal_is_skipped(place: Place):
    (kept,) = place.keep(a="one")
    journal = place.journal(kept)
    garbage = b'\xff\xfe\n{"event":"kept"}\nnull\n{"event":"job","t":1,"id":"../x","tool":"t","state":"ready"}\n[[[[\n\n'
    journal.write_bytes(journal.read_bytes() + garbage + b'{"event":"kept","t":9')
    assert place.overspill("verify") == (0, "1 checked, 0 changed.\n", "")
    assert kept.artifact_id in place.overspill("artifacts", "list").out
    assert place.overspill("jobs").code == 0
    assert place.overspill("stats").code == 0


def test_a_journal_that_claims_what_is_not_its_own_is_not_believed(place: Place):
    mine, other = place.keep(a="one")[0], place.keep(b="two")[0]
    lines = place.journal(other).read_bytes().replace(other.session.encode(), mine.session.encode()).splitlines(keepends=True)
    journal = place.journal(mine)
    journal.write_bytes(journal.read_bytes() + b"".join(line for line in lines if b'"kept"' in line))
    assert place.overspill("verify").out == "2 checked, 0 changed.\n"


def test_names_that_are_not_ours_are_not_touched(place: Place):
    (kept,) = place.keep(a="one")
    folder = place.file(kept).parent
    hostile = ["\x1b[2Jclear", "..x", "a b", "-rf", "session-nonsense"]
    for name in hostile:
        (folder / name).write_text("theirs")
        (place.store / name).mkdir()
    assert place.overspill("verify") == (0, "1 checked, 0 changed.\n", "")
    assert place.overspill("artifacts", "clean", "--force").code == 0
    assert sorted(file.name for file in folder.iterdir()) == sorted(hostile)


def test_a_session_that_cannot_be_read_is_named_and_the_others_are_shown(place: Place):
    broken, sound = place.keep(a="one")[0], place.keep(b="two")[0]
    journal = place.journal(broken)
    journal.unlink()
    journal.mkdir()
    code, out, err = place.overspill("artifacts", "list")
    assert code == 0
    assert sound.artifact_id in out
    assert broken.session in err or err == ""


def test_a_folder_of_another_user_is_skipped(place: Place):
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    theirs, mine = place.keep(a="one")[0], place.keep(b="two")[0]
    for path in (place.file(theirs).parent.parent, place.file(theirs).parent):
        os.chown(path, 12345, 12345)
    code, out, _ = place.overspill("artifacts", "list")
    assert code == 0
    assert theirs.artifact_id not in out
    if place.file(mine).parent.parent != place.file(theirs).parent.parent:
        assert mine.artifact_id in out
    assert place.overspill("artifacts", "show", theirs.artifact_id).code == 2


@pytest.mark.parametrize("ends", ["before it is opened", "while it is read"])
def test_a_session_that_ends_meanwhile_is_no_damage(place: Place, ends: str):
    store = FileStore(place.store)

    class Ending(FileStore):
        """Its sessions end after they were listed."""

        def read_shelf(self, session: str):
            if listed and ends == "before it is opened":
                store.close()
            shelf = super().read_shelf(session)
            if listed:
                store.close()
            return shelf

    listed = False

    async def run() -> None:
        nonlocal listed
        async with Session(Settings(retention="process"), store=store) as session:
            await session.keep("one", "a")
        archive = Archive([Ending(place.store)], warn=warnings.append)
        items = archive.items()
        listed = True
        assert (len(items), list(archive.verify(items)), warnings) == (1, [], [])

    warnings: list[str] = []
    anyio.run(run)
