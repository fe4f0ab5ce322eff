"""A client starts the proxy in a folder that somebody else filled: that stops nothing, loses nothing and misplaces nothing."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from wire import Process, every, proxied

pytestmark = pytest.mark.slow

HANDLE = re.compile(r"session-[0-9a-f-]{36}/[0-9a-f-]{36}|\bout_[0-9a-z]{6,12}\b")
NAME = re.compile(rf"art_\w+|{HANDLE.pattern}")
OUTPUT = "".join(f"line {number}: the quick brown fox\n" for number in range(1, 1001))


class Repository:
    """The working directory, and beside it what belongs to the user."""

    def __init__(self, root: Path) -> None:
        self.cwd, self.state, self.home = root / "repository", root / "state", root / "home"
        for folder in (self.cwd, self.home / "config" / "overspill"):
            folder.mkdir(parents=True)

    def proxy(self, *options: str) -> Process:
        env = {"HOME": str(self.home), "XDG_CONFIG_HOME": str(self.home / "config"), "XDG_STATE_HOME": str(self.state)}
        return Process(proxied(every(), *options), env=env)

    def write(self, text: str, name: str = ".overspill.yaml") -> None:
        (self.cwd / name).write_text(text)

    def stored(self) -> list[Path]:
        return [each for each in self.state.rglob("*") if each.is_file() and each.read_bytes() == OUTPUT.encode()]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    made = Repository(tmp_path)
    monkeypatch.chdir(made.cwd)
    return made


def read_whole(wire: Process, handle: str) -> str:
    """By lines, as a model does."""
    found = ""
    for first in range(1, 1001, 200):
        wanted = {"id": handle, "mode": "slice", "slice": {"lines": f"{first}-{first + 199}"}}
        found += wire.text("get_tool_output", wanted)
    return found


def keep(wire: Process) -> str:
    found = HANDLE.search(wire.text("lines", {"count": 1000}))
    assert found
    return found.group()


def dangling(repository: Repository) -> None:
    (repository.cwd / ".overspill.yaml").symlink_to("nowhere")


def linked(repository: Repository) -> None:
    (repository.home / "secret").write_text("s3cret: [")
    (repository.cwd / ".overspill.yaml").symlink_to(repository.home / "secret")


def pipe(repository: Repository) -> None:
    os.mkfifo(repository.cwd / ".overspill.yaml")


def folder(repository: Repository) -> None:
    (repository.cwd / ".overspill.yaml").mkdir()


def huge(repository: Repository) -> None:
    with (repository.cwd / ".overspill.yaml").open("wb") as file:
        file.truncate(10_000_000_000)


def two(repository: Repository) -> None:
    repository.write("")
    repository.write("{}", ".overspill.json")


def unreadable(repository: Repository) -> None:
    (repository.cwd / ".overspill.yaml").write_bytes(b"\xff\xfe")


def many_names(repository: Repository) -> None:
    names = {str(number): {"off": True} for number in range(45_000)}
    repository.write(json.dumps({"servers": names}, separators=(",", ":")), ".overspill.json")


@pytest.mark.parametrize(
    ("hostile", "named"),
    [
        (dangling, ".overspill.yaml is not a regular file"),
        (linked, ".overspill.yaml is not a regular file"),
        (pipe, ".overspill.yaml is not a regular file"),
        (folder, ".overspill.yaml is not a regular file"),
        (huge, ".overspill.yaml is larger than the limit of 1048576 bytes"),
        (two, ".overspill.yaml and .overspill.json are both in"),
        (unreadable, ".overspill.yaml is not UTF-8, line 1."),
        (many_names, ".overspill.json has more than 10000 values."),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_ignored(
    repository: Repository, hostile: Callable[[Repository], None], named: str
) -> None:
    hostile(repository)
    with repository.proxy() as wire:
        wire.hello()
        assert wire.text("lines", {"count": 1}) == "line 1: the quick brown fox\n"
        assert wire.end() == 0
    assert f"overspill: warning: Ignored: {named}" in wire.errors.decode()
    assert "s3cret" not in wire.errors.decode()


EVERY_WAY_TO_HURT = """
storeDir: {elsewhere}
toolOutput: {{enabled: false, storeDir: {elsewhere}, models: [evil/model]}}
retention: session
keepBytes: 1
maxRunBytes: 1
maxRunning: 1
toolTimeout: 0.001
waitMaxSecs: 0.001
answerMaxBytes: 1
answerForm: artifact
surface: []
asyncTimeoutSecs: 0
nonsense: [1, 2]
truncation: {{maxArtifactSize: 1, overrides: {{lines: {{maxArtifactSize: 1, toolTimeout: 0.001}}}}}}
servers: {{every: {{maxArtifactSize: 1, toolTimeout: 0.001}}}}
"""


def test_what_a_file_may_not_set_is_named_and_nothing_is_lost(repository: Repository) -> None:
    elsewhere = repository.home / "elsewhere"
    repository.write(EVERY_WAY_TO_HURT.format(elsewhere=elsewhere))
    with repository.proxy("--name", "every") as wire:
        wire.hello()
        assert read_whole(wire, keep(wire)) == OUTPUT
        assert "get_tool_output" in wire.names()
        assert wire.end() == 0
    assert len(repository.stored()) == 1
    assert not elsewhere.exists()
    ignored = re.findall(r"^overspill: warning: Ignored: (?:Unknown key ')?([\w.]+)", wire.errors.decode(), re.M)
    assert ignored == [
        "storeDir",
        "toolOutput.enabled",
        "toolOutput.storeDir",
        "toolOutput.models",
        "retention",
        "keepBytes",
        "maxRunBytes",
        "maxRunning",
        "toolTimeout",
        "waitMaxSecs",
        "answerMaxBytes",
        "answerForm",
        "surface",
        "asyncTimeoutSecs",
        "nonsense",
        "truncation.maxArtifactSize",
        "truncation.overrides.lines.maxArtifactSize",
        "truncation.overrides.lines.toolTimeout",
        "servers.every.maxArtifactSize",
        "servers.every.toolTimeout",
    ]


@pytest.mark.parametrize("preset", ["artifacts", "slow"])
def test_a_preset_of_the_repository_cuts_nothing_and_moves_nothing(repository: Repository, preset: str) -> None:
    elsewhere = repository.home / "elsewhere"
    elsewhere.mkdir()
    (repository.cwd / ".overspill").mkdir()
    (repository.cwd / ".overspill" / "artifacts").symlink_to(elsewhere)
    repository.write(f"preset: {preset}\n")
    with repository.proxy("--set", "truncation.inlineLimit=8000") as wire:
        wire.hello()
        assert read_whole(wire, keep(wire)) == OUTPUT
        assert wire.end() == 0
    assert len(repository.stored()) == 1
    assert list(elsewhere.iterdir()) == []
    (line,) = [each for each in wire.errors.decode().splitlines() if each.startswith(f"overspill: warning: preset: {preset}")]
    assert "truncation.maxArtifactSize" in line
    assert "surface" in line


SMALLEST = """
toolResponseMaxBytes: 1
asyncTokenThreshold: 1
asyncTimeoutSecs: 5e-324
previewTokens: 0
previewChars: 0
maxInlineBlob: 1
truncation: {inlineLimit: 1, artifactThreshold: 1, defaultStrategy: none, headRatio: 0, headLines: 1, tailLines: 1,
  lineFrom: end, depth: 1, firstElements: 0, lastElements: 0, maxKeys: 1}
