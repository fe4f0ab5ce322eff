"""A hub of its own for a test, in a folder with a short path, and fronts as the clients of a user start them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from forked import Forked, ForkedApart, find_parent
from forked import run as run_forked
from waiting import wait_until
from wire import OVERSPILL, PATIENCE, Wire, every

from overspill.hub.place import Place

SMALL = "line 1: the quick brown fox\n"
"""What the tool `lines` answers for one line."""

ENVIRON = """
import json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "e", "version": "1"}}
    if message["method"] == "tools/list":
        result = {"tools": [{"name": "where", "inputSchema": {"type": "object"}}]}
    if message["method"] == "tools/call":
        text = json.dumps([os.getcwd(), os.environ.get("WHOSE"), sys.argv[1:]])
        result = {"content": [{"type": "text", "text": text}]}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""
"""A server whose tool `where` says its folder, a variable and its arguments."""


class HubFront(Wire):
    """A front, with the client at its other end."""

    def __init__(
        self,
        command: list[str],
        env: Mapping[str, str],
        cwd: Path | None = None,
        *,
        modern: bool = False,
        fork: type[Forked] | None = Forked,
        **options: Any,
    ) -> None:
        pipe = subprocess.PIPE
        if fork is not None:
            assert command[: len(OVERSPILL)] == OVERSPILL, "only `overspill` itself is forked: pass fork=None"
            command = command[len(OVERSPILL) :]
        self.process = (fork or subprocess.Popen)(
            command, stdin=pipe, stdout=pipe, stderr=pipe, env=dict(env), cwd=cwd, **options
        )
        self.errors = b""
        self._hearing = threading.Thread(target=self._hear, daemon=True)
        self._hearing.start()
        assert self.process.stdin
        assert self.process.stdout
        super().__init__(self.process.stdin, self.process.stdout, modern=modern)

    def end(self) -> int:
        self.hang_up()
        code = self.process.wait(PATIENCE)
        self._hearing.join(PATIENCE)
        return code

    def close(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.end()
        self.process.kill()
        self.process.wait()
        super().close()
        assert self.process.stderr
        self.process.stderr.close()

    def _hear(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.errors += line


class HubHome:
    """The surroundings of one user."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        measuring = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(folder),
            "TMPDIR": str(folder),  # commands that list all stores find none that other tests have left
            "PYTHONPATH": str(Path(__file__).parents[1] / "src"),
            **measuring,
        }

    @property
    def place(self) -> Place:
        return Place.of(self.env)

    @property
    def client(self) -> int:
        """The process that starts all fronts, unless another is said."""
        return find_parent()

    def front(
        self, *options: str, server: list[str] | None = None, cwd: Path | None = None, modern: bool = False, **env: str
    ) -> HubFront:
        command = [*OVERSPILL, "proxy", *options, "--", *(every() if server is None else server)]
        return HubFront(command, {**self.env, **env}, cwd, modern=modern)

    def front_started(self, *options: str, server: list[str] | None = None, **env: str) -> HubFront:
        """One that is no fork, and neither is its hub."""
        command = [*OVERSPILL, "proxy", *options, "--", *(every() if server is None else server)]
        return HubFront(command, {**self.env, **env}, fork=None)

    def elsewhere(self, *options: str, server: list[str] | None = None, modern: bool = False, **env: str) -> HubFront:
        """A front whose parent is another process, as that of another conversation is."""
        command = [*OVERSPILL, "proxy", *options, "--", *(every() if server is None else server)]
        return HubFront(command, {**self.env, **env}, modern=modern, fork=ForkedApart)

    def front_with_mask(self, mask: str) -> HubFront:
        """Of a client whose files get other modes."""
        return HubFront(["sh", "-c", f'umask {mask}; exec "$@"', "sh", *OVERSPILL, "proxy", "--", *every()], self.env, fork=None)

    def overspill(self, *args: str) -> subprocess.CompletedProcess[str]:
        return run_forked(args, env=self.env, capture_output=True, text=True)

    def status(self) -> dict[str, Any] | None:
        """Of the only hub."""
        found = json.loads(self.overspill("hub", "status", "--json").stdout)
        assert len(found) < 2
        return found[0] if found else None

    def pid(self) -> int:
        found = self.status()
        assert found is not None
        return int(found["pid"])

    def kill(self) -> None:
        os.kill(self.pid(), signal.SIGKILL)

    def wait_until_gone(self) -> None:
        for place in Place.every(self.env):
            lock = wait_until(place.take_lock, lambda lock: lock is not None)
            assert lock is not None
            os.close(lock)


@contextmanager
def hub_home() -> Iterator[HubHome]:
    folder = Path(tempfile.mkdtemp(prefix="hub"))
    home = HubHome(folder)
    try:
        yield home
    finally:
        if Place.every(home.env) and home.overspill("hub", "stop").returncode == 0:
            home.wait_until_gone()
        shutil.rmtree(folder, ignore_errors=True)  # a session that has just ended may be removing its own
