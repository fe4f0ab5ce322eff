"""The lines of docs/install.md work with the wheel that would be released, in an empty place, on every Python that is here."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from packages import CONFIGURED, MCPB, Unavailable, npm_home

ROOT = Path(__file__).parents[1]
UV = shutil.which("uv")
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
CHECK = runpy.run_path(str(ROOT / "scripts" / "check-release"))

uv_is_here = pytest.mark.skipif(UV is None, reason="needs uv")


def find_pythons() -> dict[str, str]:
    """Of uv, of pyenv, and this one."""
    found = {f"{sys.version_info.major}.{sys.version_info.minor}": sys.executable}
    for version in (version for version in VERSIONS if UV and version not in found):
        command = [UV, "python", "find", "--no-project", "--offline", version]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        of_pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
        if done.returncode == 0 or of_pyenv:
            found[version] = done.stdout.strip() or str(of_pyenv[-1])
    return found


PYTHONS = find_pythons()


class EmptyPlace:
    """A user who has uv and the released files, and nothing else."""

    def __init__(self, root: Path, dist: Path) -> None:
        self.root = root
        cache = subprocess.run([str(UV), "cache", "dir"], capture_output=True, text=True, check=True).stdout.strip()
        kept = {name: value for name, value in os.environ.items() if name.startswith(CONFIGURED)}
        path = f"{root / 'bin'}{os.pathsep}{Path(str(UV)).parent}{os.pathsep}/usr/bin{os.pathsep}/bin"
        self.env = {
            **kept, "HOME": str(root), "PATH": path, "LANG": "C.UTF-8", "UV_FIND_LINKS": str(dist), "UV_CACHE_DIR": cache,
            "OVERSPILL_HUB": "off",
            "PIP_FIND_LINKS": str(dist), "UV_TOOL_DIR": str(root / "tools"), "UV_TOOL_BIN_DIR": str(root / "bin"),
            "UV_PYTHON_DOWNLOADS": "never", "PIPX_HOME": str(root / "pipx"), "PIPX_BIN_DIR": str(root / "bin"),
        }  # fmt: skip

    def run(self, *words: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            words, env={**self.env, **env}, cwd=self.root, input=stdin, capture_output=True, text=True, timeout=600, check=False
        )


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [str(UV), "pip", "compile", "--quiet", "--no-cache", "-"]
    reached = subprocess.run(command, input="msgspec", capture_output=True, text=True, timeout=600, check=False)
    if reached.returncode and not os.environ.get("CI"):
        pytest.skip(f"no package index can be reached: {reached.stderr.strip().splitlines()[0]}")
    CHECK["build"](folder)
    return folder


@pytest.fixture
def empty(tmp_path: Path, dist: Path) -> EmptyPlace:
    return EmptyPlace(tmp_path, dist)


def initialize() -> str:
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}) + "\n"


@pytest.mark.slow
@uv_is_here
@pytest.mark.parametrize("version", PYTHONS)
def test_the_proxy_runs_without_installing_on_every_python_that_is_here(empty: EmptyPlace, version: str):
    line = ["uvx", "--from", "overspill[mcp]", "overspill", "proxy", "--", sys.executable, "-c", "pass"]
    done = empty.run(*line, "--nonsense", stdin="", UV_PYTHON=PYTHONS[version])
    assert "needs the package" not in done.stderr
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    bare = empty.run("uvx", "overspill", "proxy", "--", "cat", UV_PYTHON=PYTHONS[version])
    assert (bare.returncode, bare.stdout) == (2, "")
    assert "With uv: `uvx --from 'overspill[mcp]' overspill proxy`." in bare.stderr
    assert "uv pip install 'overspill[mcp]' --python " in bare.stderr


@pytest.mark.slow
@uv_is_here
@pytest.mark.parametrize("version", [version for version in VERSIONS if version not in PYTHONS])
def test_pythons_that_are_not_here_have_wheels_of_everything(empty: EmptyPlace, version: str):
    done = empty.run(
        "uv", "pip", "compile", "--quiet", "--only-binary", ":all:", "--python-version", version, "-", stdin="overspill[all]"
    )
    assert done.returncode == 0, done.stderr
    assert "overspill==" in done.stdout


@pytest.mark.slow
@uv_is_here
@pytest.mark.parametrize("installer", [["uv", "tool"], ["uvx", "pipx"]])
def test_it_installs_as_a_tool(empty: EmptyPlace, installer: list[str]):
    done = empty.run(*installer, "install", "overspill[mcp]")
    assert done.returncode == 0, done.stderr
    shown = empty.run("overspill", "--version")
    assert shown.stdout == f"overspill {CHECK['read_version']()}\n"
    assert empty.run("overspill", "keep", "--", "echo", "hi").stdout == "hi\n"


@pytest.mark.slow
@uv_is_here
def test_what_server_json_says_runs_as_a_registrys_client_runs_it(empty: EmptyPlace):
    (package,) = json.loads((ROOT / "server.json").read_text())["packages"]
    (empty.root / "mcp.json").write_text(json.dumps({"mcpServers": {"x": {"command": sys.executable, "args": ["-c", "pass"]}}}))
    given = {"--config": str(empty.root / "mcp.json")}
    line = [package["runtimeHint"], *_spell(package["runtimeArguments"], {})]
    line += [f"{package['identifier']}=={package['version']}", *_spell(package["packageArguments"], given)]
    done = empty.run(*line, stdin=initialize())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]


@pytest.mark.slow
@uv_is_here
def test_the_bundle_is_valid_and_starts(empty: EmptyPlace, tmp_path: Path):
    made = CHECK["bundle"](tmp_path)
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(made) as archive:
        archive.extractall(folder)
    try:
        mcpb = npm_home("mcpb", MCPB) / "node_modules" / ".bin" / "mcpb"
    except Unavailable as reason:
        pytest.skip(f"the tool that checks bundles cannot be had: {reason}")
    checked = subprocess.run(
        [mcpb, "validate", folder / "manifest.json"], capture_output=True, text=True, timeout=60, check=False
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
    assert (folder / manifest["server"]["entry_point"]).is_file()
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"x": {"command": sys.executable, "args": ["-c", "pass"]}}}))
    places = {"${__dirname}": str(folder), "${user_config.servers}": str(tmp_path / "mcp.json")}
    config = manifest["server"]["mcp_config"]
    done = empty.run(config["command"], *(places.get(word, word) for word in config["args"]), stdin=initialize())
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]


def test_links_install_what_they_say():
    links = [line for line in (ROOT / "docs" / "install.md").read_text().splitlines() if line.startswith("- [Add to ")]
    assert len(links) == 2
    for line in links:
        entry = json.loads(CHECK["read_link"](line.partition("](")[2].removesuffix(")")))
        package = f"overspill[mcp]=={CHECK['read_version']()}"
        assert (entry["command"], entry["args"][:5]) == ("uvx", ["--from", package, "overspill", "proxy", "--name"])


def test_the_registry_takes_the_description_and_finds_its_line():
    assert CHECK["find_registry_problems"]() == []


def _spell(arguments: Sequence[dict[str, Any]], given: dict[str, str]) -> Iterator[str]:
    for argument in arguments:
        value = argument.get("value") or given[argument["name"]]
        yield f"{argument['name']}={value}" if argument["type"] == "named" else value
