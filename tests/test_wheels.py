"""Whatever machine and Python somebody has, every pin has a wheel for it, so that nothing has to be compiled."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from locks import LOCKS, ROOT, environments, read_lock
from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms
from packaging.utils import parse_wheel_filename

LISTING = """
import json, re, sys
from concurrent.futures import ThreadPoolExecutor
from pip._internal.commands import create_command

command = create_command("download")  # it knows how this machine reaches packages
options, _ = command.parse_args(["--no-cache-dir"])

def read(name):
    page = session.get(f"{options.index_url.rstrip('/')}/{name}/", headers={"Accept": "text/html"})
    page.raise_for_status()
    return [[digest, file] for file, digest in re.findall(r'/([^/"#]+)#sha256=([0-9a-f]+)"', page.text)]

with command.main_context(), ThreadPoolExecutor(8) as threads:
    session = command.get_default_session(options)
    print(json.dumps(dict(pair for pairs in threads.map(read, json.load(sys.stdin)) for pair in pairs)))
"""
PINS = [pin for lock in LOCKS for pin in read_lock((ROOT / lock).read_text("utf-8"))]
COMPILED = {
    ("cryptography", "darwin", "x86_64"): "no longer has wheels for Macs with Intel processors; it needs Rust there",
    ("lancedb", "darwin", "x86_64"): "the same; only to test with CrewAI",
    ("onnxruntime", "darwin", "x86_64"): "the same, and cannot be built either; only to test with CrewAI",
    ("watchdog", "darwin", "x86_64"): "none for Python 3.14; needs only a C compiler, and is only to test with Strands and ADK",
    ("watchdog", "darwin", "arm64"): "the same",
}
OLDEST_GLIBC = 28
"""That of the oldest distributions that are still cared for: Debian 10, RHEL 8."""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The names of all files of the pinned packages, by their hashes."""
    venv = tmp_path_factory.mktemp("listing") / "venv"
    subprocess.run([sys.executable, "-m", "venv", venv], check=True, capture_output=True, timeout=120)
    names = sorted({pin.name for pin in PINS})
    command = [venv / "bin" / "python", "-c", LISTING]
    done = subprocess.run(command, input=json.dumps(names), capture_output=True, text=True, timeout=300, check=False)
    if done.returncode and not os.environ.get("CI"):
        pytest.skip(f"no package index can be reached: {done.stderr.strip().splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def list_tags(python: str, system: str, machine: str) -> frozenset[Tag]:
    major, minor = map(int, python.split("."))
    if system == "darwin":
        platforms = list(mac_platforms((14, 0), machine))
    else:
        platforms = [f"manylinux_2_{glibc}_{machine}" for glibc in range(OLDEST_GLIBC, 4, -1)]
        platforms += [f"manylinux{year}_{machine}" for year in ("2014", "2010", "1")]
    of_cpython = cpython_tags((major, minor), platforms=platforms)
    return frozenset([*of_cpython, *compatible_tags((major, minor), f"cp{major}{minor}", platforms)])


TAGS = {
    place: list_tags(*place)
    for place in {(each["python_version"], each["sys_platform"], each["platform_machine"]) for each in environments()}
}


def test_every_pin_has_a_wheel_for_every_machine_and_python(files: dict[str, str]):
    missing: dict[tuple[str, str, str], set[str]] = {}
    for pin in PINS:
        known = [files[each] for each in pin.hashes if each in files]
        wheels = [parse_wheel_filename(file)[3] for file in known if file.endswith(".whl")]
        for place in filter(pin.is_for, environments()):
            python, system, machine = place["python_version"], place["sys_platform"], place["platform_machine"]
            if not any(wheel & TAGS[python, system, machine] for wheel in wheels):
                missing.setdefault((pin.name, system, machine), set()).add(f"{pin.version} on Python {python}")
    assert missing.keys() == COMPILED.keys(), missing
