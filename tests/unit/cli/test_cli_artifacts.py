"""`overspill artifacts`: list, show, info, export, clean; and what it says when something is not as it should be."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from commands import RUN, SOURCE, Place, on_a_terminal

from overspill.session.session import Session
from overspill.settings import Settings
from overspill.settings.keys import PresetName
from overspill.store.files.store import FileStore
from overspill.types import Reply, ToolCall

LINES = "".join(f"line {n}\n" for n in range(1, 101))
NOBODY = "art_1794723580256_0000000000000000000"


def test_an_empty_or_missing_store_lists_nothing(place: Place):
    assert place.overspill("artifacts", "list") == (0, "No stored outputs.\n", "")
    assert place.overspill("artifacts", "list", "--json") == (0, "[]\n", "")
    assert place.overspill("artifacts", "clean") == (0, "Nothing to remove.\n", "")


@pytest.mark.parametrize("group", ["artifacts", "snapshot"])
def test_the_help_of_a_group_cuts_no_line(place: Place, group: str):
    assert "..." not in place.overspill(group, "--help").out.partition("Commands:")[2]


def test_stored_outputs_are_listed_oldest_first(place: Place):
    first, second = place.keep(report="x" * 2_300_000, log=LINES)
    code, out, _ = place.overspill("artifacts", "list")
    rows = [line for line in out.splitlines() if "art_" in line]
    assert code == 0
    assert out.splitlines()[0] == "ID\tName\tSize\tLines\tSource\tServer\tStored\tSession"
    assert [row.split("\t")[:5] for row in rows] == [
        [first.artifact_id, first.name, "2.3 MB", "1", "report"],
        [second.artifact_id, second.name, "792 bytes", "100", "log"],
    ]
    assert all("closed" in row for row in rows)
    code, seen = on_a_terminal("artifacts", "list")
    assert (code, "Session Artifacts" in seen.splitlines()[0]) == (0, True)
    assert "\x1b" not in on_a_terminal("artifacts", "list", "--color", "never")[1]
    lines = place.overspill("artifacts", "list", "--jsonl").out.splitlines()
    assert [json.loads(line)["artifact_id"] for line in lines] == [first.artifact_id, second.artifact_id]
    assert len(place.overspill("artifacts", "list", "--json").out.splitlines()) == 1


def test_the_list_in_json_has_everything_that_is_known(place: Place):
    (kept,) = place.keep(log=LINES)
    (facts,) = json.loads(place.overspill("artifacts", "list", "--json").out)
    assert facts["stored_at"].endswith("+00:00")
    assert facts | {"stored_at": ""} == {
        "artifact_id": kept.artifact_id,
        "name": kept.name,
        "handle": kept.handle,
        "tool": "log",
        "server": "",
        "source": "log",
        "reason": "requested",
        "media": "text",
        "bytes": 792,
        "chars": 792,
        "lines": 100,
        "tokens": kept.size.tokens,
        "tokens_estimated": False,
        "sha256": kept.sha256,
        "stored_at": "",
        "missing": "",
        "session_name": "",
        "retention": "keep",
        "live": False,
    }
    assert json.loads(place.overspill("artifacts", "info", kept.handle, "--json").out) == facts


def test_info_is_a_table_of_facts(place: Place):
    (kept,) = place.keep(log=LINES)
    code, out, _ = place.overspill("artifacts", "info", kept.id)
    assert code == 0
    assert f"\nHandle\t{kept.handle}\n" in out
    assert "\nSize\t792 bytes, 792 characters, 100 lines\n" in out
    assert f"│ Handle  │ {kept.handle} │" in on_a_terminal("artifacts", "info", kept.id, columns=200)[1]
    assert "Not complete" not in out


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ([], LINES),
        (["--lines", "3-4"], "line 3\nline 4\n"),
        (["--lines", "100-5000"], "line 100\n"),
        (["--lines", "7"], "line 7\n"),
        (["--bytes", "0-3"], "line"),
        (["--bytes", "790-9999"], "0\n"),
    ],
)
def test_show_prints_the_whole_or_a_part(place: Place, options: list[str], shown: str):
    (kept,) = place.keep(log=LINES)
    assert place.overspill("artifacts", "show", kept.artifact_id, *options) == (0, shown, "")


def test_show_in_json_gives_the_position_of_the_part(place: Place):
    text, binary = place.keep(log=LINES, blob=b"\x00\xff\x00")
    shown = json.loads(place.overspill("artifacts", "show", text.artifact_id, "--lines", "2-2", "--json").out)
    assert shown == {
        "artifact_id": text.artifact_id,
        "start_byte": 7,
        "end_byte": 14,
        "total_bytes": 792,
        "text": "line 2\n",
    }
    assert json.loads(place.overspill("artifacts", "show", binary.artifact_id, "--json").out)["base64"] == "AP8A"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--lines", "101-200"], "--lines 101-200: the output has 100 lines, counted from 1."),
        (["--lines", "0-1"], "--lines 0-1: the output has 100 lines, counted from 1."),
        (["--lines", "9-3"], "--lines 9-3: the first line is after the last."),
        (["--lines", "-3"], "--lines must look like \"100-200\", not '-3'."),
        (["--lines", ""], "--lines must look like \"100-200\", not ''."),
        (["--bytes", "x"], "--bytes must look like \"100-200\", not 'x'."),
        (["--bytes", "792-800"], "--bytes 792-800: the output has 792 bytes, counted from 0."),
        (["--bytes", "8-1"], "--bytes 8-1: the first byte is after the last."),
        (["--lines", "9" * 5000], "--lines must look like"),
    ],
)
def test_a_range_that_cannot_be_shown_is_a_mistake(place: Place, options: list[str], problem: str):
    (kept,) = place.keep(log=LINES)
    code, out, err = place.overspill("artifacts", "show", kept.artifact_id, *options)
    assert (code, out) == (2, "")
    assert err.startswith(f"overspill: error: {problem}")


def test_lines_and_bytes_cannot_be_combined(place: Place):
    (kept,) = place.keep(log=LINES)
    code, _, err = place.overspill("artifacts", "show", kept.artifact_id, "--lines", "1", "--bytes", "1")
    assert code == 2
    assert "Use --lines or --bytes, not both." in err


@pytest.mark.parametrize("command", [["artifacts", "show"], ["artifacts", "info"], ["verify"], ["artifacts", "export"]])
@pytest.mark.parametrize(
    ("id", "problem"),
    [
        ("nonsense", "overspill: error: 'nonsense' is not a handle."),
        ("../../etc/passwd", "overspill: error: '../../etc/passwd' is not a handle."),
        (NOBODY, f"overspill: error: Nothing is stored under '{NOBODY}'. `overspill artifacts list` shows what is stored.\n"),
    ],
)
def test_an_unknown_id_is_a_mistake(place: Place, command: list[str], id: str, problem: str):
    code, out, err = place.overspill(*command, id, *(["file"] if command[-1] == "export" else []))
    assert (code, out) == (2, "")
    assert err.startswith(problem)


def test_an_export_has_the_exact_bytes_and_only_its_owner_can_read_it(place: Place):
    (kept,) = place.keep(blob=bytes(range(256)) * 10_000)
    code, out, err = place.overspill("artifacts", "export", kept.artifact_id, "copy")
    assert (code, out, err) == (0, "", "overspill: Wrote 2,560,000 bytes to copy.\n")
    assert Path("copy").read_bytes() == bytes(range(256)) * 10_000
    assert Path("copy").stat().st_mode & 0o777 == 0o600
    exported = json.loads(place.overspill("artifacts", "export", kept.artifact_id, "other", "--json").out)
    assert exported == {"artifact_id": kept.artifact_id, "file": "other", "bytes": 2_560_000}


def test_an_export_overwrites_only_when_told_to(place: Place):
    (kept,) = place.keep(log=LINES)
    Path("there").write_text("mine")
    code, _, err = place.overspill("artifacts", "export", kept.artifact_id, "there")
    assert (code, err) == (2, "overspill: error: there already exists. Choose another name, or overwrite it with --force.\n")
    assert Path("there").read_text() == "mine"
    assert place.overspill("artifacts", "export", kept.artifact_id, "there", "--force").code == 0
    assert Path("there").read_text() == LINES


@pytest.mark.parametrize(("target", "why"), [("no/such/folder", "No such file or directory"), (".", "Is a directory")])
def test_an_export_that_cannot_be_written_says_why(place: Place, target: str, why: str):
    (kept,) = place.keep(log=LINES)
    code, _, err = place.overspill("artifacts", "export", kept.artifact_id, target, "--force")
    assert (code, err) == (2, f"overspill: error: Could not write {target}: {why}.\n")


def test_clean_needs_a_terminal_to_ask_on(place: Place):
    place.keep(log=LINES)
    refused = place.process("artifacts", "clean", stdin=subprocess.DEVNULL, capture_output=True)
    assert refused.returncode == 2
    assert refused.stderr == (
        b"overspill: error: This would remove 1 stored output (792 bytes), and there is no terminal to confirm it on. "
        b"Use --force.\n"
    )
    assert "art_" in place.overspill("artifacts", "list").out


def test_clean_removes_what_closed_sessions_left(place: Place):
    place.keep(log=LINES, other="y" * 1500)
    assert place.overspill("artifacts", "clean", "--force") == (0, "Removed 2 stored outputs (2 KB).\n", "")
    assert place.overspill("artifacts", "list").out == "No stored outputs.\n"
    (kept,) = place.keep(log=LINES)
    removed = json.loads(place.overspill("artifacts", "clean", "--force", "--json").out)
    assert removed == {"removed": 1, "bytes": 792, "sessions": [kept.session]}


@pytest.mark.parametrize("preset", ["overspill", "tool_output", "artifacts", "slow"])
def test_a_terminal_lists_outputs_by_the_ids_that_messages_show(place: Place, preset: PresetName):
    async def call() -> Reply:
        store = FileStore(place.store)
        async with Session(Settings(preset, retention="keep"), store=store) as session:
            reply = await session.call("read", {}, lambda: LINES * 500)
        store.close()
        return reply

    reply = anyio.run(call)
    assert reply.kept
    code, seen = on_a_terminal("artifacts", "list", "--preset", preset, "--set", f"storeDir={place.store}")
    assert code == 0
    ids = (reply.kept.name, reply.kept.artifact_id)
    assert [id in seen for id in ids] == ([True, False] if preset == "overspill" else [False, True])
    if preset != "tool_output":  # whose messages show the handle
        assert [id in reply.text for id in ids] == [id in seen for id in ids]


def test_an_id_is_never_broken_so_that_it_can_be_copied(place: Place):
    async def call() -> list[Reply]:
        store = FileStore(place.store)
        async with Session(Settings(retention="keep"), store=store) as session:
            calls = [ToolCall("1", "read_text_file", {"path": "access.log"}, server="files")]
            replies = await session.turn(calls, lambda _: LINES * 30)
        store.close()
        return replies

    (reply,) = anyio.run(call)
    assert reply.kept
    code, seen = on_a_terminal("artifacts", "list", columns=80)
    assert code == 0
    content = seen.partition("├")[2].splitlines()[1:-1]
    (first, *others) = [line.strip("│").split("│") for line in content]
    assert [cell.strip() for cell in first[:3]] == [reply.kept.name, "24 KB", "3,000"]
    assert "".join(row[3].strip() for row in (first, *others)) == "read_text_file:access.log"
    assert {len(line) for line in content} == {80}
    header, row = [line.split("\t") for line in place.overspill("artifacts", "list").out.splitlines()]
    assert header == ["ID", "Name", "Size", "Lines", "Source", "Server", "Stored", "Session"]
    assert row[:6] == [reply.kept.artifact_id, reply.kept.name, "24 KB", "3,000", "read_text_file: access.log", "files"]


def test_stored_text_cannot_control_a_terminal(place: Place):
    text, binary = place.keep(evil="\x1b]0;owned\x07 \x9b31m \u202e ok\n€", blob=b"\x00\x01\xff")
    code, seen = on_a_terminal("artifacts", "show", text.artifact_id)
    assert (code, seen) == (0, "\\x1b]0;owned\\x07 \\x9b31m \\u202e ok\r\n€\r\n")
    code, seen = on_a_terminal("artifacts", "show", binary.artifact_id)
    assert code == 2
    assert f"{binary.artifact_id} is not text. Save it with `overspill artifacts export" in seen


@pytest.mark.slow
def test_clean_can_be_declined(place: Place):
    place.keep(log=LINES)
    code, seen = on_a_terminal("artifacts", "clean", answer=b"n\n")
    assert code == 0
    # A terminal may echo the answer before the blank that follows the question.
    assert "Remove1storedoutput(792bytes)?[y/N]:n" in seen.replace(" ", "")
    assert "Nothing removed." in seen
    code, seen = on_a_terminal("artifacts", "clean", answer=b"y\n")
    assert (code, "Removed 1 stored output (792 bytes)." in seen) == (0, True)


@pytest.mark.slow
def test_control_c_ends_with_130(place: Place):
    place.keep(log=LINES)
    code, seen = on_a_terminal("artifacts", "clean", answer=signal.SIGINT)
    assert code == 130
    assert "Traceback" not in seen


@pytest.mark.slow
def test_a_reader_that_goes_away_and_a_closed_output_leave_no_traceback(place: Place):
    (kept,) = place.keep(log=LINES * 20_000)
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    with subprocess.Popen(
        [sys.executable, "-c", RUN, "artifacts", "show", kept.artifact_id], stdout=-1, stderr=-1, env=env
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(6) == b"line 1"
        process.stdout.close()
        assert process.stderr.read() == b""
    commands = (["artifacts", "list"], ["artifacts", "show", kept.artifact_id], ["stats"], ["verify"], ["jobs"], ["--version"])
    for command in (*commands, ["stats", "--json"], ["--help"], ["config"], ["proxy", "--", "cat"]):
        shell = f'exec "{sys.executable}" -c "{RUN}" {" ".join(command)} >&-'
        closed = subprocess.run(["/bin/sh", "-c", shell], env=env, capture_output=True, timeout=60, check=False)
        lost = b"overspill: error: Standard output is closed, so the output is lost. Send it to a file, or to /dev/null.\n"
        assert (closed.returncode, closed.stderr) == (2, lost)


@pytest.mark.parametrize("command", [("artifacts", "list"), ("stats",), ("jobs",), ("doctor",)])
def test_a_missing_working_directory_is_reported(place: Place, command: tuple[str, ...]):
    (place.root / "cwd").rmdir()
    gone = "overspill: error: The working directory no longer exists. Change to another one and try again.\n"
    assert place.overspill(*command) == (2, "", gone)


@pytest.mark.slow
def test_characters_outside_the_locale_are_escaped_except_in_json(place: Place):
    (kept,) = place.keep(**{"grüße 🙂": LINES})
    old = {**os.environ, "PYTHONIOENCODING": "latin-1"}
    table = place.process("artifacts", "info", kept.artifact_id, env=old, capture_output=True)
    assert (table.returncode, table.stderr) == (0, b"")
    assert "grüße \\U0001f642" in table.stdout.decode("latin-1")
    facts = place.process("artifacts", "info", kept.artifact_id, "--json", env=old, capture_output=True)
    assert json.loads(facts.stdout.decode("utf-8"))["tool"] == "grüße 🙂"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize("args", [("list",), ("list", "--json"), ("show",), ("export",)])
@pytest.mark.slow
def test_a_full_disk_under_standard_output_is_reported_in_one_line(place: Place, args: tuple[str, ...]):
    (kept,) = place.keep(log=LINES)
    rest = {"show": (kept.artifact_id,), "export": (kept.artifact_id, "-")}.get(args[0], ())
    with open("/dev/full", "wb") as full:
        done = place.process("artifacts", *args, *rest, stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, b"overspill: error: Reading or writing failed: No space left on device.\n")


def test_a_session_with_a_damaged_journal_is_named_and_left_alone(place: Place):
    (kept,) = place.keep(log=LINES)
    place.file(kept).with_name("journal.jsonl").write_bytes(b"\xff\x00 no journal\n" * 3)
    told = (
        f"overspill: warning: Session {kept.session} is skipped: its journal is damaged, "
        f"so there is no record of what it stored. Its files are still in the folder session-{kept.session}. "
        "Remove that folder yourself if you do not need them.\n"
    )
    assert place.overspill("artifacts", "list") == (0, "No stored outputs.\n", told)
    assert place.overspill("artifacts", "clean", "--force") == (0, "Nothing to remove.\n", told)
    assert place.file(kept).read_text() == LINES


@pytest.mark.parametrize("hostile", ["link", "file"])
def test_a_broken_store_in_a_repository_does_not_hide_the_others(place: Place, hostile: str) -> None:
    (kept,) = place.keep(notes="mine")
    Path(".overspill").mkdir()
    target = Path(".overspill/artifacts")
    target.symlink_to(place.root) if hostile == "link" else target.write_text("")
    code, out, err = place.overspill("artifacts", "list", "--json")
    assert (code, [each["handle"] for each in json.loads(out)]) == (0, [kept.handle])
    assert err.count("\n") == 1
    assert str(target.absolute()) in err
    assert err.endswith("Skipping it.\n")
