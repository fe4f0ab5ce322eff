"""Two sessions in one place, and two processes: nobody reads what is somebody else's."""

import json
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from overspill import Session, Settings

OTHER = """
import json, sys
from overspill import Settings, SyncSession
with SyncSession(Settings(storeDir=sys.argv[1])) as session:
    answers = []
    for spelling in json.loads(sys.argv[2]):
        answers.append(session.invoke("get_artifact", {"id": spelling}).text)
        answers.append(session.invoke("get_tool_output", {"id": spelling, "mode": "slice"}).text)
        answers.append(session.invoke("tool_output", {"handle": spelling, "extract": "everything"}).text)
        answers.append(session.call("send", {"x": "{{output:" + spelling + "}}"}, lambda x: x).text)
        try:
            answers.append(session.open(spelling).text())
        except Exception as error:
            answers.append(str(error))
    print(json.dumps(answers))
"""


@pytest.mark.promise("nobody-elses")
async def test_another_process_cannot_resolve_a_handle_of_a_live_session(tmp_path: Path):
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        reply = await session.call("dump", {}, lambda: "confidential\n" * 2000)
        assert reply.kept is not None
        kept = reply.kept
        spellings = json.dumps([kept.name, kept.handle, kept.artifact_id, kept.id, f"../session-{session.id}/{kept.id}"])
        done = ask_as_another(tmp_path, spellings)
        answers = json.loads(done)
        assert len(answers) == 25
        assert not any("confidential\nconfidential" in answer for answer in answers)
        assert session.open(kept.handle).text() == "confidential\n" * 2000


def ask_as_another(place: Path, spellings: str) -> str:
    command = [sys.executable, "-c", OTHER, str(place), spellings]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


async def test_ids_are_unguessable_and_files_belong_to_their_owner_alone(tmp_path: Path):
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        ids = {(await session.keep("x", "note")).id for _ in range(200)}
        assert len({id[-12:] for id in ids}) == 200
        for path in tmp_path.rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) & 0o077 == 0


async def test_a_name_of_the_hosts_choice_opens_no_door(tmp_path: Path):
    async with Session(Settings(storeDir=str(tmp_path)), name="mine") as mine:
        kept = await mine.keep("private", "note")
    async with Session(Settings(storeDir=str(tmp_path)), name="other") as other:
        reply = await other.invoke("get_artifact", {"id": kept.handle})
        assert reply.is_error
    async with Session(Settings(storeDir=str(tmp_path)), name="mine") as mine:
        assert (await mine.invoke("get_artifact", {"id": kept.handle})).text == "private"
