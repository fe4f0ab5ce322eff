"""What would be released is whole, and every version in the repository is the same."""

import json
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
CHECK = runpy.run_path(str(ROOT / "scripts" / "check-release"))


def test_another_version_is_noticed_everywhere():
    assert CHECK["find_version_problems"](CHECK["read_version"]()) == []
    assert len(CHECK["find_version_problems"]("99.0")) == 7


@pytest.mark.slow
def test_the_built_wheel_is_whole_and_runs():
    done = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "check-release")], capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "can be released" in done.stdout


@pytest.mark.parametrize(
    ("typed", "offered"), [("ke", ["keep"]), ("artifacts ex", ["export"]), ("keep --background", ["--background-after"])]
)
def test_a_shell_completes_commands_and_options(typed: str, offered: list[str]):
    program = Path(sys.executable).with_name("overspill")
    env = {
        "_OVERSPILL_COMPLETE": "bash_complete",
        "COMP_WORDS": f"overspill {typed}",
        "COMP_CWORD": str(len(typed.split())),
        "PATH": "/usr/bin:/bin",
        "HOME": "/nonexistent",
    }
    done = subprocess.run([program], env=env, capture_output=True, text=True, timeout=60, check=True)
    assert [line.partition(",")[2] for line in done.stdout.splitlines()] == offered


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({}, ""),
        ({"required": ["name", "repository"]}, "server.json, $: 'repository' is a required property"),
        ({"properties": {"description": {"maxLength": 10}}}, "server.json, $.description: "),
        ({"$id": "https://example.com/older.json"}, "is the schema https://example.com/older.json, and server.json names "),
    ],
)
def test_the_entry_for_the_registry_is_checked_against_a_schema(rules: dict[str, Any], said: str, tmp_path: Path):
    named = json.loads((ROOT / "server.json").read_text())["$schema"]
    file = tmp_path / "server.schema.json"
    file.write_text(json.dumps({"$schema": "http://json-schema.org/draft-07/schema#", "$id": named, **rules}))
    found: list[str] = CHECK["find_schema_problems"](file)
    assert [said in problem for problem in found] == ([True] if said else [])
