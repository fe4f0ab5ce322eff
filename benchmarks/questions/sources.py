"""Pinned sources: git repositories at a commit and npm packages at a version."""

from __future__ import annotations

import os
import subprocess
import tarfile
from dataclasses import dataclass
from pathlib import Path


class SourceMissing(Exception):
    """A source could not be had: what it is, and what to do."""


@dataclass(frozen=True)
class Repository:
    name: str  # owner/name on GitHub
    commit: str
    licence: str


@dataclass(frozen=True)
class Package:
    """An npm package."""

    name: str
    version: str
    licence: str


@dataclass(frozen=True)
class Git:
    """A repository on this machine, read at a commit without a work tree."""

    folder: Path
    commit: str

    def run(self, *arguments: str) -> bytes:
        """Runs git without the user's settings, which could change its output."""
        command = ["git", "--git-dir", str(self.folder), "-c", "core.quotepath=off", *arguments]
        environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C"}
        done = subprocess.run(command, env=environment, capture_output=True, check=False)  # noqa: S603
        if done.returncode > 1 or (done.returncode == 1 and arguments[0] != "grep"):
            reason = done.stderr.decode(errors="replace").strip()
            raise SourceMissing(
                f"git {' '.join(arguments)} failed in {self.folder}: {reason}. If the commit is missing there, fetch it."
            )
        return done.stdout

    def read(self, path: str, commit: str = "") -> str:
        return self.read_bytes(path, commit).decode("utf-8", "replace")

    def read_bytes(self, path: str, commit: str = "") -> bytes:
        return self.run("cat-file", "blob", f"{commit or self.commit}:{path}")

    def list(self, folder: str = "") -> list[str]:
        named = ["--", folder] if folder else []
        return self.run("ls-tree", "-r", "--name-only", "-z", self.commit, *named).decode().split("\0")[:-1]


class Sources:
    """Gets sources into a cache folder; repositories are taken from `mirror` where it has them."""

    def __init__(self, cache_folder: Path, mirror: Path | None) -> None:
        self._cache = cache_folder
        self._mirror = mirror

    def git(self, repository: Repository) -> Git:
        for folder in self._local(repository.name):
            if (folder / "objects").is_dir():
                return Git(folder, repository.commit)
        folder = self._cache / (repository.name.replace("/", "+") + ".git")
        address = f"https://github.com/{repository.name}"
        done = subprocess.run(  # noqa: S603
            ["git", "clone", "--quiet", "--bare", address, str(folder)],  # noqa: S607
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SourceMissing(
                f"Cannot clone {address}: {done.stderr.strip()}. "
                "Clone it elsewhere, and pass the folder that has it with --mirror."
            )
        return Git(folder, repository.commit)

    def _local(self, name: str) -> list[Path]:
        flat = name.replace("/", "+")
        bases = [self._cache / f"{flat}.git"]
        if self._mirror:
            bases += [self._mirror / flat, self._mirror / flat / "repo", self._mirror / name, self._mirror / f"{name}.git"]
        return [folder for base in bases for folder in (base / ".git", base)]

    def read_package(self, package: Package, path: str) -> bytes:
        """One file of the package; the rest stays packed."""
        with tarfile.open(self._archive(package)) as packed:
            try:
                member = packed.extractfile(f"package/{path}")
            except KeyError:
                member = None
            if member is None:
                raise SourceMissing(f"{package.name} {package.version} has no file {path}.")
            return member.read()

    def _archive(self, package: Package) -> Path:
        archive = self._cache / f"{package.name.replace('@', '').replace('/', '-')}-{package.version}.tgz"
        if not archive.is_file():
            wanted = f"{package.name}@{package.version}"
            done = subprocess.run(  # noqa: S603
                ["npm", "pack", "--silent", "--ignore-scripts", wanted],  # noqa: S607
                cwd=self._cache,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode or not archive.is_file():
                raise SourceMissing(f"Cannot get {wanted}: {done.stderr.strip()}. It needs npm and a registry.")
        return archive
