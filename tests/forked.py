"""`overspill`, and the workers it starts, as processes without the time their imports take: forked from one that has them.

It has its own streams, signals, folder, variables and exit code. What Python itself reads when it starts, such as `LANG` and
`PYTHONPATH`, is the same for all: tests of that start `overspill` for real, and so does one test of each command.

A hub that such a process starts is a fork too, unless the test has a `sitecustomize.py` or other code for it.
"""

from __future__ import annotations

import atexit
import functools
import gc
import os
import pickle
import select
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any, NamedTuple, NoReturn

import overspill
from overspill.errors import OverspillError
from overspill.text import tokens
from overspill.text.regex import Regex

_SERVE = (
    "import sys; fd, here, kind = sys.argv[1:]; sys.path.append(here); import forked; "
    "run = forked.serve(int(fd), kind); run and run()"
)
_OF_FEW = tuple(
    f"overspill.{room}"
    for room in (
        "integrations",
        "models.clients",
        "record.otel",
        "sql",
        "store.objects",
        "store.postgres",
        "testing",
        "tool_search.semantic",
    )
)
"""What few tests need and brings large packages."""
_WORKERS = {
    "overspill.sql.worker load": ("overspill.sql.loading", "decimal", "pytz", "uuid"),
    "overspill.sql.worker query": ("overspill.sql.querying", "decimal", "pytz", "uuid"),
    "overspill.schema.worker": ("jsonschema", "jsonschema_specifications", "referencing.jsonschema", "overspill.text.patterns"),
}
"""What `confined/worker.py` starts, and what it imports."""
_COMMANDS = "commands"
measuring: dict[str, str] | None = None
"""The variables for coverage, while a test runs that it does not count."""
_starting = threading.Lock()
_servers = dict[str, tuple[subprocess.Popen[bytes], socket.socket]]()
"""What forks each kind of process, as soon as one is needed."""


class _Start(NamedTuple):
    program: str
    """The module whose `main` is called."""
    args: list[str]
    cwd: str
    env: dict[str, str]
    in_new_session: bool
    is_apart: bool
    is_counted: bool
    """Whether coverage counts what it runs."""


def run(args: Sequence[str], *, input: Any = None, capture_output: bool = False, timeout: float = 60, **options: Any) -> Any:
    """As `subprocess.run`. The arguments are those of `overspill`."""
    if input is not None:
        options["stdin"] = subprocess.PIPE
    if capture_output:
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Forked(args, **options) as process:
        try:
            out, err = process.communicate(input, timeout)
        except BaseException:
            process.kill()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


