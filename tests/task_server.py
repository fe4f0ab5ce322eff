"""What a test says and learns of the tasks of `servers/durable_tasks.py`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from upstream import script

from overspill.mcp.client.config import ServerConfig

LARGE = "".join(f"line {number}: the quick brown fox\n" for number in range(8000))


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


class TaskFolder:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir(parents=True, exist_ok=True)

    def server(self, *options: str) -> ServerConfig:
        """Started by a shell, so that a later start finds what the folder says then."""
        flag = f"$(cat {self.folder}/options 2>/dev/null)"
        known = script("durable_tasks", str(self.folder), *options)
        line = " ".join([str(known.command), *known.args, flag])
        return ServerConfig(self.folder.name, "/bin/sh", ("-c", f"exec {line}"))

    def start_as(self, options: str) -> None:
        """From the next start on."""
        (self.folder / "options").write_text(options)

    def set(self, name: str, **task: Any) -> None:
        """From now on, the task is this."""
        written = self.folder / f"{name}.new"
        written.write_text(json.dumps(task))
        os.replace(written, self.folder / f"{name}.json")

    def heard(self, what: str, name: str) -> list[list[Any]]:
        log = self.folder / "log"
        lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        return [line for line in lines if line[2:4] == [what, name]]

    def count(self, what: str, name: str) -> int:
        return len(self.heard(what, name))

    def times(self, what: str, name: str) -> list[float]:
        return [line[0] for line in self.heard(what, name)]

    def said(self, what: str, name: str) -> list[list[Any]]:
        return [line[4:] for line in self.heard(what, name)]
