"""The official conformance suite, and what it finds about a server."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeAlias

import anyio
from official import Node
from running import plain_environ

Found: TypeAlias = "dict[str, Counter[str]]"
_FOLDER = re.compile(r"server-(.+)-\d{4}-\d\d-\d\dT[\d-]+Z")
_LONGEST = 300  # seconds
_ATTEMPTS = 4


class Suite(NamedTuple):
    package: str
    whole: tuple[str, ...] = ()
    """Arguments to run all of it."""
    one: tuple[str, ...] = ()
    """Arguments besides the name to run one scenario of it."""


async def findings(node: Node, suite: Suite, url: str, folder: Path, doubtful: Callable[[Found], Iterable[str]]) -> Found:
    """Each scenario's checks. Some of them give a server half a second, which on a busy machine may pass before it gets its turn;
    so what is doubtful after the whole suite was run is run again by itself."""
    found = await _run(node, suite, url, folder, suite.whole)
    for attempt in range(_ATTEMPTS):
        for name in doubtful(found):
            found |= await _run(node, suite, url, folder / f"{name}-{attempt}", ("--scenario", name, *suite.one))
    return found


async def _run(node: Node, suite: Suite, url: str, folder: Path, arguments: tuple[str, ...]) -> Found:
    command = node.script(suite.package, "server", "--url", url, "--output-dir", str(folder), *arguments)
    with anyio.fail_after(_LONGEST):
        await anyio.run_process(command, check=False, env=plain_environ(), stderr=subprocess.STDOUT)
    return {_scenario(file): _checks(file) for file in folder.glob("*/checks.json")}


def _scenario(file: Path) -> str:
    found = _FOLDER.fullmatch(file.parent.name)
    assert found is not None, file
    return found.group(1)


def _checks(file: Path) -> Counter[str]:
    """How often each ended how: the suite repeats some, and says of others only that there was something to see."""
    return Counter(f"{check['id']} {check['status']}" for check in json.loads(file.read_text()) if check["status"] != "INFO")


def not_passed(found: Found) -> set[str]:
    """Scenarios with a check that failed, or that warns."""
    return {name for name, checks in found.items() if any(not check.endswith(("SUCCESS", "SKIPPED")) for check in checks)}


def differing(found: Found, other: Found) -> set[str]:
    return {name for name in found.keys() | other.keys() if found.get(name) != other.get(name)}