class Forked(subprocess.Popen[Any]):
    """The arguments are those of `overspill`. It is a child of the server, which tells how it ended."""

    _line: socket.socket
    _is_apart = False

    def _execute_child(self, args: Sequence[str], *rest: Any) -> None:  # pyright: ignore
        _, _, _, pass_fds, cwd, env, _, _, _, *pipes = rest[:15]
        assert not pass_fds, "a forked process has only its three streams"
        in_new_session = rest[-2]
        env = dict(os.environ if env is None else env)
        place = os.fspath(cwd or Path.cwd())
        start = _Start(self._program(args), self._arguments(args), place, env, in_new_session, self._is_apart, measuring is None)
        self._line, theirs = socket.socketpair()
        given = (theirs.fileno(), *(own if own != -1 else number for number, own in enumerate((pipes[0], pipes[3], pipes[5]))))
        try:
            with theirs, _starting:
                socket.send_fds(_find_server(self._kind(args)), [b"!"], given)
            self._line.sendall(pickle.dumps(start))
            self._line.shutdown(socket.SHUT_WR)
            self.pid = int.from_bytes(self._line.recv(4), "big")
            assert self.pid, "the process that forks has ended"
            self._child_created = True
        finally:
            self._close_pipe_fds(*pipes)  # pyright: ignore

    def _program(self, args: Sequence[str]) -> str:
        return "overspill.cli"

    def _arguments(self, args: Sequence[str]) -> list[str]:
        return list(args)

    def _kind(self, args: Sequence[str]) -> str:
        return _COMMANDS

    def _internal_poll(self, _deadstate: object = None) -> int | None:
        if self.returncode is None and self._has_ended(0):
            self.returncode = int.from_bytes(self._line.recv(4), "big", signed=True)
            self._line.close()
        return self.returncode

    def _wait(self, timeout: float | None) -> int | None:  # pyright: ignore
        if self.returncode is None and not self._has_ended(timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self._internal_poll()

    def _has_ended(self, timeout: float | None) -> bool:
        poll = select.poll()  # unlike `select`, it takes numbers above 1,023
        poll.register(self._line, select.POLLIN)
        return bool(poll.poll(None if timeout is None else timeout * 1000))


class ForkedApart(Forked):
    """A process that has forked the command and waits for it, as another client of the same user."""

    _is_apart = True


class _ForkedWorker(Forked):
    def _program(self, args: Sequence[str]) -> str:
        return _find_program(args).partition(" ")[0]

    def _arguments(self, args: Sequence[str]) -> list[str]:
        return list(args[4:])

    def _kind(self, args: Sequence[str]) -> str:
        return _find_program(args)


def start_worker(args: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Takes the place of `subprocess.Popen` in `confined/worker.py`, where they are `PYTHON -I -S SCRIPT [TASK] PATH…`."""
    return (_ForkedWorker if _find_program(args) in _WORKERS else subprocess.Popen)(args, **options)


def _find_program(args: Sequence[str]) -> str:
    """The module, and the task that it is started with."""
    source, script = Path(overspill.__file__).parents[1], Path(args[3])
    module = ".".join(script.relative_to(source).with_suffix("").parts) if script.is_relative_to(source) else ""
    return f"{module} {args[4]}" if args[4] in ("load", "query") else module


def _find_server(kind: str) -> socket.socket:
    if kind not in _servers:
        ours, theirs = socket.socketpair()
        known = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")} | (measuring or {})
        env = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "PYTHONPATH": str(Path(overspill.__file__).parents[1]), **known}
        with theirs:
            command = [sys.executable, "-c", _SERVE, str(theirs.fileno()), str(Path(__file__).parent), kind]
            server = subprocess.Popen(
                command,
                env=env,
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
                cwd=Path.home().root,
            )
        _servers[kind] = server, ours
    return _servers[kind][1]


def find_parent() -> int:
    """The process whose children are all forked commands."""
    _find_server(_COMMANDS)
    return _servers[_COMMANDS][0].pid


def end_servers() -> None:
    """They end when nobody can ask them any more. Coverage counts only what has been written before the tests end."""
    while _servers:
        _, (server, ours) = _servers.popitem()
        ours.close()
        server.wait(60)


def serve(fd: int, kind: str) -> Any:
    """Fork whenever asked. Returns what to call: in a forked process the program, in the server, when all is over, nothing."""
    if kind in _WORKERS:
        _import(kind.partition(" ")[0], *_WORKERS[kind])
    else:
        names = [module.name for module in walk_packages(overspill.__path__, "overspill.")]
        _import(*(name for name in names if not name.startswith(_OF_FEW)), "anyio._backends._asyncio")
        import_module("trust").load_certificates_once()
        patterns: list[Any] = [each for each in gc.get_objects() if isinstance(each, Regex)]
        assert all(each.pattern for each in patterns)  # compiled here, so that no process compiles what it uses
        # The first count takes five times as long as everything else that `extract` does.
        tokens.count(Path(__file__).read_text("utf-8"))
    assert threading.active_count() == 1, "a fork would lose the others"
    gc.freeze()
    woken, waking = socket.socketpair()
    waking.setblocking(False)
    for number in (signal.SIGHUP, signal.SIGTERM):  # whatever runs the tests may have them ignore some
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waking.fileno())
    asking, lines = socket.socket(fileno=fd), dict[int, socket.socket]()
    while True:
        ready, _, _ = select.select([asking, woken], [], [])
        if woken in ready:
            woken.recv(4096)
            _report_ended(lines)
        if asking not in ready:
            continue
        said, fds, _, _ = socket.recv_fds(asking, 1, 4)
        if not said:
            return None
        line = socket.socket(fileno=fds[0])
        start: _Start = pickle.loads(b"".join(iter(lambda: line.recv(1 << 16), b"")))  # noqa: S301, B023
        if child := os.fork():
            lines[child] = line
            for each in fds[1:]:
                os.close(each)
            continue
        if start.in_new_session:
            os.setsid()
        line.sendall(os.getpid().to_bytes(4, "big"))
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        for each in (asking, woken, waking, line, *lines.values()):
            each.close()
        if start.is_apart and (command := os.fork()):
            for each in fds[1:]:
                os.close(each)
            os._exit(os.waitstatus_to_exitcode(os.waitpid(command, 0)[1]) & 0xFF)
        return functools.partial(_become, start, fds[1:])


def _import(*names: str) -> None:
    for name in names:
        with suppress(ImportError, OverspillError):  # where a package is not installed, the command that needs it says so
            import_module(name)


def _report_ended(lines: dict[int, socket.socket]) -> None:
    while lines:
        child, status = os.waitpid(-1, os.WNOHANG)
        if not child:
            return
        with lines.pop(child) as line:
            line.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))


def _become(start: _Start, streams: Sequence[int]) -> None:
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    os.chdir(start.cwd)
    os.environ.clear()
    os.environ.update(start.env)
    time.tzset()
    if not start.is_counted and "coverage" in sys.modules and (coverage := sys.modules["coverage"].Coverage.current()):
        coverage.stop()
    sys.argv = ["-c", *start.args]
    sys.path.pop()  # where this file is
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        old = getattr(sys, name)
        stream = open(number, old.mode, encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    folders = start.env.get("PYTHONPATH", "").split(os.pathsep)
    is_ours = folders[-1] == str(Path(overspill.__file__).parents[1])
    if is_ours and start.args[:1] != ["hub"] and not any(Path(folder, "sitecustomize.py").exists() for folder in folders):
        os.execve = _become_hub
    _run(start.program)


def _run(program: str) -> None:
    try:
        import_module(program).main()
        _exit(0)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            _exit(end.code or 0)
        raise


def _become_hub(_program: str, words: Sequence[str], env: Mapping[str, str]) -> NoReturn:
    """In place of `os.execve`, in a process that `hub/place.py` has forked to become a hub."""
    for number in map(int, os.listdir("/dev/fd")):
        with suppress(OSError):  # the listing's own
            if not os.get_inheritable(number):
                os.close(number)
    os.environ.clear()
    os.environ.update(env)
    sys.argv = ["-c", *words[words.index("hub") :]]
    try:
        _run("overspill.cli")
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def _exit(code: int) -> None:
    """As Python ends, without taking its modules apart, which costs more than most commands do themselves."""
    threading._shutdown()  # pyright: ignore  # waits for threads
    atexit._run_exitfuncs()
    with suppress(OSError):  # Python says itself that nobody reads any more
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code & 0xFF)
