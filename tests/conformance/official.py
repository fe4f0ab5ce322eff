"""Where the official npm packages are, and how each is started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Node(NamedTuple):
    home: Path

    def script(self, package: str, *arguments: str, file: str = "dist/index.js") -> list[str]:
        """A command line. It is run by the node of this home, whichever the machine has."""
        modules = self.home / "node_modules"
        return [str(modules / "node" / "bin" / "node"), str(modules / package / file), *arguments]

    def program(self, name: str, *arguments: str) -> list[str]:
        """A command of a package, which finds the node of this home first."""
        modules = self.home / "node_modules"
        return ["env", f"PATH={modules / 'node' / 'bin'}:{os.environ['PATH']}", str(modules / ".bin" / name), *arguments]

    def everything(self) -> list[str]:
        return self.script("@modelcontextprotocol/server-everything", "stdio")

    def filesystem(self, folder: Path) -> list[str]:
        return self.script("@modelcontextprotocol/server-filesystem", str(folder))
