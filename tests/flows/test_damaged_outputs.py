"""Another program shortens or extends the file of a stored output: every way to read it says so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from commands import Place

from overspill import Session, Settings
from overspill.errors import StoreError

LINES = "".join(f"line {number}\n" for number in range(1, 5_001))
WAYS = [
    ("get_tool_output", {"mode": "raw"}),
    ("get_tool_output", {"mode": "slice", "slice": {"lines": "4000-4010"}}),
    ("get_tool_output", {"mode": "slice", "slice": {"start": 40_000, "length": 50}}),
    ("get_tool_output", {"mode": "grep", "pattern": "line 4321"}),
    ("get_tool_output", {"mode": "extract", "query": "line 4321"}),
    ("get_artifact", {"lines": "4000-4010"}),
    ("tool_output", {"extract": "line 4321"}),
]


@pytest.mark.anyio
@pytest.mark.parametrize("was_read_before", [False, True])
@pytest.mark.parametrize("size", [0, 5, 40_000, 60_000])
async def test_a_file_of_another_length_is_damaged_however_it_is_read(tmp_path: Path, size: int, was_read_before: bool):
    async with Session(Settings(storeDir=str(tmp_path), toolResponseMaxBytes=20_000)) as session:
        kept = (await session.call("read_log", {}, lambda: LINES)).kept
        assert kept is not None
        names = {"tool_output": "handle", "get_artifact": "id", "get_tool_output": "id"}
        if was_read_before:
            for tool, arguments in WAYS:
                await session.invoke(tool, {names[tool]: kept.handle, **arguments})
        held = session.open(kept.handle)
        (file,) = tmp_path.glob(f"*/{kept.handle}")
        os.truncate(file, size)
        damaged = f"is damaged on disk: it has {size:,} bytes; {len(LINES):,} were stored. Call read_log again."
        for tool, arguments in WAYS:
            reply = await session.invoke(tool, {names[tool]: kept.handle, **arguments})
            assert damaged in reply.text, (tool, arguments)
        reply = await session.call("send", {"body": f"{{{{output:{kept.handle}}}}}"}, lambda body: body)
        assert damaged in reply.text
        for read in (held.text, held.lines, lambda: held.grep("line"), lambda: held.query("/a")):
            with pytest.raises(StoreError, match="is damaged on disk"):
                read()
        with pytest.raises(StoreError, match="is damaged on disk"):
            session.open(kept.handle)
        with pytest.raises(StoreError, match="is damaged on disk"):
            await session.extract(kept.handle, "line 4321")


def test_the_commands_show_what_is_left_and_warn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    place = Place(tmp_path, monkeypatch, capsys)
    (kept,) = place.keep(a=LINES)
    os.truncate(place.file(kept), 7)
    warning = f"overspill: warning: {kept.artifact_id} is damaged on disk: it has 7 bytes; 48,893 were stored.\n"
    assert place.overspill("artifacts", "show", kept.artifact_id) == (0, "line 1\n", warning)
    assert '"text":"line 1\\n"' in place.overspill("artifacts", "show", kept.artifact_id, "--json").out
    code, _, err = place.overspill("artifacts", "export", kept.artifact_id, "left.txt")
    assert (code, err.startswith(warning), Path("left.txt").read_text()) == (0, True, "line 1\n")
