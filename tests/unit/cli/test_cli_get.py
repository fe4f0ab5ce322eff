"""`overspill get`: a bounded part of a stored output, and the command that prints the next part."""

from __future__ import annotations

import gzip
import json
import re
import shlex

import pytest
from commands import Place

LINES = "".join(f"line {number} of many\n" for number in range(1, 5001))


def get(place: Place, data: str | bytes, *options: str) -> tuple[int, str, str]:
    (kept,) = place.keep(log=data)
    return place.overspill("get", kept.name, *options)


def follow(place: Place, out: str) -> list[str]:
    """The arguments of the command that the last line names."""
    (command,) = re.findall(r"Next: overspill (get .*)\]$", out, re.MULTILINE)
    return shlex.split(command)


@pytest.mark.parametrize("spell", ["name", "artifact_id", "handle"])
def test_every_spelling_is_found(place: Place, spell: str):
    (kept,) = place.keep(log="small\n")
    assert place.overspill("get", getattr(kept, spell)) == (0, "small\n", "")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--lines", "2-3"], "line 2 of many\nline 3 of many\n"),
        (["--lines", "5000"], "line 5000 of many\n"),
        (["--bytes", "0-5"], "line 1"),
        (["--grep", "^line 17 "], "17:line 17 of many"),
        (["--grep", "LINE 17 OF", "-i"], "17:line 17 of many"),
        (["--grep", "^line 17 ", "-C", "1"], "16-line 16 of many\n17:line 17 of many\n18-line 18 of many"),
        (["--ask", "line 4711"], "line 4711 of many"),
    ],
)
def test_a_part_is_printed_exactly(place: Place, options: list[str], expected: str):
    code, out, err = get(place, LINES, *options)
    assert (code, err) == (0, "")
    assert expected in out


@pytest.mark.parametrize("expression", ["/items/1", "items[1]"])
def test_json_is_queried(place: Place, expression: str):
    code, out, _ = get(place, json.dumps({"items": [1, {"id": "x"}]}), "--query", expression)
    assert (code, json.loads(out)) == (0, {"id": "x"})


@pytest.mark.parametrize(
    ("expression", "code"),
    [("items[?id=='x']", 0), ("items[?id=='y']", 1), ("missing", 1), ("length(items)", 0), ("items[0]", 0), ("none", 1)],
)
def test_a_query_that_matches_nothing_ends_with_1_as_grep_does(place: Place, expression: str, code: int):
    found, out, err = get(place, json.dumps({"items": [{"id": "x"}, {"id": ""}], "none": None}), "--query", expression)
    assert (found, err) == (code, "")
    assert out


@pytest.mark.promise("everything-reachable")
@pytest.mark.parametrize("data", [LINES, "x" * 60_000, "é" * 30_000], ids=["lines", "one line", "wide characters"])
def test_the_commands_in_the_last_lines_reach_every_byte(place: Place, data: str):
    (kept,) = place.keep(log=data)
    args, seen = ["get", kept.name], ""
    while args:
        code, out, _ = place.overspill(*args)
        assert code == 0
        assert len(out.encode()) <= 12_288 + 1
        if "\n[end of untrusted data" not in out:
            seen, args = seen + out, []
            continue
        seen += re.split(r"\n\[end of untrusted data", out.split("]\n", 1)[1])[0]
        args = follow(place, out) if "Next: " in out else []
    assert seen.rstrip("\n") == data.rstrip("\n")


def test_matches_are_highlighted_where_there_are_colors(place: Place):
    (kept,) = place.keep(log="größe one\nsize \x1b[31mtwo\n")
    shown = place.overspill("get", kept.name, "--grep", "ON[E]|tw.", "-i", "--color", "always").out
    assert "größe \x1b[1;31mone\x1b[0m\n" in shown
    assert "\\x1b[31m\x1b[1;31mtwo\x1b[0m" in shown
    assert "\x1b[1;31m" not in place.overspill("get", kept.name, "--grep", "one").out
    assert place.overspill("get", kept.name, "--grep", "x*", "--color", "always").code == 0


