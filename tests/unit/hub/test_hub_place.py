"""Where a hub may listen, and what a front does where none can."""

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hubs import SMALL, HubFront, HubHome, hub_home
from slow import slow
from upstream import is_alive
from waiting import wait_until
from wire import OVERSPILL, every

import overspill
from overspill.hub import frames, front
from overspill.hub.place import NoHub, Place, process_variables, rights_of


@pytest.fixture
def home() -> Iterator[HubHome]:
    with hub_home() as found:
        yield found


def alone(home: HubHome, **env: str) -> str:
    """What a proxy says on standard error that works, but alone."""
    with home.front(**env) as client:
        client.hello()
        assert client.text("lines", {"count": 1}) == SMALL
        assert client.end() == 0
    return client.errors.decode()


def test_a_folder_that_is_a_link_is_refused(home: HubHome, tmp_path: Path):
    Path(home.place.folder).symlink_to(tmp_path)
    said = alone(home)
    assert f"No hub is used, because {home.place.folder} is not a folder but a link or a file. This proxy works alone." in said


def test_a_folder_that_others_may_open_is_refused(home: HubHome):
    os.mkdir(home.place.folder, 0o755)
    assert "run `chmod 700` on it" in alone(home)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_refused(home: HubHome):
    os.mkdir(home.place.folder, 0o700)
    os.chown(home.place.folder, 12345, 12345)
    with pytest.raises(NoHub, match="belongs to somebody else"):
        home.place.check()


def test_a_path_longer_than_a_socket_may_have_is_refused(home: HubHome):
    long = home.folder / ("x" * 90)
    long.mkdir()
    assert "longer than" in alone(home, XDG_RUNTIME_DIR=str(long))


def test_a_folder_in_which_nothing_can_be_made_is_refused(home: HubHome):
    (home.folder / "file").write_text("")
    assert "cannot be made" in alone(home, XDG_RUNTIME_DIR="", XDG_STATE_HOME=str(home.folder / "file"))


def test_a_place_that_takes_no_socket_is_refused(home: HubHome):
    home.place.check()
    os.mkdir(home.place.socket)
    assert f"No hub is used, because no socket can be made at {home.place.socket} (" in alone(home)


UNSHARE = shutil.which("unshare")
FULL = 'mount -t tmpfs -o mode=700,nr_inodes="$1" full "$2" && shift 2 && exec "$@"'


@pytest.mark.skipif(os.getuid() != 0, reason="only root can mount")
@pytest.mark.parametrize("files", [3, *slow(2, 4)])
def test_a_full_disk_is_named_and_the_proxy_works_alone(home: HubHome, files: int):
    why = {2: "lock cannot be opened", 3: "no socket can be made", 4: "can be started"}[files]
    run = home.folder / "run"
    run.mkdir()
    if not UNSHARE or subprocess.run([UNSHARE, "-m", "true"], check=False).returncode:
        pytest.skip("this container may not mount")
    command = [UNSHARE, "-m", "sh", "-c", FULL, "sh", str(files), str(run), *OVERSPILL, "proxy", "--", *every()]
    with HubFront(command, {**home.env, "XDG_RUNTIME_DIR": str(run)}, fork=None) as client:
        client.hello()
        assert client.text("lines", {"count": 1}) == SMALL
        assert client.end() == 0
    whole = rf"overspill: No hub is used, because .*{why}.* \(No space left on device\)\. This proxy works alone\.\n"
    assert re.fullmatch(whole, client.errors.decode())


def test_without_a_home_there_is_no_hub():
    with pytest.raises(NoHub, match="neither XDG_RUNTIME_DIR nor HOME is set"):
        Place.of({})


def test_a_file_that_only_the_proxy_can_read_is_not_given_to_the_hub(home: HubHome):
    pipe = home.folder / "pipe"
    os.mkfifo(pipe)
    command, *args = every()
    content = json.dumps({"mcpServers": {"every": {"command": command, "args": args}}})
    threading.Thread(target=pipe.write_text, args=(content,), daemon=True).start()
    with HubFront([*OVERSPILL, "proxy", "--config", str(pipe)], home.env) as client:
        client.hello()
        assert client.end() == 0
    assert f"only this process can read {pipe}" in client.errors.decode()


def test_an_old_hub_leaves_the_socket_of_a_new_one_alone(home: HubHome):
    with home.front() as old:
        old.hello()
        first = home.pid()
        shutil.rmtree(home.place.folder)
        with home.front() as new:
            new.hello()
            before = home.pid()
            old.end()
            assert home.pid() == before
            assert os.path.exists(home.place.socket)
            os.kill(first, signal.SIGTERM)
            wait_until(lambda: not is_alive(first))
            assert home.pid() == before


def test_off_means_off_without_a_word(home: HubHome):
    assert alone(home, OVERSPILL_HUB="off") == ""
    assert not os.path.exists(home.place.folder)


def test_the_socket_of_a_dead_hub_is_replaced(home: HubHome):
    home.place.check()
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(home.place.socket)
    with home.front() as client:
        client.hello()
        assert home.pid()


