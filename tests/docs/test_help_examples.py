"""Every example of a help text that needs no network does what the help says, as it is written there."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
import pytest
from commands import Place
from small_servers import entry

from overspill.cli import overspill

ROOT = Path(__file__).parents[2]
_ID = re.compile(r"art_\d+_\w+|out_\w+")
REPORT = json.dumps(
    {"items": [{"status": "failed", "id": number, "first error": "stack trace"} for number in range(9)]}, indent=1
)


def examples(group: click.Context) -> Iterator[str]:
    assert isinstance(group.command, click.Group)
    for name in group.command.list_commands(group):
        command = group.command.get_command(group, name)
        assert command is not None
        for paragraph in cleandoc(command.help or "").split("\n\n"):
            lines = paragraph.removeprefix("\b\n").splitlines() if paragraph.startswith("\b\n") else []
            yield from (line.strip() for line in lines if "overspill " in line)
        if isinstance(command, click.Group):
            yield from examples(click.Context(command, parent=group, info_name=name))


LINES = list(examples(click.Context(overspill, info_name="overspill")))
# A proxy serves until its client ends it, and the viewer and a worker until you do; `keep` runs other people's programs, a pipe
# joins them, and a shell writes to files.
ELSEWHERE = [
    line
    for line in LINES
    if line.startswith(("overspill proxy", "overspill keep", "overspill view", "overspill worker", "overspill login"))
    or "|" in line
    or ">" in line
]
HERE = [line for line in LINES if line not in ELSEWHERE]


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    """With everything that the examples name."""
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    made = Place(tmp_path, monkeypatch, capsys)
    servers = {"github": entry("works"), "filesystem": entry("bare")}
    for file in (made.root / ".cursor" / "mcp.json", made.root / ".claude.json", Path(".mcp.json"), Path(".vscode/mcp.json")):
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps({"mcpServers": servers}))
    versions = {"1.2.9": {"integrity": "sha512-old"}, "1.3.0": {"integrity": "sha512-new"}}
    Path("registry.json").write_text(json.dumps({"versions": versions}, indent=1))
    Path("orders.json").write_text(
        json.dumps([{"status": "open", "user_id": 1, "total": 5}, {"status": "paid", "user_id": 2, "total": 7}])
    )
    Path("late.py").write_text("print('no order is late')\n")
    Path("orders.csv").write_text("id,user_id\n1,2\n2,1\n3,1\n")
    Path("users.ndjson").write_text('{"id": 1, "name": "Ann"}\n{"id": 2, "name": "Ben"}\n')
    for folder, text in (
        ("src", "RETRY_LIMIT = 7  # the retry limit is set here\n"),
        ("docs", "The limit is documented.\nTo undo a release, roll back to the one before.\n"),
    ):
        Path(folder).mkdir()
        Path(folder, "limits.txt").write_text(text)
    shutil.copytree(ROOT / "examples", "examples")
    return made


@pytest.mark.parametrize(
    "line", [pytest.param(line, marks=[pytest.mark.slow] if " doctor" in line else []) for line in HERE], ids=lambda line: line
)
def test_an_example_of_a_help_text_works(place: Place, line: str) -> None:
    (kept,) = place.keep(report=REPORT)
    if "snapshot" in line:
        question = ("Why?", "--config", "examples/config.yaml", "--snapshot", "run.json.gz")
        assert place.overspill("run", "examples/scripted.ai", *question).code == 0
    result = place.overspill(*shlex.split(_ID.sub(kept.artifact_id, line))[1:])
    # What was exported is told on standard error, and so is what a run kept.
    told = "export" in line or "overspill run" in line
    assert (result.code, result.out == "", result.err == "") == (0, "export" in line, not told)


def test_the_examples_are_found() -> None:
    assert 'overspill run examples/scripted.ai "Why did the deployment fail?" --config examples/config.yaml' in HERE
    assert [line.split(" ")[0] for line in ELSEWHERE if not line.startswith("overspill ")] == [
        "mkdir", "kubectl", "kubectl", "kubectl", "kubectl", "echo",
    ]  # fmt: skip
    assert {line.split(" ")[1] for line in ELSEWHERE if line.startswith("overspill ")} == {
        "proxy",
        "keep",
        "get",
        "skill",
        "view",
        "login",
        "worker",
    }
