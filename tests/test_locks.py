"""The locks pin what pyproject.toml asks for, with hashes, and say nothing of where it came from."""

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
LOCKS = {name: (ROOT / name).read_text("utf-8") for name in ("requirements.lock", "requirements-dev.lock")}
PINS = {name: dict(re.findall(r"^([a-z0-9-]+)==([^ ]+)", lock, re.MULTILINE)) for name, lock in LOCKS.items()}


def assert_pinned(requirements: list[str], pins: dict[str, str]):
    for requirement in map(Requirement, requirements):
        assert requirement.specifier.contains(pins[canonicalize_name(requirement.name)]), f"run scripts/lock: {requirement}"


def test_what_overspill_runs_on_is_pinned():
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"]
    wanted = project["dependencies"] + extras["mcp"] + extras["models"] + PYPROJECT["dependency-groups"]["build"]
    assert_pinned(wanted, PINS["requirements.lock"])


def test_what_developers_need_is_pinned():
    assert_pinned(PYPROJECT["dependency-groups"]["dev"], PINS["requirements-dev.lock"])


def test_what_both_locks_pin_has_one_version():
    run, dev = PINS["requirements.lock"], PINS["requirements-dev.lock"]
    assert {name: dev[name] for name in dev.keys() & run} == {name: run[name] for name in dev.keys() & run}


@pytest.mark.parametrize("lock", LOCKS.values(), ids=LOCKS)
def test_every_pin_has_a_hash_and_no_address(lock: str):
    pinned = re.findall(r"^\S+==.*\n(.*)", lock, re.MULTILINE)
    assert [following for following in pinned if not following.startswith("    --hash=sha256:")] == []
    assert "://" not in lock
