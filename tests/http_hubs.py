"""A user whose hub is installed with a port, and the client files that hold its tokens."""

from __future__ import annotations

import json
import os
import shlex
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from forked import Forked
from hubs import HubHome, hub_home
from wire import OVERSPILL, PATIENCE, every

UNIT = ".config/systemd/user/overspill-hub.service"


class HttpHome(HubHome):
    """A user whose hub is installed with a port."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        systemctl = folder / "bin" / "systemctl"
        systemctl.parent.mkdir()
        systemctl.write_text("#!/bin/sh\n")
        systemctl.chmod(0o755)
        self.env["PATH"] = f"{systemctl.parent}{os.pathsep}{self.env['PATH']}"
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]

    def place_in_another_process(self) -> str:
        """Where the hub of the code in the environment listens."""
        code = "import os; from overspill.hub.place import Place; print(Place.of(os.environ).socket)"
        return subprocess.run(
            [sys.executable, "-c", code], env=self.env, capture_output=True, text=True, check=True
        ).stdout.strip()

    def install(self) -> str:
        done = self.overspill("hub", "install", "--port", str(self.port))
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def hub(self, *options: str, forked: bool = True) -> Generator[subprocess.Popen[str]]:
        """Run what the unit runs."""
        unit = (self.folder / UNIT).read_text().splitlines()
        start = next(line for line in unit if line.startswith("ExecStart=")).removeprefix("ExecStart=")
        words = [*shlex.split(start)[1:], *options]
        with (
            Forked(words, env=self.env, stderr=subprocess.PIPE, text=True)
            if forked
            else subprocess.Popen([*OVERSPILL, *words], env=self.env, stderr=subprocess.PIPE, text=True)
        ) as hub:
            assert hub.stderr
            try:
                assert f"and on port {self.port}" in hub.stderr.readline()
                yield hub
            finally:
                hub.terminate()
                hub.communicate(timeout=PATIENCE)

    def write(self, place: str = ".cursor/mcp.json", **servers: object) -> Path:
        file = self.folder / place
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(json.dumps({"mcpServers": servers}, indent=2))
        file.chmod(0o600)
        return file

    def wrap(self, client: str = "cursor") -> str:
        done = self.overspill("wrap", client, "--hub-http")
        assert done.returncode == 0, done.stderr
        return done.stdout


def entry(**more: object) -> dict[str, object]:
    command, *args = every()
    return {"command": command, "args": args, **more}


def read(file: Path) -> dict[str, Any]:
    return json.loads(file.read_text())["mcpServers"]


def token(file: Path) -> str:
    return read(file)["servers"]["headers"]["Authorization"].removeprefix("Bearer ")


@contextmanager
def http_home() -> Generator[HttpHome]:
    with hub_home() as plain:
        found = HttpHome(plain.folder)
        found.install()
        yield found
