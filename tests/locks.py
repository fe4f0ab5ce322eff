"""What the locks pin, read as pip reads it: names, versions, markers, hashes, and who asked for it."""

from __future__ import annotations

import functools
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path
from typing import NamedTuple

from packaging.markers import Marker, default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
ENVIRONMENTS = ROOT / "tests" / "integrations" / "environments"
LOCKS = [
    "requirements.lock",
    "requirements-dev.lock",
    *sorted(str(lock.relative_to(ROOT)) for lock in ENVIRONMENTS.glob("*.lock")),
]
"""Their paths in the checkout."""
PYTHONS = ("3.11.0", "3.11.9", "3.12.0", "3.13.0", "3.14.0")
"""The first release of each that is supported, and one that needs less than the first: some markers tell them apart."""
PLATFORMS = [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "x86_64"), ("darwin", "arm64")]

_parse = functools.cache(Requirement)
_PIN = re.compile(
    r"^(?P<name>[a-z0-9-]+)==(?P<version>\S+)(?: ; (?P<marker>.+?))? \\\n(?P<hashes>(?:    --hash=.+\n)+)(?P<via>(?:    #.*\n)*)",
    re.MULTILINE,
)


class Pin(NamedTuple):
    name: str
    version: str
    marker: Marker | None
    hashes: frozenset[str]
    needed_by: tuple[str, ...]
    """Other pins. What the project itself asks for is not told."""

    def is_for(self, environment: Mapping[str, str]) -> bool:
        return self.marker is None or self.marker.evaluate(dict(environment))


def read_lock(text: str) -> list[Pin]:
    """A package may be there more than once, for different machines."""
    found = list(_PIN.finditer(text))
    names = {pin["name"] for pin in found}
    return [
        Pin(
            pin["name"],
            pin["version"],
            Marker(pin["marker"]) if pin["marker"] else None,
            frozenset(re.findall(r"sha256:(\w+)", pin["hashes"])),
            tuple(name for name in re.findall(r"#\s+(?:via )?([a-z0-9-]+)$", pin["via"], re.MULTILINE) if name in names),
        )
        for pin in found
    ]


def replace_hashes(text: str, hashes: Mapping[tuple[str, str], str]) -> str:
    """The same lock, with one hash for each pin."""
    return _PIN.sub(lambda pin: pin[0].replace(pin["hashes"], f"    --hash=sha256:{hashes[pin['name'], pin['version']]}\n"), text)


def environments() -> Iterator[dict[str, str]]:
    """All that Overspill says it runs on, as markers see them."""
    for python in PYTHONS:
        for system, machine in PLATFORMS:
            yield {
                **{name: str(value) for name, value in default_environment().items()},
                "implementation_name": "cpython", "platform_python_implementation": "CPython", "os_name": "posix",
                "python_version": python.rpartition(".")[0], "python_full_version": python, "implementation_version": python,
                "sys_platform": system, "platform_system": system.title(), "platform_machine": machine,
                "platform_release": "", "platform_version": "",
            }  # fmt: skip


def read_asked(lock: str) -> list[str]:
    """What `scripts/lock` had when it made this lock."""
    project, groups = PYPROJECT["project"], PYPROJECT["dependency-groups"]
    if lock == "requirements-dev.lock":
        return groups["dev"]
    own = [*project["dependencies"], *groups["build"]]
    if lock == "requirements.lock":
        return own + [line for name, lines in project["optional-dependencies"].items() if name != "all" for line in lines]
    lines = (line.partition("#")[0].strip() for line in (ROOT / lock).with_suffix(".in").read_text("utf-8").splitlines())
    return own + [line for line in lines if line]


def read_installed(site: str | Path) -> dict[str, list[str]]:
    """What each package that is installed there says it needs."""
    return {canonicalize_name(each.name): each.requires or [] for each in distributions(path=[str(site)])}


def find_gaps(asked: list[str], pins: list[Pin], installed: Mapping[str, list[str]]) -> set[str]:
    """What is needed and not pinned, or in another version, anywhere. What is pinned for other machines alone is not installed
    here, so what such a package needs itself is not looked at."""
    gaps: set[str] = set()
    for environment in environments():
        place = f"Python {environment['python_full_version']}, {environment['sys_platform']} {environment['platform_machine']}"
        pinned = {pin.name: pin.version for pin in pins if pin.is_for(environment)}
        open_ends = list(_needed("the project", asked, environment))
        seen: set[tuple[str, str]] = set()
        while open_ends:
            by, needed = open_ends.pop()
            name = canonicalize_name(needed.name)
            if name not in pinned:
                gaps.add(f"{by} needs {needed}, which is not pinned for {place}")
            elif not needed.specifier.contains(pinned[name], prereleases=True):
                gaps.add(f"{by} needs {needed}, and {pinned[name]} is pinned for {place}")
            for extra in {"", *needed.extras} if name in installed else ():
                if (name, extra) not in seen:
                    seen.add((name, extra))
                    open_ends += _needed(name, installed[name], environment, extra)
    return gaps


def _needed(by: str, lines: Iterable[str], environment: Mapping[str, str], extra: str = "") -> Iterator[tuple[str, Requirement]]:
    for requirement in map(_parse, lines):
        if requirement.marker is None or requirement.marker.evaluate({**environment, "extra": extra}):
            yield by, requirement
