"""Where a hub listens, who may connect to it, and how it is started.

A front imports this, and a user has dozens of fronts: hence `_socket`, which costs a quarter of the memory of `socket`.
"""

from __future__ import annotations

import _socket
import fcntl
import os
import stat
import sys
from _socket import AF_UNIX, SOCK_STREAM, SOL_SOCKET
from _socket import socket as Socket  # noqa: N812
from binascii import crc32

import overspill

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import NoReturn

_MAX_PATH_BYTES = 103 if sys.platform == "darwin" else 107
_MAX_LOG_BYTES = 1 << 20
_BACKLOG = 128
_FIRST_FILES = 1024  # the numbers of files to check if the system does not list the open files
_PROCESS_NAMES = {
    "CURL_CA_BUNDLE", "DBUS_SESSION_BUS_ADDRESS", "HOME", "LOGNAME", "REQUESTS_CA_BUNDLE", "SSL_CERT_DIR", "SSL_CERT_FILE",
    "TMPDIR", "TZ", "USER", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "XDG_STATE_HOME",
}  # fmt: skip
_PROCESS_PREFIXES = ("AWS_", "AZURE_", "COVERAGE", "DYLD_", "GOOGLE_", "LD_", "PG", "PYTHON")
_START = "from overspill.cli import main; main()"
_RIGHTS = ("Uid", "Gid", "Groups", "Cap", "NoNewPrivs", "Seccomp", "Umask")
_NAMESPACES = ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")


class NoHub(Exception):
    """No hub can be used; the message says why. The proxy then works alone."""


def process_variables(environ: Mapping[str, str]) -> list[str]:
    """Return the variables that libraries read from the environment of their process. Only fronts that agree on them share a hub,
    which has no other variables. All others of a front are used only for what is served for that front."""
    names = [
        name
        for name in environ
        if name in _PROCESS_NAMES or name.startswith(_PROCESS_PREFIXES) or name.lower().endswith("_proxy")
    ]
    return [f"{name}={environ[name]}" for name in sorted(names)]


def rights_of(pid: int | str) -> list[str]:
    """Return what a process may do: its user and groups, its sandbox, its limits and its file mode mask. What a hub starts has
    the rights of the hub, so a hub serves only fronts with the same rights. Empty if the system does not say."""
    folder = f"/proc/{pid}"
    try:
        rights = [line for line in _read_lines(f"{folder}/status") if line.startswith(_RIGHTS)]
        # Programs raise the limit on open files for themselves, so it says nothing about who started them.
        rights += [line for line in _read_lines(f"{folder}/limits") if not line.startswith("Max open files")]
        rights += [os.readlink(f"{folder}/ns/{name}") for name in sorted(os.listdir(f"{folder}/ns")) if name in _NAMESPACES]
        rights.append(os.readlink(f"{folder}/root"))
    except OSError:
        return []
    try:
        return rights + _read_lines(f"{folder}/attr/current")
    except OSError:  # no security module is in use
        return rights


def _read_lines(path: str) -> list[str]:
    with open(path, "rb") as file:
        return file.read().decode("utf-8", "surrogateescape").splitlines()


