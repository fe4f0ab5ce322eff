"""The unit by which systemd or launchd starts the hub: written, removed, and nothing started."""

from __future__ import annotations

import plistlib
import shlex
from pathlib import Path

import pytest
from hubs import HubHome, hub_home

from overspill.errors import OverspillError
from overspill.hub.unit import make_unit

UNIT = ".config/systemd/user/overspill-hub.service"


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A folder with a `systemctl` that leaves a trace if anybody runs it."""
    found = tmp_path / "bin"
    found.mkdir()
    (found / "systemctl").write_text(f"#!/bin/sh\ntouch {tmp_path}/was-run\n")
    (found / "systemctl").chmod(0o755)
    return found


def run(home: HubHome, programs: Path, *words: str, **env: str) -> tuple[int, str, str]:
    home.env |= {"PATH": f"{programs}:{home.env['PATH']}", **env}
    done = home.overspill("hub", *words)
    return done.returncode, done.stdout, done.stderr


def test_install_writes_a_unit_and_uninstall_removes_it_and_nothing_is_started(programs: Path, tmp_path: Path):
    with hub_home() as home:
        code, said, _ = run(home, programs, "install")
        unit = home.folder / UNIT
        assert code == 0
        assert "systemctl --user enable --now overspill-hub.service" in said
        assert said.endswith("hub uninstall\n")
        start = next(line for line in unit.read_text().splitlines() if line.startswith("ExecStart="))
        words = shlex.split(start.removeprefix("ExecStart="))
        assert words[-4:] == ["hub", "run", "--idle-minutes", "0"]
        assert Path(words[0]).is_file()
        assert unit.stat().st_mode & 0o777 == 0o600
        assert run(home, programs, "install")[0] == 0
        link = unit.parent / "default.target.wants" / unit.name
        link.parent.mkdir()
        link.symlink_to(unit)
        code, said, _ = run(home, programs, "uninstall")
        assert code == 0
        assert "systemctl --user disable --now overspill-hub.service" in said
        assert not unit.exists()
        assert not link.is_symlink()
        assert run(home, programs, "uninstall")[1] == "No unit of Overspill is installed.\n"
        assert home.status() is None
    assert not (tmp_path / "was-run").exists()


def test_no_variable_that_may_hold_a_secret_is_written(programs: Path):
    with hub_home() as home:
        _, said, _ = run(home, programs, "install", AWS_SESSION="tuesday", XDG_CACHE_HOME='/a "b" 100% $HOME')
        text = (home.folder / UNIT).read_text()
        assert "tuesday" not in text + said
        assert "get another hub" in said
        assert "AWS_SESSION" in said
        assert 'Environment="XDG_CACHE_HOME=/a \\"b\\" 100%% $HOME"' in text


@pytest.mark.parametrize("kind", ["file", "link", "folder"])
def test_what_somebody_else_made_stays(kind: str, programs: Path):
    with hub_home() as home:
        unit = home.folder / UNIT
        unit.parent.mkdir(parents=True)
        (home.folder / "theirs").write_text("theirs")
        if kind == "link":
            unit.symlink_to(home.folder / "theirs")
        elif kind == "folder":
            unit.mkdir()
        else:
            unit.write_text("theirs")
        for word in ("install", "uninstall"):
            code, _, errors = run(home, programs, word)
            assert code != 0
            assert "exists, and Overspill did not write it" in errors
        assert (home.folder / "theirs").read_text() == "theirs"
        assert unit.exists()


def test_print_writes_nothing(programs: Path):
    with hub_home() as home:
        _, said, _ = run(home, programs, "install", "--print")
        assert "[Service]" in said
        assert not (home.folder / UNIT).exists()


def test_without_systemd_and_launchd_one_line_says_so(tmp_path: Path):
    for platform in ("linux", "win32", "freebsd14"):
        with pytest.raises(OverspillError, match="neither systemd nor launchd here, so nothing was written"):
            make_unit({"HOME": str(tmp_path), "PATH": str(tmp_path)}, platform, ["overspill"])


@pytest.mark.parametrize("environ", [{}, {"HOME": "home"}, {"HOME": "/a\nExecStart=/bin/evil"}])
def test_a_home_that_cannot_hold_a_unit_is_named(environ: dict[str, str]):
    with pytest.raises(OverspillError, match=r"HOME is not set|home folder has characters"):
        make_unit(environ, "darwin", ["overspill"])


def test_on_macos_it_is_an_agent_of_launchd(tmp_path: Path):
    unit = make_unit({"HOME": str(tmp_path), "TZ": "UTC"}, "darwin", ["/opt/overspill"])
    unit.install()
    found = plistlib.loads(unit.file.read_bytes())
    assert found["ProgramArguments"] == ["/opt/overspill", "hub", "run", "--idle-minutes", "0"]
    assert found["EnvironmentVariables"] == {"TZ": "UTC"}
    assert unit.start.startswith("launchctl bootstrap gui/")
    assert unit.uninstall()
    assert not unit.file.exists()
