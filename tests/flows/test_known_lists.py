"""What a server listed last is on disk: a later client gets its lists before the server has started, and while it rests."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from slow import slow
from test_idle_servers import SOON, wait_until_stopped
from wire import Process, proxied

LISTS = str(Path(__file__).parents[1] / "servers" / "lists.py")


class SlowServer:
    """A server whose second start waits until `release` is called, and that lists what `say` says."""

    def __init__(self, folder: Path, era: str = "legacy") -> None:
        self.folder, self.lists, self.pids = folder, folder / "lists.txt", folder / "pids.txt"
        self.gate = folder / "gate"
        self.gate.touch()
        self.pids.touch()
        self.era = era

    @property
    def command(self) -> list[str]:
        wait = (
            f"import os, runpy, sys, time; open({str(self.pids)!r}, 'a').write(str(os.getpid()) + ' ')\n"
            f"while not os.path.exists({str(self.gate)!r}): time.sleep(0.01)\n"
            f"sys.argv = ['lists.py', {self.era!r}, {str(self.lists)!r}]\nrunpy.run_path({LISTS!r}, run_name='__main__')"
        )
        return [sys.executable, "-c", wait]

    def say(self, *names: str, **more: Any) -> None:
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in names]
        stamps = {"resultType": "complete"} if self.era == "modern" else {}
        self.lists.write_text(f"tools/list {json.dumps({'tools': tools, **stamps, **more})}")

    def hold(self) -> None:
        self.gate.unlink()

    def release(self) -> None:
        self.gate.touch()

    @property
    def starts(self) -> list[int]:
        return [int(pid) for pid in self.pids.read_text().split()]

    def client(self, *options: str, env: Mapping[str, str] | None = None) -> Process:
        command = proxied(self.command, f"--set=storeDir={self.folder}", *options)
        ours = {"HOME": str(self.folder), "XDG_STATE_HOME": str(self.folder / "state"), **(env or {})}
        return Process(command, modern=self.era == "modern", env=ours)

    @property
    def files(self) -> list[Path]:
        return sorted((self.folder / "state" / "overspill" / "lists").glob("*.json"))


def changes(wire: Process) -> list[str]:
    return [each["method"] for each in wire.received if "list_changed" in each.get("method", "")]


@pytest.fixture
def server(tmp_path: Path) -> SlowServer:
    found = SlowServer(tmp_path)
    found.say("one", "two")
    return found


def see_once(server: SlowServer) -> None:
    with server.client() as wire:
        wire.hello()
        assert wire.names()[:2] == ["one", "two"]


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_client_has_the_lists_before_the_server_has_started(era: str, tmp_path: Path):
    server = SlowServer(tmp_path, era)
    server.say("one", "two")
    see_once(server)
    server.hold()
    with server.client() as wire:
        assert wire.hello()["capabilities"]["prompts"] == {}
        assert wire.names()[:2] == ["one", "two"]
        server.release()
        assert wire.text("two") == "called two"
        assert changes(wire) == []


@pytest.mark.parametrize("where", ["redact.stored=on", "servers.every.redactStored=on"])
def test_lists_are_not_written_where_secrets_may_not_be(where: str, server: SlowServer):
    with server.client(f"--set={where}") as wire:
        wire.hello()
        assert wire.names()[:2] == ["one", "two"]
    assert server.files == []


def test_the_client_learns_once_that_the_real_list_differs(server: SlowServer):
    see_once(server)
    server.say("one", "three")
    server.hold()
    with server.client() as wire:
        wire.hello()
        assert wire.names()[:2] == ["one", "two"]
        server.release()
        wire.told("notifications/tools/list_changed")
        assert wire.names()[:2] == ["one", "three"]
        wire.call("three")
        assert changes(wire) == ["notifications/tools/list_changed"]
    server.hold()
    with server.client() as wire:
        wire.hello()
        assert wire.names()[:2] == ["one", "three"]
        server.release()


def test_entries_in_another_order_are_the_same_list(server: SlowServer):
    see_once(server)
    server.say("two", "one")
    server.hold()
    with server.client() as wire:
        wire.hello()
        assert wire.names()[:2] == ["one", "two"]
        server.release()
        wire.call("one")
        assert changes(wire) == []


@pytest.mark.parametrize("listed", [("one", "two"), ("one", "three")])
def test_a_list_that_differs_after_a_crash_is_announced_once(listed: tuple[str, str], server: SlowServer):
    with server.client() as wire:
        wire.hello()
        assert wire.names()[:2] == ["one", "two"]
        server.say(*listed)
        os.kill(server.starts[0], signal.SIGKILL)
        wire.call("one")  # which may be the one that learns of it
        assert wire.text("one") == "called one"
        if listed[1] == "three":
            wire.told("notifications/tools/list_changed")
        assert wire.names()[:2] == list(listed)
        wire.call("one")
        assert changes(wire) == ["notifications/tools/list_changed"] * (listed[1] == "three")


def test_a_server_that_rests_is_not_started_for_a_list(server: SlowServer):
    with server.client(SOON) as wire:
        wire.hello()
        wire.names()
        wait_until_stopped(server.starts[0])
        assert wire.names()[:2] == ["one", "two"]
        assert len(server.starts) == 1
        wire.call("one")
        assert len(server.starts) == 2


@pytest.mark.parametrize(("name", "is_known"), [("TOKEN", False), ("SHLVL", True), ("CLAUDE_CODE_SESSION_ID", True)])
def test_another_environment_has_other_lists(name: str, is_known: bool, server: SlowServer):
    with server.client(env={name: "1"}) as wire:
        wire.hello()
        wire.names()
    with server.client(env={name: "2"}) as wire:
        wire.hello()
        wire.names()
    assert len(server.files) == (1 if is_known else 2)


def test_nothing_of_the_environment_is_written(server: SlowServer):
    with server.client(env={"TOKEN": "tuesday-was-secret"}) as wire:
        wire.hello()
        wire.names()
    folder = server.folder / "state" / "overspill" / "lists"
    assert folder.stat().st_mode & 0o777 == 0o700
    for file in folder.iterdir():
        assert file.stat().st_mode & 0o777 == 0o600
        assert b"tuesday" not in file.read_bytes()
        assert b"TOKEN" not in file.read_bytes()


def test_how_long_a_list_may_be_kept_is_what_the_server_says(tmp_path: Path):
    server = SlowServer(tmp_path, "modern")
    server.say("one", ttlMs=3_600_000, cacheScope="public")
    with server.client() as wire:
        wire.hello()
        assert wire.result("tools/list")["ttlMs"] == 3_600_000
    server.hold()
    with server.client() as wire:
        wire.hello()
        known = wire.result("tools/list")
        assert 3_000_000 < known["ttlMs"] <= 3_600_000
        assert known["cacheScope"] == "public"
        server.release()


def test_how_long_the_description_of_a_server_may_be_kept_is_what_the_server_says(tmp_path: Path):
    server = SlowServer(tmp_path, "modern")
    fresh = {"ttlMs": 3_600_000, "cacheScope": "public"}
    server.lists.write_text(f"server/discover {json.dumps(fresh)}")
    for _ in range(2):  # the second time while the server is starting
        with server.client() as wire:
            found = wire.hello()
            assert 3_000_000 < found["ttlMs"] <= 3_600_000
            assert found["cacheScope"] == "public"
            wire.result("tools/list")
            server.release()
        server.hold()


def test_a_list_of_several_servers_may_be_kept_as_long_as_each_of_them(tmp_path: Path):
    servers: dict[str, Any] = {}
    for name, ttl, scope in (("a", 5_000, "public"), ("b", 60_000, "private")):
        (tmp_path / name).mkdir()
        server = SlowServer(tmp_path / name, "modern")
        server.say("one", ttlMs=ttl, cacheScope=scope)
        servers[name] = {"command": server.command[0], "args": server.command[1:]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))
    command = proxied((), "--config", str(tmp_path / "mcp.json"), f"--set=storeDir={tmp_path}")
    with Process(command, modern=True) as wire:
        wire.hello()
        listed = wire.result("tools/list")
        assert 0 < listed["ttlMs"] <= 5_000
        assert listed["cacheScope"] == "private"


def make_deep(file: Path) -> None:
    file.write_bytes(b"[" * 100_000)


def make_huge(file: Path) -> None:
    with file.open("r+b") as opened:
        opened.truncate(1 << 30)


def make_wrong(file: Path) -> None:
    file.write_text(json.dumps({**json.loads(file.read_text()), "lists": {"tools": {"digest": 1, "entries": "x"}}}))


def make_link(file: Path) -> None:
    file.rename(file.with_suffix(".other"))
    file.symlink_to(file.with_suffix(".other"))


def make_pipe(file: Path) -> None:
    file.unlink()
    os.mkfifo(file, 0o600)


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:100])


def open_to_all(file: Path) -> None:
    file.chmod(0o666)


def give_away(file: Path) -> None:
    os.chown(file, 12345, -1)


@pytest.mark.parametrize("spoil", [make_huge, make_link, open_to_all, *slow(make_deep, make_wrong, make_pipe, cut, give_away)])
def test_a_file_that_may_not_be_ours_is_ignored_with_one_line(spoil: Any, server: SlowServer):
    if spoil is give_away and os.getuid():
        pytest.skip("only root can give files away")
    see_once(server)
    spoil(server.files[0])
    with server.client() as wire:
        wire.hello()
        assert wire.names()[:2] == ["one", "two"]
        wire.end()
        lines = [line for line in wire.errors.decode().splitlines() if "lists kept" in line]
        assert len(lines) == 1
        assert len(lines[0]) < 400


def test_entries_that_no_client_could_read_are_left_out(server: SlowServer):
    see_once(server)
    (file,) = server.files
    known = json.loads(file.read_text())
    known["lists"]["tools"]["entries"] += [7, {"name": "bad", "inputSchema": []}]
    file.write_text(json.dumps(known))
    server.hold()
    with server.client() as wire:
        wire.hello()
        assert wire.names()[:2] == ["one", "two"]
        assert "bad" not in wire.names()
        server.release()


def test_a_folder_of_others_is_not_used(server: SlowServer):
    see_once(server)
    server.files[0].parent.chmod(0o777)
    with server.client() as wire:
        wire.hello()
        assert wire.names()[:2] == ["one", "two"]
        wire.end()
        assert b"is not a folder that only you can use" in wire.errors