class Place:
    """The files of one hub: `FOLDER/hub-ID.sock`, `.lock` and `.log`. The ID is derived from a version, a process environment
    and rights, so a front of another version has another hub. A hub is alive as long as it holds the lock, even if its socket is
    silent. The lock was touched last when the hub began."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder = folder
        self.socket, self.lock, self.log = (os.path.join(folder, f"{name}.{kind}") for kind in ("sock", "lock", "log"))

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Place:
        """Return the place of the hub for this environment."""
        installed = os.stat(overspill.__file__).st_mtime_ns  # an update in place is another version too
        parts = [overspill.__version__, str(installed), sys.executable, *process_variables(environ), *rights_of("self")]
        return cls(find_folder(environ), f"hub-{crc32(os.fsencode(chr(0).join(parts))):08x}")

    @classmethod
    def every(cls, environ: Mapping[str, str]) -> list[Place]:
        """List the places where hubs of this user have listened, with any environment and rights."""
        found: list[Place] = []
        folders: dict[str, None] = {}
        for variables in (environ, {**environ, "XDG_RUNTIME_DIR": ""}):
            try:
                folders[find_folder(variables)] = None
            except NoHub:
                continue
        for folder in folders:
            try:
                names = sorted(os.listdir(folder))
            except OSError:  # the folder does not exist, or it is not ours
                continue
            found += [cls(folder, name[:-5]) for name in names if name.startswith("hub-") and name.endswith(".lock")]
        return found

    def check(self) -> None:
        """Raise NoHub unless the folder exists and only you can write to it."""
        if not hasattr(os, "fork") or (not hasattr(_socket, "SO_PEERCRED") and sys.platform != "darwin"):
            raise NoHub("this system does not say who connects to a socket")
        if sys.platform == "linux" and not rights_of("self"):
            raise NoHub("/proc does not say what this process may do")
        if len(os.fsencode(self.socket)) > _MAX_PATH_BYTES:
            raise NoHub(f"the path {self.socket} is longer than the {_MAX_PATH_BYTES} bytes that a socket may have")
        try:
            if not os.path.lexists(self.folder):
                os.makedirs(self.folder, 0o700, exist_ok=True)
            found = os.lstat(self.folder)
        except OSError as problem:
            raise NoHub(f"{self.folder} cannot be made ({problem.strerror})") from None
        if stat.S_ISLNK(found.st_mode) or not stat.S_ISDIR(found.st_mode):
            raise NoHub(f"{self.folder} is not a folder but a link or a file")
        if found.st_uid != os.getuid():
            raise NoHub(f"{self.folder} belongs to somebody else")
        if found.st_mode & 0o077:
            raise NoHub(f"others may open {self.folder}; run `chmod 700` on it")

    def take_lock(self) -> int | None:
        """Take the lock and return a descriptor that holds it, or None if a hub is alive."""
        try:
            lock = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except OSError as problem:
            raise NoHub(f"{self.lock} cannot be opened ({problem.strerror})") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            return None
        os.utime(lock)
        return lock

    def connect(self, within: float) -> Socket:
        """Connect to the socket. Raises OSError if nothing is listening, and NoHub if another user's process is."""
        link = Socket(AF_UNIX, SOCK_STREAM)
        try:
            link.settimeout(within)
            link.connect(self.socket)
            if peer_of(link)[0] != os.getuid():
                raise NoHub(f"somebody else listens at {self.socket}")
        except BaseException:
            link.close()
            raise
        return link

    def listen(self) -> Socket:
        """Open a socket that listens, in place of a dead hub's socket. Call this while you hold the lock."""
        listener = Socket(AF_UNIX, SOCK_STREAM)
        try:
            if os.path.lexists(self.socket):
                os.unlink(self.socket)
            listener.bind(self.socket)
            os.chmod(self.socket, 0o600)
            listener.listen(_BACKLOG)
        except OSError as problem:
            listener.close()
            raise NoHub(f"no socket can be made at {self.socket} ({problem.strerror})") from None
        return listener

    def start(self, lock: int, environ: Mapping[str, str]) -> None:
        """Start a hub that holds the lock from now on. Clients can connect immediately: they wait until it has started."""
        listener = self.listen()
        try:
            log = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            if os.fstat(log).st_size > _MAX_LOG_BYTES:
                os.ftruncate(log, 0)
            child = os.fork()
        except OSError as problem:
            listener.close()
            raise NoHub(f"no process can be started ({problem.strerror})") from None
        if not child:
            try:
                self._become_hub(lock, listener.fileno(), log, environ)
            finally:
                os._exit(127)
        os.waitpid(child, 0)
        os.close(log)
        listener.close()

    def _become_hub(
        self, lock: int, listener: int, log: int, environ: Mapping[str, str]
    ) -> None:  # pragma: no cover  # in a child that becomes another program
        os.setsid()
        if os.fork():
            os._exit(0)
        os.chdir("/")
        nothing = os.open(os.devnull, os.O_RDWR)
        for number, each in enumerate((nothing, log, log)):
            os.dup2(each, number)
        own = dict(each.split("=", 1) for each in process_variables(environ))
        self.execute([listener, lock], own)

    def execute(
        self, held: Sequence[int], environ: Mapping[str, str], *options: str
    ) -> NoReturn:  # pragma: no cover  # becomes another program
        """Become a hub that has these sockets, and the lock. If the code has changed since, it is a hub in another place."""
        for each in _list_open_files():  # close the client's files in the hub: another process may wait until they are closed
            os.set_inheritable(each, each in (0, 1, 2, *held))
        place = ["--at", self.socket, "--inherit", ",".join(map(str, held))]
        words = ["-X", "utf8", "-P", "-c", _START, "hub", "run", *place, *options]
        os.execve(sys.executable, [sys.executable, *words], environ)  # noqa: S606  # our own program