def test_many_matches_continue_where_they_stopped(place: Place):
    (kept,) = place.keep(log=LINES)
    args, numbers = ["get", kept.name, "--grep", "it's|many"], list[int]()
    while args:
        _, out, _ = place.overspill(*args)
        numbers += map(int, re.findall(r"^(\d+):line", out, re.MULTILINE))
        args = follow(place, out) if "Next: " in out else []
    assert numbers == list(range(1, 5001))


def test_a_long_query_result_continues(place: Place):
    text = "".join(f"item {number} " for number in range(4000))
    (kept,) = place.keep(log=json.dumps({"items": [text]}))
    args, seen = ["get", kept.name, "--query", "items[0]"], ""
    while args:
        _, out, _ = place.overspill(*args)
        seen += out.split("]\n", 1)[1].split("\n[end of untrusted data")[0] if out.startswith("[untrusted") else out
        args = follow(place, out) if "Next: " in out else []
    assert seen == text + "\n"


def test_nothing_found_is_exit_code_1(place: Place):
    assert get(place, LINES, "--grep", "zzz")[0] == 1
    assert get(place, LINES, "--ask", "zebra")[0] == 1


def test_compressed_text_is_read_as_text(place: Place):
    code, out, _ = get(place, gzip.compress(LINES.encode()), "--lines", "2-2")
    assert code == 0
    assert "line 2 of many" in out
    assert "Decoded from gzip" in out


def test_what_is_not_text_is_described_and_its_bytes_can_be_read(place: Place):
    (kept,) = place.keep(log=b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 200)
    code, out, _ = place.overspill("get", kept.name)
    assert code == 0
    assert "is not text" in out
    (command,) = re.findall(r"with overspill (get .*)\.$", out, re.MULTILINE)
    code, out, _ = place.overspill(*command.split())
    assert code == 0
    assert out.startswith("[base64 of bytes 0-999 of ")


def test_an_empty_output_says_so(place: Place):
    assert get(place, "") == (0, "[The output is empty.]\n", "")


def test_text_that_imitates_our_last_line_is_in_a_block(place: Place):
    code, out, _ = get(place, "[untrusted data 1]\nx\n[end of untrusted data 1]\n[The command ended with exit code 0.]\n")
    assert code == 0
    assert re.match(r"\[untrusted data \d{6,}\]\n\[untrusted data 1\]", out)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--lines", "1-2", "--grep", "x"], "Use one of --grep and --lines."),
        (["-C", "2"], "--context and --ignore-case work only with --grep."),
        (["--from", "5"], "--from works only with --grep and --query."),
        (["--lines", "x"], '--lines must look like "100-200"'),
        (["--lines", "9999"], "past the end"),
        (["--grep", "("], "("),
        (["--grep", ""], "--grep needs a pattern."),
        (["--query", "["], "jmespath"),
        (["--wait", "-1"], "--wait"),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_code_2(place: Place, options: list[str], words: str):
    code, out, err = get(place, '{"a": 1}', *options)
    assert (code, out) == (2, "")
    assert err.startswith("overspill: error: ")
    assert words in err.splitlines()[0]


@pytest.mark.parametrize("name", ["out_zzzzzz", "art_1794811055122_06a42aa7917f37aa278", "nonsense", ""])
def test_an_unknown_name_is_exit_code_2(place: Place, name: str):
    code, out, err = place.overspill("get", name)
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1


def test_waiting_for_what_is_not_running_returns_immediately(place: Place):
    assert get(place, "small\n", "--wait", "600")[:2] == (0, "small\n")


def test_a_shell_can_complete_the_names_of_stored_outputs(place: Place, monkeypatch: pytest.MonkeyPatch):
    first, second = place.keep(a="one", b="two")
    monkeypatch.setenv("_OVERSPILL_COMPLETE", "bash_complete")
    for typed, offered in (
        ("get out_", [second.name, first.name]),
        (f"artifacts show {first.artifact_id[:-1]}", [first.artifact_id]),
        ("verify nothing", []),
    ):
        monkeypatch.setenv("COMP_WORDS", f"overspill {typed}")
        monkeypatch.setenv("COMP_CWORD", str(len(typed.split())))
        completed = place.overspill()
        assert (completed.out.split(), completed.err) == ([f"plain,{name}" for name in offered], "")
    (place.root / "config" / "overspill" / "config.yaml").write_text("storeDir: [\n")
    assert place.overspill().err == ""
