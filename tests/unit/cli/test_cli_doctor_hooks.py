"""`overspill doctor` tells whether a coding agent's hook works, and what the agent's version does not honour."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from commands import Place

from overspill.hooks.shapes import OBSERVED


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    place = Place(tmp_path, monkeypatch, capsys)
    (place.root / ".claude.json").write_text('{"mcpServers": {}}')
    (place.root / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{place.root / 'bin'}{os.pathsep}/usr/bin{os.pathsep}/bin")
    return place


def install_client(place: Place, prints: str) -> None:
    program = place.root / "bin" / "claude"
    program.write_text(f"#!/bin/sh\n{prints}\n")
    program.chmod(0o755)


def examine(place: Place) -> list[tuple[str, str]]:
    found = json.loads(place.overspill("doctor", "claude-code", "--json").out)["findings"]
    return [(each["level"], f"{each['text']} {each['advice']}".strip()) for each in found if each["about"] == "hooks"]


def wrap(place: Place, command: str) -> None:
    """Without the server, which doctor would start."""
    assert place.overspill("wrap", "claude-code", "--hooks", "--command", command).code == 0
    (place.root / ".claude.json").write_text('{"mcpServers": {}}')


def test_without_a_hook_it_says_how_to_add_one(place: Place):
    assert examine(place) == [
        (
            "note",
            "The built-in tools of Claude Code do not go through Overspill. To change that: overspill wrap claude-code --hooks",
        )
    ]


@pytest.mark.parametrize("version", OBSERVED["claude-code"].versions)
def test_what_a_version_does_not_honour_is_said(place: Place, version: str):
    install_client(place, f"echo '{version} (Claude Code)'")
    wrap(place, "overspill")
    (place.root / "bin" / "overspill").symlink_to("/bin/true")
    settings = place.root / ".claude" / "settings.json"
    assert examine(place)[0] == ("ok", f"{settings} calls overspill.")
    assert examine(place)[2:] == [("note", f"Claude Code {version}: {limit}") for limit in OBSERVED["claude-code"].limits]


def test_a_server_that_is_missing_is_noted(place: Place):
    wrap(place, "overspill")
    level, text = examine(place)[1]
    assert level == "note"
    assert "has no server overspill, so the agent can read what is stored only with `overspill get`." in text


def test_a_program_that_is_gone_is_wrong(place: Place):
    wrap(place, "/nowhere/overspill")
    level, text = examine(place)[0]
    assert level == "wrong"
    assert "calls /nowhere/overspill, which does not exist. Run overspill unwrap claude-code" in text


@pytest.mark.parametrize(
    ("prints", "level", "text"),
    [
        ("echo 2.1.59", "wrong", "Claude Code 2.1.59 ignores what a hook answers. Update Claude Code."),
        ("echo 1.0.128", "wrong", "Claude Code 1.0.128 ignores what a hook answers."),
        ("echo 9.9.9", "note", "Claude Code 9.9.9 was not tried with Overspill's hook. What 2.1.325 does: "),
        ("exit 1", "note", "Claude Code, whose version is unknown, was not tried"),
        ("head -c 1000000 /dev/zero", "note", "Claude Code, whose version is unknown, was not tried"),
        ("echo 99999999999999999999.1.1", "note", "was not tried"),
    ],
)
def test_other_versions_are_told_apart(place: Place, prints: str, level: str, text: str):
    install_client(place, prints)
    wrap(place, "overspill")
    assert examine(place)[-1][0] == level
    assert text in examine(place)[-1][1]