"""
LARGEST = """
toolResponseMaxBytes: 1
asyncTokenThreshold: LARGE
asyncTimeoutSecs: 1.7e308
previewTokens: LARGE
previewChars: LARGE
maxInlineBlob: LARGE
truncation: {inlineLimit: LARGE, artifactThreshold: LARGE, defaultStrategy: element, headRatio: 1, headLines: LARGE,
  tailLines: LARGE, depth: LARGE, firstElements: LARGE, lastElements: LARGE, maxKeys: LARGE}
""".replace("LARGE", "9" * 300)


@pytest.mark.parametrize("extreme", [SMALLEST, LARGEST], ids=["smallest", "largest"])
def test_no_value_of_what_a_file_may_set_makes_an_output_unreachable(repository: Repository, extreme: str) -> None:
    repository.write(extreme)
    with repository.proxy() as wire:
        wire.hello()
        id = NAME.search(wire.text("lines", {"count": 1000}))
        assert id
        assert "get_tool_output" in wire.names()
        wire.text("wait_for_tool_output", {})
        assert read_whole(wire, id.group()) == OUTPUT
        assert "line 321: the quick brown fox" in wire.text("tool_output", {"handle": id.group(), "extract": "line 321"})
        assert wire.end() == 0
    assert "Ignored" not in wire.errors.decode()


@pytest.mark.parametrize("link", [".overspill/artifacts", ".overspill"])
def test_a_link_in_the_repository_moves_no_store_of_a_user_who_chose_to_store_there(repository: Repository, link: str) -> None:
    elsewhere = repository.home / "elsewhere"
    elsewhere.mkdir()
    (repository.cwd / link).parent.mkdir(exist_ok=True)
    (repository.cwd / link).symlink_to(elsewhere)
    with repository.proxy("--preset", "artifacts", "--set", "storeDir=.overspill/artifacts") as wire:
        wire.hello()
        assert wire.text("lines", {"count": 1}) == "line 1: the quick brown fox\n"
        assert "None of it was saved" in wire.call("lines", {"count": 1000})["content"][1]["text"]
        assert wire.end() == 0
    assert list(elsewhere.iterdir()) == []
    assert (
        "overspill: Nothing can be stored, so large results are cut. "
        f"{repository.cwd / link} is refused: it is a symbolic link, which another user may have put there. "
        "Remove it, or set storeDir to an absolute path. "
    ) in wire.errors.decode()
