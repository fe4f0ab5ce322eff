"""Reading and replacing a client's file, and where the files of known clients lie."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime
from pathlib import Path

import pytest

from overspill.errors import SettingsError
from overspill.mcp.host_configs import clients as places
from overspill.mcp.host_configs import files

NOW = datetime(2026, 11, 15, 7, 43, 1, 18457, tzinfo=UTC)
COPY = "mcp.json.overspill-20261115-074301-018457.bak"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "mcp.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}\r\n')
    return file


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_file_is_replaced_and_its_old_text_kept_for_its_owner_only(file: Path):
    file.chmod(0o640)
    copy = files.read(file).replace("new\r\n", NOW)
    assert file.read_bytes() == b"new\r\n"
    assert copy == file.with_name(COPY)
    assert copy.read_bytes() == b'\xef\xbb\xbf{"a": 1}\r\n'
    assert (mode(file), mode(copy)) == (0o640, 0o600)
    assert sorted(path.name for path in file.parent.iterdir()) == ["mcp.json", COPY]


def test_a_backup_never_overwrites_another_file(file: Path):
    first = files.read(file).replace("two", NOW)
    second = files.read(file).replace("three", NOW)
    assert (first.read_text("utf-8-sig"), second.read_text()) == ('{"a": 1}\n', "two")
    assert second.name == "mcp.json.overspill-20261115-074301-018458.bak"
    assert files.read(file).read_backups() == ["two", '\ufeff{"a": 1}\r\n']


def test_the_same_text_is_backed_up_only_once(file: Path):
    first = files.read(file).replace("two", NOW)
    second = files.read(file).replace('\ufeff{"a": 1}\r\n', NOW)
    assert files.read(file).replace("two", NOW) == first
    assert files.read(file).replace("three", NOW) == second
    assert sorted(path.name for path in file.parent.iterdir()) == ["mcp.json", first.name, second.name]
    found = files.read(file)
    file.write_text("theirs")
    with pytest.raises(SettingsError):
        found.replace("ours", NOW)
    assert first.exists()


def test_a_symbolic_link_does_not_count_as_a_backup(file: Path):
    elsewhere = file.parent / "elsewhere"
    elsewhere.write_bytes(file.read_bytes())
    file.with_name(COPY).symlink_to(elsewhere)
    assert not files.read(file).replace("two", NOW).is_symlink()


def test_unreadable_backups_are_skipped(file: Path):
    file.with_name(COPY).write_bytes(b"\xff")
    (file.parent / "other.json.overspill-1.bak").write_text("other")
    assert files.read(file).read_backups() == []


def test_a_file_name_with_glob_characters_finds_only_its_own_backups(tmp_path: Path):
    (tmp_path / "[ab].json").write_text("1")
    (tmp_path / "a.json.overspill-1.bak").write_text("other")
    files.read(tmp_path / "[ab].json").replace("2", NOW)
    assert files.read(tmp_path / "[ab].json").read_backups() == ["1"]


def test_a_link_stays_a_link(file: Path):
    link = file.parent / "link.json"
    link.symlink_to(file)
    found = files.read(link)
    assert found.is_symlink
    copy = found.replace("new", NOW)
    assert link.is_symlink()
    assert file.read_text() == "new"
    assert copy.parent == file.parent
    assert not files.read(file).is_symlink


def test_a_change_by_another_program_is_not_overwritten(file: Path):
    found = files.read(file)
    file.write_text("theirs")
    with pytest.raises(SettingsError) as error:
        found.replace("ours", NOW)
    assert str(error.value) == f"{file} has just been changed by another program. Nothing was written; run this again."
    assert file.read_text() == "theirs"
    assert [path.name for path in file.parent.iterdir()] == ["mcp.json"]


def test_a_deleted_file_is_not_created_again(file: Path):
    found = files.read(file)
    file.unlink()
    with pytest.raises(SettingsError, match="cannot be changed: No such file or directory"):
        found.replace("ours", NOW)
    assert list(file.parent.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_not_writable_is_reported(file: Path):
    file.parent.chmod(0o500)
    with pytest.raises(SettingsError) as error:
        files.read(file).replace("ours", NOW)
    file.parent.chmod(0o700)
    assert str(error.value) == (
        f"{file} cannot be changed: Permission denied. Nothing was written. "
        "Its folder must be writable, and the disk needs room for a copy."
    )


def test_anything_but_a_readable_file_is_refused(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "latin").write_bytes(b"{\n\xe9}")
    with (tmp_path / "huge").open("wb") as huge:
        huge.truncate(33 * 1024 * 1024)
    messages: list[str] = []
    for name in ("none", "pipe", "loop", ".", "latin", "huge"):
        with pytest.raises(SettingsError) as error:
            files.read(tmp_path / name)
        messages.append(str(error.value).replace(str(tmp_path), "DIR"))
    assert messages == [
        "DIR/none cannot be read: No such file or directory.",
        "DIR/pipe is not a regular file.",
        "DIR/loop cannot be read: Too many levels of symbolic links.",
        "DIR is not a regular file.",
        "DIR/latin is not UTF-8, line 2. Save it as UTF-8.",
        "DIR/huge is larger than 33,554,432 bytes. That is too large for a client's configuration.",
    ]


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        (
            "linux",
            {},
            [".claude.json", ".config/Claude/claude_desktop_config.json", ".cursor/mcp.json", ".config/Code/User/mcp.json"],
        ),
        (
            "darwin",
            {"XDG_CONFIG_HOME": "/elsewhere"},
            [
                ".claude.json",
                "Library/Application Support/Claude/claude_desktop_config.json",
                ".cursor/mcp.json",
                "Library/Application Support/Code/User/mcp.json",
            ],
        ),
        (
            "win32",
            {},
            [
                ".claude.json",
                "AppData/Roaming/Claude/claude_desktop_config.json",
                ".cursor/mcp.json",
                "AppData/Roaming/Code/User/mcp.json",
            ],
        ),
        (
            "linux",
            {"CLAUDE_CONFIG_DIR": "/home/ada/work", "XDG_CONFIG_HOME": "/home/ada/xdg"},
            ["work/.claude.json", "xdg/Claude/claude_desktop_config.json", ".cursor/mcp.json", "xdg/Code/User/mcp.json"],
        ),
    ],
)
def test_each_client_has_its_own_file(platform: str, environ: dict[str, str], expected: list[str]):
    clients = places.known_clients(Path("/home/ada"), platform, environ)
    assert list(clients)[:4] == ["claude-code", "claude-desktop", "cursor", "vscode"]
    assert [str(client.file.relative_to("/home/ada")) for client in list(clients.values())[:4]] == expected


@pytest.mark.parametrize(
    ("platform", "environ", "expected"),
    [
        (
            "linux",
            {},
            {
                "windsurf": ".codeium/windsurf/mcp_config.json",
                "cline": ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
                "codex": ".codex/config.toml",
                "gemini-cli": ".gemini/settings.json",
                "opencode": ".config/opencode/opencode.json",
                "zed": ".config/zed/settings.json",
                "goose": ".config/goose/config.yaml",
            },
        ),
        ("darwin", {"CODEX_HOME": "/home/ada/c"}, {"codex": "c/config.toml", "zed": ".config/zed/settings.json"}),
    ],
)
def test_clients_with_a_form_of_their_own_have_their_files_too(platform: str, environ: dict[str, str], expected: dict[str, str]):
    clients = places.known_clients(Path("/home/ada"), platform, environ)
    assert {name: str(clients[name].file.relative_to("/home/ada")) for name in expected} == expected


def test_a_files_client_is_known_by_its_path():
    clients = places.known_clients(Path("/home/ada"), "linux", {})
    found = {
        path: client.name if (client := places.find_owner(Path(path), clients)) else None
        for path in ("/x/.mcp.json", "/x/.vscode/mcp.json", "/home/ada/.cursor/mcp.json", "/x/mcp.json", "/x/a.mcp.json")
    }
    assert found == {
        "/x/.mcp.json": "claude-code",
        "/x/.vscode/mcp.json": "vscode",
        "/home/ada/.cursor/mcp.json": "cursor",
        "/x/mcp.json": None,
        "/x/a.mcp.json": None,
    }
