"""Whoever has no uv gets what the locks pin, with the pip that came with Python and with the newest, whatever was released since.

The packages are tiny ones made here, since the real ones are gigabytes: for each pin one wheel of that version and one of a newer
release. They ask for one another as the real ones do, but each time with an extra. In the locks, only the hashes are others.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Iterable
from importlib.metadata import distributions
from pathlib import Path

import pytest
from locks import LOCKS, ROOT, Pin, read_lock, replace_hashes
from packages import path_without_uv
from packaging.markers import default_environment
from packaging.utils import canonicalize_name

OLDEST = {(3, 11): "22.3", (3, 12): "23.2.1", (3, 13): "24.2", (3, 14): "25.2"}
"""What the first release of each Python brings."""
NEWER = "9999"
INSTALLED_TOGETHER = [["requirements.lock"], ["requirements.lock", "requirements-dev.lock"], *([lock] for lock in LOCKS[2:])]
INSTALL = 'root=$PWD && source scripts/prepare && refresh test "$@"'
BACKEND = """
import shutil

def build_editable(folder, config_settings=None, metadata_directory=None):
    shutil.copy("overspill-0-py3-none-any.whl", folder)
    return "overspill-0-py3-none-any.whl"
"""

pytestmark = pytest.mark.slow


def make_wheel(folder: Path, name: str, version: str, needs: Iterable[str] = ()) -> str:
    """Its hash."""
    stem = f"{name.replace('-', '_')}-{version}"
    folder.mkdir(parents=True, exist_ok=True)
    wheel = folder / f"{stem}-py3-none-any.whl"
    metadata = [f"Name: {name}", f"Version: {version}", "Provides-Extra: more", *(f"Requires-Dist: {need}" for need in needs)]
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(f"{stem}.dist-info/METADATA", "\n".join(["Metadata-Version: 2.1", *metadata, ""]))
        archive.writestr(
            f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{stem}.dist-info/RECORD", "")
    return hashlib.sha256(wheel.read_bytes()).hexdigest()


def make_index(folder: Path, pins: list[Pin]) -> dict[tuple[str, str], str]:
    """The hashes of the pinned versions."""
    needs: dict[str, list[str]] = {}
    for pin in pins:
        for name in pin.needed_by:
            needs.setdefault(name, []).append(f"{pin.name}[more]" + (f" ; {pin.marker}" if pin.marker else ""))
    hashes: dict[tuple[str, str], str] = {}
    for pin in pins:
        for version in (pin.version, NEWER):
            hashes[pin.name, version] = make_wheel(folder / pin.name, pin.name, version, needs.get(pin.name, ()))
        links = (f'<a href="{wheel.name}">{wheel.name}</a>' for wheel in (folder / pin.name).glob("*.whl"))
        (folder / pin.name / "index.html").write_text(f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>")
    return hashes


@pytest.fixture(scope="session")
def pips(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders with a pip in each."""
    folder = tmp_path_factory.mktemp("pips")
    made = folder / "venv"
    subprocess.run([sys.executable, "-m", "venv", made], check=True, capture_output=True, timeout=120)
    found: dict[str, Path] = {}
    for age, wanted in {"oldest": f"pip=={OLDEST.get(sys.version_info[:2], OLDEST[3, 14])}", "newest": "pip"}.items():
        found[age] = folder / age
        command = [
            made / "bin" / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--upgrade",
            "--target",
            found[age],
            wanted,
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode and not os.environ.get("CI"):
            pytest.skip(f"{wanted} cannot be had: {done.stderr.strip().splitlines()[-1]}")
        assert done.returncode == 0, done.stderr
    return found


class Checkout:
    """Its `.venv` is there and has only the given pip."""

    def __init__(self, root: Path, locks: list[str], pip: Path) -> None:
        self.root, self.venv, self.index = root, root / ".venv", root / "index"
        texts = {lock: (ROOT / lock).read_text("utf-8") for lock in locks}
        self.pins = [pin for text in texts.values() for pin in read_lock(text)]
        hashes = make_index(self.index, self.pins)
        (root / "requirements.lock").touch()  # whatever is installed, its checksum is taken
        for lock, text in texts.items():
            (root / lock).parent.mkdir(parents=True, exist_ok=True)
            (root / lock).write_text(replace_hashes(text, hashes))
        shutil.copytree(ROOT / "scripts", root / "scripts")
        make_wheel(root, "overspill", "0")
        (root / "backend.py").write_text(BACKEND)
        (root / "pyproject.toml").write_text('[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n')
        (root / "src").mkdir()
        venv.create(self.venv, symlinks=True, with_pip=False)
        self.site = Path(sysconfig.get_path("purelib", "venv", {"base": str(self.venv)}))
        (self.site / "pip.pth").write_text(str(pip))
        self.found = [str(pip), str(self.site)]  # a pip that is the pinned one stays where it is

    def install(self, *locks: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": path_without_uv(self.root / "bin"), "HOME": str(self.root), "LANG": "C.UTF-8"}
        env |= {"PIP_CONFIG_FILE": os.devnull, "PIP_INDEX_URL": self.index.as_uri(), "PIP_NO_CACHE_DIR": "1"}
        command = ["bash", "-euo", "pipefail", "-c", INSTALL, "bash", *locks]
        return subprocess.run(command, cwd=self.root, env=env, capture_output=True, text=True, timeout=300, check=False)

    def installed(self) -> dict[str, str]:
        return {canonicalize_name(each.name): each.version for each in distributions(path=self.found)}


@pytest.mark.parametrize("pip", ["oldest", "newest"])
@pytest.mark.parametrize("locks", INSTALLED_TOGETHER, ids=lambda locks: Path(locks[-1]).stem)
def test_a_lock_installs_with_plain_pip_although_there_is_a_newer_release_of_everything(
    tmp_path: Path, pips: dict[str, Path], pip: str, locks: list[str]
):
    checkout = Checkout(tmp_path.resolve(), locks, pips[pip])
    done = checkout.install(*locks)
    assert done.returncode == 0, done.stdout + done.stderr
    here = {name: str(value) for name, value in default_environment().items()}
    assert checkout.installed() == {"overspill": "0", **{pin.name: pin.version for pin in checkout.pins if pin.is_for(here)}}


@pytest.mark.parametrize("locks", INSTALLED_TOGETHER[:2], ids=lambda locks: Path(locks[-1]).stem)
def test_a_pip_of_that_age_refuses_when_it_resolves_the_lock_again(tmp_path: Path, pips: dict[str, Path], locks: list[str]):
    """Otherwise the packages made here would prove nothing."""
    if sys.version_info >= (3, 13):
        pytest.skip("no pip that came with this Python has the fault")
    checkout = Checkout(tmp_path.resolve(), locks, pips["oldest"])
    prepare = checkout.root / "scripts" / "prepare"
    prepare.write_text(prepare.read_text().replace("--no-deps --require-hashes", "--require-hashes"))
    done = checkout.install(*locks)
    assert done.returncode == 1
    assert "In --require-hashes mode, all requirements must have their versions pinned" in done.stderr
