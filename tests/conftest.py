"""What every test shares: how Hypothesis runs, that Ctrl-C is heard, and that the terminal and the network of whoever runs the
tests change nothing. Fixtures stand here when more than one folder needs them."""

import gc
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace

import forked
import pytest
from azure_server import CONTAINER, run_azure
from forked import end_servers, start_worker
from hypothesis import HealthCheck, settings
from store_servers import S3_BUCKET, S3_KEYS, run_postgres, run_queue, run_s3
from trust import load_certificates_once

from overspill.cli import COMMANDS
from overspill.confined import worker
from overspill.store import open as opening

# Time says nothing on a busy machine. On CI the examples are always the same, so a red run is the change's doing.
settings.register_profile(
    "all", max_examples=100, deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("quick", settings.get_profile("all"), max_examples=15)

# A shell that starts something in the background lets it ignore Ctrl-C, and whatever tests start would inherit that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

for name in ("COLUMNS", "LINES", "TERM", "FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
    os.environ.pop(name, None)

os.environ["OVERSPILL_HUB"] = "off"  # a hub would outlive the test that starts it; those of the hub have one of their own

# The proxy keeps what servers list for later runs with the same environment, which has the name of the test; not for other runs.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="overspill-tests-")

# Packages may come through a proxy, but the servers of the tests are on this machine.
if any(name.lower() in ("http_proxy", "https_proxy", "all_proxy") for name in os.environ):
    for name in ("NO_PROXY", "no_proxy"):
        os.environ[name] = ",".join(filter(None, [os.environ.get(name), "127.0.0.1,::1,localhost"]))


load_certificates_once()

MAX_NAMED_CHARACTERS = 200
TESTS = Path(__file__).parent
UNCOUNTED = ("conformance", "integrations", "properties")
"""The folders of tests that run what others have covered, with more clients, frameworks and examples."""


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("quick" if "not slow" in config.option.markexpr else "all")


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes may hold a time stamp, as those of gzip and ZIP do, and all workers have to collect the same names. They send them to
    each other several times, so a name does not hold a long text."""
    return argname if isinstance(val, bytes) or (isinstance(val, str) and len(val) > MAX_NAMED_CHARACTERS) else None


def pytest_itemcollected(item: pytest.Item) -> None:
    if item.path.relative_to(TESTS).parts[0] in UNCOUNTED:
        item.add_marker("no_cover")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Coverage counts neither a test that is marked `no_cover` nor the processes that it starts."""
    if not item.get_closest_marker("no_cover"):
        return (yield)
    forked.measuring = {name: os.environ.pop(name) for name in sorted(os.environ) if name.startswith("COVERAGE")}
    try:
        return (yield)
    finally:
        os.environ.update(forked.measuring)
        forked.measuring = None


def pytest_collection_finish() -> None:
    """What was collected stays, so looking for garbage in it again and again finds none."""
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _no_forks_are_left() -> Iterator[None]:
    yield
    end_servers()
    shutil.rmtree(os.environ["XDG_STATE_HOME"], ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def _idle_stores_are_closed() -> Iterator[None]:
    """A process keeps the last 64 stores that it made, with their files and connections: together they can be a thousand.

    The first load of a command freezes what there is, and garbage that is frozen keeps its files open for ever. Counting what is
    frozen would look at all of it, so the commands are counted.
    """
    commands = _count_commands()
    yield
    was_frozen = _count_commands() > commands
    if opening._last_made or was_frozen:
        opening._last_made.clear()
        if was_frozen:
            gc.unfreeze()
        gc.collect()
        gc.freeze()  # what is left, mostly modules, stays: the next collection need not look at it again


def _count_commands() -> int:
    return sum(place.partition(":")[0] in sys.modules for place, _ in COMMANDS.values())


@pytest.fixture
def forked_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """For tests of what workers answer. Those of how they are confined start them."""
    names = SimpleNamespace(Popen=start_worker, PIPE=subprocess.PIPE, TimeoutExpired=subprocess.TimeoutExpired)
    monkeypatch.setattr(worker, "subprocess", names)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Quick runs use the event loop that nearly everybody uses; `--all` uses both where the code differs by loop."""
    if "anyio_backend" in metafunc.fixturenames and any(metafunc.definition.iter_markers("both_loops")):
        both = ["asyncio", pytest.param("trio", marks=pytest.mark.slow)]
        metafunc.parametrize("anyio_backend", both, indirect=True, scope="module")


@pytest.fixture(scope="module")
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return getattr(request, "param", "asyncio")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """The URL of a PostgreSQL server, started when the first test needs it and shared by all processes that run tests."""
    with run_postgres(os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)) as url:
        yield url


@pytest.fixture
def postgres_url(postgres_server: str) -> Iterator[str]:
    """The URL of an empty database."""
    import psycopg  # noqa: PLC0415  # only where the package is

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        yield postgres_server.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@pytest.fixture(scope="session")
def s3_server() -> Iterator[int]:
    """The port of a server that speaks S3, started when the first test needs it and shared by all processes that run tests."""
    with run_s3(os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex)) as port:
        yield port


@pytest.fixture(scope="session")
def queue_server() -> Iterator[str]:
    with run_queue() as url:
        yield url


@pytest.fixture
def queue_url(queue_server: str) -> str:
    """The URL of an empty queue."""
    return f"{queue_server}?name={uuid.uuid4().hex}"


@pytest.fixture(scope="session")
def azure_variables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """What leads to a server that speaks Azure's protocol, started when the first test needs it."""
    with run_azure(tmp_path_factory.mktemp("azure")) as variables:
        yield variables


@pytest.fixture
def azure_url(azure_variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a place where nothing is yet, with the credentials in the environment."""
    for name, value in azure_variables.items():
        monkeypatch.setenv(name, value)
    return f"az://{CONTAINER}/{uuid.uuid4()}"


@pytest.fixture
def s3_url(s3_server: int, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a place where nothing is yet, with the credentials in the environment."""
    for name, value in {**S3_KEYS, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{s3_server}", "AWS_ALLOW_HTTP": "true"}.items():
        monkeypatch.setenv(name, value)
    return f"s3://{S3_BUCKET}/{uuid.uuid4()}"
