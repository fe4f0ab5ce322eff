"""The hook of a coding agent: whether it is there, whether it can run, and what this version of the agent does not honour."""

from __future__ import annotations

import re
import shutil
import subprocess
from typing import cast

from overspill.cli import output
from overspill.cli.client_files.target import HookFiles, find_hook_files
from overspill.cli.commands.doctor import Finding
from overspill.hooks.shapes import OBSERVED, Client, Observation

_ABOUT = "hooks"
_VERSION = re.compile(r"\d{1,6}\.\d{1,6}\.\d{1,6}")
_MAX_WAIT_SECONDS = 20


def check(file: str) -> list[Finding]:
    """Nothing for clients whose hooks Overspill does not know."""
    found = find_hook_files(file)
    if found is None:
        return []
    words = found.place.find_hook(found.text(found.hooks), str(found.hooks), found.launch)
    if not words:
        text = f"The built-in tools of {found.title} do not go through Overspill."
        return [Finding(_ABOUT, "note", text, f"To change that: {output.program()} wrap {file} --hooks")]
    return [_check_command(words[0], found), *_check_server(found, file), *_check_version(found)]


def _check_command(program: str, found: HookFiles) -> Finding:
    if shutil.which(program):
        return Finding(_ABOUT, "ok", f"{found.hooks} calls {program}.")
    advice = f"Run overspill unwrap {found.given} and then overspill wrap {found.given} --hooks."
    return Finding(_ABOUT, "wrong", f"{found.hooks} calls {program}, which does not exist.", advice)


def _check_server(found: HookFiles, file: str) -> list[Finding]:
    if found.place.find_server(found.text(found.servers), str(found.servers)):
        return []
    text = f"{found.servers} has no server overspill, so the agent can read what is stored only with `overspill get`."
    return [Finding(_ABOUT, "note", text, f"To add it: {output.program()} wrap {file} --hooks")]


def _check_version(found: HookFiles) -> list[Finding]:
    seen = OBSERVED[cast("Client", found.place.client)]
    version = _ask_version(seen)
    if version and seen.deaf_version and _order(version) <= _order(seen.deaf_version):
        return [Finding(_ABOUT, "wrong", f"{seen.title} {version} ignores what a hook answers.", f"Update {seen.title}.")]
    if version in seen.versions:
        return [Finding(_ABOUT, "note", f"{seen.title} {version}: {limit}") for limit in seen.limits]
    which = f"{seen.title} {version}" if version else f"{seen.title}, whose version cannot be told,"
    text = f"{which} was not tried with Overspill's hook. What {seen.versions[-1]} does:"
    return [Finding(_ABOUT, "note", " ".join([text, *seen.limits]))]


def _order(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _ask_version(seen: Observation) -> str:
    program = shutil.which(seen.program)
    if program is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603 - the client that you use
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_MAX_WAIT_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    version = _VERSION.search(done.stdout[:1000].decode("utf-8", "replace"))
    return version[0] if version else ""
