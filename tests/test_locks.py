"""The locks pin what pyproject.toml asks for and all that this needs, with hashes, and say nothing of where it came from."""

import re
import sysconfig

import pytest
from locks import LOCKS as NAMES
from locks import PYPROJECT, ROOT, find_gaps, read_asked, read_installed, read_lock
from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

LOCKS = {name: (ROOT / name).read_text("utf-8") for name in NAMES}
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


@pytest.mark.parametrize("lock", LOCKS)
def test_every_line_of_a_lock_is_understood(lock: str):
    pins = read_lock(LOCKS[lock])
    assert [f"{pin.name}=={pin.version}" for pin in pins] == re.findall(r"^[^\s#]+", LOCKS[lock], re.MULTILINE)
    assert sum(len(pin.hashes) for pin in pins) == LOCKS[lock].count("--hash=")


@pytest.fixture(scope="module")
def installed() -> dict[str, list[str]]:
    return read_installed(sysconfig.get_path("purelib"))


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_a_lock_has_all_that_its_packages_need_on_every_python_and_machine(lock: str, installed: dict[str, list[str]]):
    pins = read_lock(LOCKS[lock])
    here = {name: str(value) for name, value in default_environment().items()}
    assert {pin.name for pin in pins if pin.is_for(here)} <= installed.keys(), "scripts/test installs them"
    assert find_gaps(read_asked(lock), pins, installed) == set()


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        ("cffi", "cryptography needs cffi"),  # by another package
        ("cryptography", "pyjwt needs cryptography"),  # only with an extra
        ("async-timeout", "redis needs async-timeout"),  # only on Python 3.11.0 to 3.11.2
    ],
)
def test_what_is_missing_from_a_lock_is_noticed(missing: str, expected: str, installed: dict[str, list[str]]):
    pins = [pin for pin in read_lock(LOCKS["requirements.lock"]) if pin.name != missing]
    gaps = find_gaps(read_asked("requirements.lock"), pins, installed)
    assert any(gap.startswith(expected) for gap in gaps), gaps


def test_a_version_that_another_package_refuses_is_noticed(installed: dict[str, list[str]]):
    pins = [pin._replace(version="1.0") if pin.name == "pydantic" else pin for pin in read_lock(LOCKS["requirements.lock"])]
    assert any("and 1.0 is pinned" in gap for gap in find_gaps(read_asked("requirements.lock"), pins, installed))
