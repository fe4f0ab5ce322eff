"""`overspill wrap --hooks` with files that are not for it to change, or that change meanwhile: all of them or none."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from client_files import CLAUDE_CODE
from commands import Place, Result

from overspill.cli.client_files import find_hook_files, plan_wrap, write
from overspill.errors import SettingsError

SETTINGS = '{\n  // mine\n  "model": "opus"\n}\n'
NOBODY = 65534


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    return make_place(tmp_path, monkeypatch, capsys)


@pytest.fixture
def files(place: Place) -> dict[str, Path]:
    return write_files(place.root)


def make_place(root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    return Place(root, monkeypatch, capsys)


def write_files(root: Path) -> dict[str, Path]:
    found = {"servers": root / ".claude.json", "hooks": root / ".claude" / "settings.json"}
    found["hooks"].parent.mkdir()
    found["servers"].write_text(CLAUDE_CODE)
    found["hooks"].write_text(SETTINGS)
    return found


def wrap(place: Place) -> Result:
    return place.overspill("wrap", "claude-code", "--hooks", "--command", "overspill")


def snapshot(root: Path) -> dict[str, tuple[bytes | str, int]]:
    """What each file has and when it was written. Of a link, where it leads."""
    return {
        str(path.relative_to(root)): (os.readlink(path) if path.is_symlink() else path.read_bytes(), path.lstat().st_mtime_ns)
        for path in sorted(root.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("which", ["servers", "hooks"])
def test_a_file_that_is_read_only_is_not_replaced(place: Place, files: dict[str, Path], which: str):
    files[which].chmod(0o444)
    before = snapshot(place.root)
    result = wrap(place)
    assert (result.code, result.out) == (2, "")
    assert result.err == (
        f"overspill: error: {files[which]} is read-only. Nothing was written. To allow it: chmod u+w {files[which]}\n"
    )
    assert snapshot(place.root) == before
    files[which].chmod(0o644)
    assert wrap(place).code == 0
    files[which].chmod(0o444)
    wrapped = snapshot(place.root)
    assert place.overspill("unwrap", "claude-code").code == 2
    assert snapshot(place.root) == wrapped


def test_without_hooks_a_file_that_is_read_only_is_not_replaced_either(place: Place, files: dict[str, Path]):
    files["servers"].chmod(0o400)
    before = snapshot(place.root)
    result = place.overspill("wrap", "claude-code", "--command", "overspill")
    assert (result.code, "is read-only. Nothing was written." in result.err) == (2, True)
    assert snapshot(place.root) == before
    assert place.overspill("wrap", "claude-code", "--command", "overspill", "--print").code == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("which", ["servers", "hooks"])
def test_a_file_of_another_user_is_not_replaced(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], which: str):
    """In a folder where the user could put another file in its place."""
    # Not in a folder of pytest's: each run of it closes the folder that they are all in to other users.
    with tempfile.TemporaryDirectory() as folder:
        place = make_place(Path(folder), monkeypatch, capsys)
        files = write_files(place.root)
        for path in [place.root, *place.root.rglob("*")]:
            os.chown(path, NOBODY, NOBODY)
        os.chown(files[which], 0, 0)
        files[which].chmod(0o666)
        before = snapshot(place.root)
        # What a command imports is imported first, because the other user may not be able to read it. At the end the process
        # is root again, because what it may write then (such as measured coverage) goes to a folder of root's.
        code = (
            "import os, sys; from overspill.cli import main\n"
            "try: main(['wrap', 'claude-code', '--hooks', '--command', 'overspill', '--print'])\n"
            "except SystemExit as end: assert not end.code\n"
            f"os.seteuid({NOBODY})\n"
            "try: main(['wrap', 'claude-code', '--hooks', '--command', 'overspill'])\n"
            "finally: os.seteuid(0)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2
        assert done.stderr == (
            f"overspill: error: {files[which]} belongs to another user. Nothing was written. Run this as that user.\n"
        )
        assert snapshot(place.root) == before
        monkeypatch.undo()  # to leave the folder before it is removed


def test_links_stay_links_and_undo_is_byte_for_byte(place: Place, files: dict[str, Path]):
    dotfiles = place.root / "dotfiles"
    dotfiles.mkdir()
    for name, path in files.items():
        path.rename(dotfiles / name)
        path.symlink_to(dotfiles / name)
    before = {path: (dotfiles / name).read_bytes() for name, path in files.items()}
    assert wrap(place).code == 0
    assert all(path.is_symlink() and path.read_bytes() != before[path] for path in files.values())
    assert place.overspill("unwrap", "claude-code").code == 0
    assert all(path.is_symlink() and path.read_bytes() == before[path] for path in files.values())
    assert sorted(path.name for path in dotfiles.iterdir()) == ["hooks", "servers"]


@pytest.mark.parametrize(
    ("target", "why"), [("gone.json", "No such file"), ("settings.json", "Too many levels of symbolic links")]
)
def test_a_link_that_leads_nowhere_is_one_line(place: Place, files: dict[str, Path], target: str, why: str):
    files["hooks"].unlink()
    files["hooks"].symlink_to(files["hooks"].parent / target)
    before = snapshot(place.root)
    result = wrap(place)
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert f"{files['hooks']} cannot be read: {why}" in result.err
    assert snapshot(place.root) == before


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize("which", ["servers", "hooks"])
def test_a_file_that_changes_meanwhile_keeps_that_change_and_the_other_is_as_before(
    place: Place, files: dict[str, Path], which: str
):
    found = find_hook_files("claude-code")
    assert found is not None
    plan = plan_wrap(found, ["overspill"], ())
    assert len(plan.changed) == 2
    files[which].write_text('{"changed": "meanwhile"}')
    with pytest.raises(SettingsError, match="has just been changed by another program"):
        write(plan)
    others = {"servers": CLAUDE_CODE, "hooks": SETTINGS, which: '{"changed": "meanwhile"}'}
    assert {name: path.read_text() for name, path in files.items()} == others
    assert not list(place.root.rglob("*.bak"))


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize("meanwhile", ["made", "removed"])
def test_a_file_that_is_made_or_removed_meanwhile_stays_so(place: Place, files: dict[str, Path], meanwhile: str):
    if meanwhile == "made":
        files["hooks"].unlink()
    found = find_hook_files("claude-code")
    assert found is not None
    plan = plan_wrap(found, ["overspill"], ())
    if meanwhile == "made":
        files["hooks"].write_text("theirs")
    else:
        files["hooks"].unlink()
    with pytest.raises(SettingsError, match="Nothing was written"):
        write(plan)
    assert files["servers"].read_text() == CLAUDE_CODE
    assert (files["hooks"].read_text() if files["hooks"].exists() else None) == ("theirs" if meanwhile == "made" else None)
    assert not list(place.root.rglob("*.bak"))
