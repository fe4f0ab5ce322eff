"""A store inside a project is not committed by accident."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from overspill import Settings, SyncSession, handles
from overspill.store.files.store import FileStore

ROOT = Path(".overspill/artifacts")


def open_and_close(root: Path) -> None:
    store = FileStore(root)
    store.open_shelf(handles.new(), retention="keep").close()
    store.close()


def test_git_sees_nothing_of_what_the_artifacts_preset_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    git = ["git", "-C", str(tmp_path), "-c", "core.excludesFile="]
    subprocess.run([*git, "init", "-q"], check=True)
    with SyncSession(Settings(preset="artifacts")) as session:
        assert session.call("note", {}, lambda: "private " * 10_000).kept is not None
        seen = subprocess.run([*git, "status", "--porcelain", "-uall"], check=True, capture_output=True, text=True).stdout
    assert seen == ""
    assert (tmp_path / ROOT / ".gitignore").read_text() == "*\n"


def test_an_existing_store_gets_the_ignore_file_too(tmp_path: Path):
    root = tmp_path / ROOT
    root.mkdir(parents=True)
    open_and_close(root)
    assert (root / ".gitignore").read_text() == "*\n"


@pytest.mark.parametrize("content", ["", "!art_*\n"])
def test_a_file_that_the_user_wrote_stays(tmp_path: Path, content: str):
    root = tmp_path / ROOT
    root.mkdir(parents=True)
    (root / ".gitignore").write_text(content)
    open_and_close(root)
    assert (root / ".gitignore").read_text() == content


def test_a_link_is_not_followed(tmp_path: Path):
    root = tmp_path / ROOT
    root.mkdir(parents=True)
    (root / ".gitignore").symlink_to(tmp_path / "elsewhere")
    open_and_close(root)
    assert not (tmp_path / "elsewhere").exists()


def test_a_folder_with_another_name_gets_no_ignore_file(tmp_path: Path):
    open_and_close(tmp_path / "project")
    assert not (tmp_path / "project" / ".gitignore").exists()