def test_a_hub_that_hangs_is_left_alone(home: HubHome, monkeypatch: pytest.MonkeyPatch):
    home.place.check()
    lock = home.place.take_lock()
    assert lock is not None
    os.utime(home.place.lock, (0, 0))  # it has been running for long, so it is not still starting
    monkeypatch.setattr(front, "_ANSWER_SECONDS", 0.3)
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(home.place.socket)
        hanging.listen()
        with pytest.raises(NoHub, match="does not answer"):
            front.Front(home.place, ["proxy"], home.env).connect()
    os.close(lock)
    os.unlink(home.place.socket)


NOT_OF_A_FRONT = [
    b"",
    b"H",
    b"H\xff\xff\xff\xff",
    frames.pack(frames.HELLO, b"no"),
    frames.pack(frames.HELLO, b"0.1.0\0/\x0099\0proxy"),
    frames.pack(frames.HELLO, b"0.1.0\0/\0many\0proxy"),
    frames.pack(b"?", b"what"),
    frames.pack(frames.QUERY, b"what"),
    b"GET / HTTP/1.1\r\n\r\n" * 1000,
]


def test_what_is_not_a_front_gets_no_answer_and_harms_nobody(home: HubHome):
    with home.front() as client:
        client.hello()
        for sent in NOT_OF_A_FRONT:
            with socket.socket(socket.AF_UNIX) as stranger:
                stranger.connect(home.place.socket)
                stranger.sendall(sent)
                stranger.shutdown(socket.SHUT_WR)
                stranger.settimeout(30)
                with suppress(ConnectionResetError):
                    assert stranger.recv(100) == b"", sent
            assert client.text("lines", {"count": 1}) == SMALL


def test_a_front_that_floods_ends_only_itself_and_is_named(home: HubHome):
    with home.front() as client:
        client.hello()
        with closing(home.place.connect(30)) as flood:
            variables = [f"{name}={value}" for name, value in home.env.items()]
            flood.sendall(frames.pack_hello(["proxy", "--", *every()], str(home.folder), variables, overspill.__version__))
            received = bytearray()
            while (frame := frames.unpack(received, 1000)) is None:
                received += flood.recv(1000)
            assert frame == (frames.WELCOME, b"")
            flood.sendall(frames.DATA + (2 << 20).to_bytes(4, "big"))
            with suppress(ConnectionResetError):
                while more := flood.recv(1 << 16):
                    received += more
        assert b"failed" not in received
        assert client.text("lines", {"count": 1}) == SMALL
    log = Path(home.place.log).read_text()
    assert f"process {os.getpid()} is not listened to any more: it sent a frame of 2,097,152 bytes, more than" in log


def test_a_front_of_another_version_is_refused(home: HubHome):
    with home.front() as client:
        client.hello()
        with socket.socket(socket.AF_UNIX) as other:
            other.connect(home.place.socket)
            other.sendall(frames.pack_hello(["proxy"], "/", [], "9.9.9"))
            other.settimeout(30)
            received = bytearray(other.recv(1000))
        assert frames.unpack(received, 1000) == (frames.REFUSED, b"the hub has another version or another environment")


CONNECT = """
import os, socket, sys
from overspill import __version__
from overspill.hub import frames
os.umask(0o137)
with socket.socket(socket.AF_UNIX) as link:
    link.connect(sys.argv[1])
    link.sendall(frames.pack_hello(["proxy", "--", "id"], "/", sys.argv[2:], __version__))
    received = bytearray(link.recv(1000))
print(*frames.unpack(received, 1000))
"""


def test_a_process_with_other_rights_cannot_have_a_hub_start_anything_for_it(home: HubHome):
    with home.front() as client:
        client.hello()
        variables = [f"{name}={value}" for name, value in home.env.items()]
        command = [sys.executable, "-c", CONNECT, home.place.socket, *variables]
        done = subprocess.run(command, env=home.env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "b'N' b'the hub has other rights or limits'\n"


def test_rights_name_the_sandbox_and_the_limits_of_a_process():
    rights = rights_of("self")
    assert rights == rights_of(os.getpid())
    for name in ("Uid:", "CapEff:", "NoNewPrivs:", "Seccomp:", "Umask:", "Max processes", "mnt:[", "pid:["):
        assert any(line.startswith(name) for line in rights), name
    assert rights_of(1 << 30) == []


def test_another_process_environment_has_another_hub_and_other_variables_do_not():
    base = {"HOME": "/home/me", "XDG_RUNTIME_DIR": "/"}
    assert Place.of(base).socket == Place.of({**base, "API_KEY": "x", "PATH": "/bin"}).socket
    for name in ("HTTPS_PROXY", "http_proxy", "SSL_CERT_FILE", "PYTHONPATH", "AWS_PROFILE", "TMPDIR"):
        assert Place.of(base).socket != Place.of({**base, name: "x"}).socket
    assert process_variables({"API_KEY": "x", "TZ": "UTC"}) == ["TZ=UTC"]