def _list_open_files() -> list[int]:
    found: list[int] = []
    for number in map(int, os.listdir("/dev/fd")) if os.path.isdir("/dev/fd") else range(_FIRST_FILES):
        try:
            os.fstat(number)
            found.append(number)
        except OSError:  # the number was that of the listing itself, or is not in use
            continue
    return found


def find_folder(environ: Mapping[str, str]) -> str:
    """Return the hub's folder in XDG_RUNTIME_DIR, which is the user's and is emptied at boot, or else in the state folder."""
    runtime = environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime) and os.path.isdir(runtime):
        return os.path.join(runtime, "overspill")
    state = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):
        home = environ.get("HOME", "")
        if not os.path.isabs(home):
            raise NoHub("neither XDG_RUNTIME_DIR nor HOME is set")
        state = os.path.join(home, ".local", "state")
    return os.path.join(state, "overspill", "hub")


def find_switch(environ: Mapping[str, str], state: str) -> str:
    """Return the file that exists if the user has chosen `state`. It is a file because a front has no time to read settings."""
    config = environ.get("XDG_CONFIG_HOME", "")
    base = config if os.path.isabs(config) else os.path.join(environ.get("HOME", ""), ".config")
    return os.path.join(base, "overspill", f"hub-{state}")


def is_wanted(environ: Mapping[str, str]) -> bool:
    """Whether proxies without an explicit option use a hub. If the user has not chosen, they do where `rights_of` works."""
    if chosen := environ.get("OVERSPILL_HUB"):
        return chosen == "on"
    if os.path.exists(find_switch(environ, "off")):
        return False
    return sys.platform == "linux" or os.path.exists(find_switch(environ, "on"))


def send_first(link: Socket, greeting: bytes) -> Socket:
    """Send a front's greeting, together with one end of a new socket. Returns the other end, over which the hub confirms."""
    ours, theirs = (Socket(fileno=each.detach()) for each in _socket.socketpair())
    try:
        about = [(SOL_SOCKET, _socket.SCM_RIGHTS, theirs.fileno().to_bytes(4, sys.byteorder))]
        link.sendall(greeting[link.sendmsg([greeting], about) :])
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    ours.setblocking(False)
    return ours


def peer_of(link: Socket) -> tuple[int, int]:
    """Return the user and the process at the other end, as the system reports them; 0 for an unknown process."""
    if sys.platform == "darwin":
        user = link.getsockopt(0, 1, 76)  # LOCAL_PEERCRED of <sys/un.h>: struct xucred begins with a version and the user
        return int.from_bytes(user[4:8], sys.byteorder), link.getsockopt(0, 2)  # LOCAL_PEERPID
    found = link.getsockopt(SOL_SOCKET, _socket.SO_PEERCRED, 12)
    pid, user = (int.from_bytes(found[at : at + 4], sys.byteorder) for at in (0, 4))
    return user, pid
