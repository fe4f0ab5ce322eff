"""For tests of the commands: a user's place with a store, filled by real sessions, and `overspill` called in it."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from forked import Forked
from forked import run as run_forked

from overspill.cli import main
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.files.store import FileStore
from overspill.types import Kept

SOURCE = Path(__file__).parents[1] / "src"
RUN = "from overspill.cli import main; main()"


def bare_environment(home: Path) -> dict[str, str]:
    """What a user has who has set nothing, and what measures coverage."""
    measuring = {name: value for name, value in os.environ.items() if name.startswith("COVERAGE")}
    ours = {"PYTHONPATH": str(SOURCE), "OVERSPILL_HUB": "off"}
    return {"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8", **ours, **measuring}


class Result(NamedTuple):
    code: int
    out: str
    err: str


class Place:
    """`store` is what the user's config names."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.root, self.store, self._capsys = root, root / "store", capsys
        (root / "config" / "overspill").mkdir(parents=True)
        (root / "config" / "overspill" / "config.yaml").write_text(f"storeDir: {self.store}\n")
        (root / "cwd").mkdir()
        monkeypatch.chdir(root / "cwd")
        monkeypatch.setenv("XDG_CONFIG_HOME", str(root / "config"))
        monkeypatch.setenv("XDG_STATE_HOME", str(root / "state"))  # lists of all stores have nothing that other tests left
        monkeypatch.setenv("HOME", str(root))

    def overspill(self, *args: str) -> Result:
        self._capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main(args)
        return Result(int(str(end.value.code)), *self._capsys.readouterr())

    def process(self, *args: str, **options: Any) -> subprocess.CompletedProcess[bytes]:
        """Forked, unless what Python does when it starts matters: then there are variables or functions for it."""
        if not options.keys() & {"env", "preexec_fn"}:
            return run_forked(args, **options)
        env = {**options.pop("env", os.environ), "PYTHONPATH": str(SOURCE)}
        return subprocess.run([sys.executable, "-c", RUN, *args], env=env, timeout=60, check=False, **options)

    def without(self, module: str, *args: str) -> Result:
        """Where a package that has this module is not installed."""
        code = f"import sys; sys.modules[{module!r}] = None; {RUN}"
        env = {**os.environ, "PYTHONPATH": str(SOURCE)}
        command = [sys.executable, "-c", code, *args]
        ended = subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)
        return Result(ended.returncode, ended.stdout, ended.stderr)

    def keep(self, **outputs: Any) -> list[Kept]:
        """In a session of its own that is closed and kept."""

        async def run() -> list[Kept]:
            store = FileStore(self.store)
            async with Session(Settings(retention="keep"), store=store) as session:
                found = [await session.keep(data, name) for name, data in outputs.items()]
            store.close()
            return found

        return anyio.run(run)

    def file(self, kept: Kept) -> Path:
        (found,) = self.store.rglob(f"session-{kept.session}/{kept.id}")
        return found

    def journal(self, kept: Kept) -> Path:
        return self.file(kept).parent / "journal.jsonl"


Overspill = Callable[..., Result]


def on_a_terminal(
    *args: str, answer: bytes | signal.Signals = b"", asked: bytes = b"[y/N]", columns: int = 100
) -> tuple[int, str]:
    """As a person sees it, who types or presses something when asked."""
    ours, theirs = pty.openpty()
    env = {**os.environ, "COLUMNS": str(columns)}
    process = Forked(args, stdin=theirs, stdout=theirs, stderr=theirs, env=env)
    os.close(theirs)
    seen, due = bytearray(), 0.0
    while True:
        try:
            if select.select([ours], [], [], 0.5)[0]:
                seen += os.read(ours, 65536)
        except OSError:  # the other side is closed
            break
        if asked in seen and isinstance(answer, signal.Signals) and time.monotonic() > due:
            # Again, after a while: one that comes just before a read begins is not heard, one while it ends is too much.
            process.send_signal(answer)
            due = time.monotonic() + 5
        elif isinstance(answer, bytes) and answer and asked in seen:
            os.write(ours, answer)
            answer = b""
    os.close(ours)
    return process.wait(timeout=60), seen.decode()
