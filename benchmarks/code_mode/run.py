"""Fifty programs in four real hosts, directly and through the proxy: how many end differently, with and without an error?

    python benchmarks/code_mode/run.py [HOST …] [--ways direct,auto,whole,card]

Hosts: fastmcp, pydantic, cloudflare, codex. Their packages come from the registries, into a folder outside the repository.
`direct` has no proxy; the others are values of `programs`. A program that ends differently without an error has been misled. The
hosts are real, their models are scripted. Prints one table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tests")]

from packages import CODE_MODE, npm_home, python_home  # noqa: E402

from scripts import SCRIPTS, Script  # noqa: E402

DATA = (sys.executable, str(HERE / "data_server.py"))
WAYS = ("direct", "auto", "whole", "card")
LANGUAGES = {"fastmcp": "python", "pydantic": "python", "cloudflare": "javascript", "codex": "javascript"}


def start_line(host: str) -> list[str]:
    """The command that runs programs in this host, without that of the server. Installs the host if it is not there."""
    if LANGUAGES[host] == "python":
        return [str(python_home("code-mode") / "bin" / "python"), str(HERE / "hosts" / f"{host}_host.py")]
    home = npm_home("code-mode-npm", CODE_MODE)
    if host == "codex":
        return [sys.executable, str(HERE / "hosts" / "codex_host.py"), str(home / "node_modules" / ".bin" / "codex")]
    # Node looks for packages beside the file.
    program = home / "cloudflare_host.mjs"
    program.write_bytes((HERE / "hosts" / program.name).read_bytes())
    return [str(home / "node_modules" / ".bin" / "node"), str(program)]


def run(host: str, way: str, scripts: Sequence[Script] = SCRIPTS) -> dict[str, dict[str, Any]]:
    """What each program ended with, by name: a value or an error."""
    with tempfile.TemporaryDirectory() as folder:
        overspill = [str(Path(sys.executable).with_name("overspill")), "proxy", "--set", f"storeDir={folder}/store"]
        proxy = [] if way == "direct" else [*overspill, "--set", f"programs={way}", "--quiet", "--"]
        programs = json.dumps({script.name: script.lines(LANGUAGES[host]) for script in scripts})
        environ = {**os.environ, "XDG_CONFIG_HOME": folder, "PYDANTIC_AI_NO_TELEMETRY": "1", "OVERSPILL_HUB": "off"}
        line = [*start_line(host), *proxy, *DATA]
        ended = subprocess.run(  # noqa: S603
            line, input=programs, capture_output=True, text=True, timeout=900, env=environ, cwd=folder, check=False
        )
    found = [json.loads(each) for each in ended.stdout.splitlines() if each.startswith('{"name"')]
    if len(found) != len(scripts):
        raise SystemExit(f"{host}, {way}: {len(found)} of {len(scripts)} programs ended. {ended.stderr[-2000:]}")
    return {each.pop("name"): each for each in found}


def compare(direct: dict[str, dict[str, Any]], other: dict[str, dict[str, Any]]) -> tuple[int, int, list[str]]:
    """How many ended equally, how many with an error that they did not have, and those that ended differently without one."""
    same = [name for name in direct if other[name] == direct[name]]
    failed = [name for name in direct if name not in same and "error" in other[name]]
    return len(same), len(failed), [name for name in direct if name not in same and name not in failed]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("hosts", nargs="*", choices=[*LANGUAGES, []])
    parser.add_argument("--ways", default=",".join(WAYS[1:]))
    given = parser.parse_args()
    print("| host | programs | through the proxy | same end | error | another end, no error |\n|---|---|---|---|---|---|")
    for host in given.hosts or LANGUAGES:
        direct = run(host, "direct")
        for name, each in direct.items():
            if "error" in each:
                print(f"{host}: {name} fails without the proxy: {each['error']}", file=sys.stderr)
        for way in given.ways.split(","):
            same, failed, misled = compare(direct, run(host, way))
            print(f"| {host} | {len(direct)} | {way} | {same} | {failed} | {len(misled)} |", flush=True)
            if misled and way != "card":
                print(f"{host}, {way}: misled: {', '.join(misled)}", file=sys.stderr)


if __name__ == "__main__":
    main()
