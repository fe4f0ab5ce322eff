"""--json is one line in a pipe, and --jsonl has the same records, one on each line, in every command that prints records."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pytest
from commands import Place, on_a_terminal

from overspill.cli import COMMANDS, overspill

ORDERS = '[{"id": 1, "total": 2.5}, {"id": 2, "total": 12345678901234567890}]'
SINGLE = {
    "artifacts show": "a part of one output",
    "artifacts info": "one output",
    "artifacts export": "one output",
    "artifacts clean": "what was removed",
    "run": "one report",
    "hub status": "the one hub of a user",
    "login": "with --list, the few servers that one user has logged in to",
    "snapshot show": "one run",
    "wrap": "one file",
    "unwrap": "one file",
}
"""Commands with --json that print one thing, and which."""


def list_settings(found: dict[str, dict[str, Any]]) -> list[Any]:
    return [{"key": key, **row} for key, row in found.items()]


def list_findings(found: dict[str, Any]) -> list[Any]:
    return [{**finding, "server": None} for finding in found["findings"]]


RECORDS: list[tuple[tuple[str, ...], Callable[[Any], list[Any]]]] = [
    (("extract", "zebra", "a.txt", "b.txt"), list),
    (("extract", "zebra", "a.txt"), lambda found: [found]),
    (("get", "NAME"), lambda found: [found]),
    (("get", "NAME", "--grep", "zebra"), lambda found: [found]),
    (("get", "NAME", "--ask", "zebra"), lambda found: [found]),
    (("sql", "SELECT * FROM orders", "orders.json"), list),
    (("artifacts", "list"), list),
    (("verify",), list),
    (("stats",), lambda found: found["sessions"]),
    (("jobs",), list),
    (("doctor",), list_findings),
    (("config",), list_settings),
]


@pytest.mark.parametrize(("command", "records"), RECORDS, ids=[" ".join(command) for command, _ in RECORDS])
def test_lines_have_the_same_records(place: Place, command: tuple[str, ...], records: Callable[[Any], list[Any]]):
    Path("a.txt").write_text("one zebra\n")
    Path("b.txt").write_text("two zebras and a zebra\n")
    Path("orders.json").write_text(ORDERS)
    kept, _ = place.keep(a="a zebra é\n" * 3, b="second")
    command = tuple(kept.artifact_id if word == "NAME" else word for word in command)
    whole = place.overspill(*command, "--json")
    lines = place.overspill(*command, "--jsonl")
    assert (whole.code, lines.code) == (0, 0)
    assert (whole.out.count("\n"), whole.out[-1], '": ' in whole.out) == (1, "\n", False)
    assert [json.loads(line) for line in lines.out.splitlines()] == records(json.loads(whole.out))
    assert all(line.startswith("{") for line in lines.out.splitlines())


def test_every_command_with_json_has_lines_too_unless_it_prints_one_thing():
    def list_commands(group: click.Group, path: str = "") -> dict[str, click.Command]:
        found: dict[str, click.Command] = {}
        with click.Context(group) as context:
            for name in group.list_commands(context):
                command = group.get_command(context, name)
                assert command is not None
                spelled = f"{path}{name}"
                found |= list_commands(command, f"{spelled} ") if isinstance(command, click.Group) else {spelled: command}
        return found

    commands = list_commands(overspill)
    assert len(commands) > len(COMMANDS)
    spellings = {name: {spelling for param in command.params for spelling in param.opts} for name, command in commands.items()}
    with_json = {name for name, options in spellings.items() if "--json" in options}
    assert {name for name in with_json if "--jsonl" not in spellings[name]} == set(SINGLE)
    tested = {command[0] if command[0] != "artifacts" else " ".join(command[:2]) for command, _ in RECORDS}
    assert {name for name, options in spellings.items() if "--jsonl" in options} == tested


def test_what_get_reads_and_what_it_says_about_it_are_apart(place: Place):
    (kept,) = place.keep(a="".join(f"line {number}\n" for number in range(10_000)))
    found = json.loads(place.overspill("get", kept.artifact_id, "--json", "--set", "answerMaxBytes=2000").out)
    assert found["text"].startswith("line 0\n")
    assert "overspill get" not in found["text"]
    assert any("overspill get" in note for note in found["notes"])
    missing = place.overspill("get", kept.artifact_id, "--grep", "zebra", "--json")
    assert (missing.code, json.loads(missing.out)["found"]) == (1, False)


def test_rows_are_a_table_on_a_terminal(place: Place):
    Path("orders.json").write_text(ORDERS)
    code, shown = on_a_terminal(
        "sql", "SELECT id, repeat('word ', 60) AS words FROM orders", "orders.json", "--color=never", columns=80
    )
    assert code == 0
    lines = [line for line in shown.splitlines() if "│" in line or "─" in line]
    assert {len(line) for line in lines if line.startswith("│")} == {80}
    assert shown.count("word") == 121


def test_a_table_that_is_too_wide_for_a_terminal_has_tabs(place: Place):
    Path("wide.json").write_text(json.dumps([{**{f"c{number}": number for number in range(40)}, "text": "a\x9b31m\u202e"}]))
    _, shown = on_a_terminal("sql", "SELECT * FROM wide", "wide.json", columns=80)
    assert "\t".join(map(str, range(40))) in shown
    assert all(char.isprintable() or char in "\r\n\t" for char in shown)
