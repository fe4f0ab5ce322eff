"""The driver of the framework that the suite runs against: `pytest --framework langchain tests/integrations/suite.py`."""

from __future__ import annotations

from importlib import import_module

import pytest

from tests.integrations.abilities import CANNOT
from tests.integrations.driving import Driver


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--framework", help="the framework that is installed beside Overspill")


def load_driver(framework: str) -> Driver:
    return import_module(f"tests.integrations.drivers.{framework}").DRIVER


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The suites of the frameworks take longest, so they start first: nobody waits for the last of them alone."""
    items.sort(key=lambda item: not item.name.startswith("test_the_suite_passes["))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """A framework that could not be installed was not tested, and whoever reads a green run has to know."""
    skipped = [report for report in terminalreporter.stats.get("skipped", ()) if "tests/integrations/test_" in report.nodeid]
    if skipped:
        terminalreporter.section("integrations that did not run")
    for report in skipped:
        terminalreporter.write_line(f"{report.nodeid}: {report.longrepr[2]}")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def driver(request: pytest.FixtureRequest) -> Driver:
    framework = request.config.getoption("--framework")
    if reason := CANNOT[framework].get(request.function.__name__.removeprefix("test_")):
        pytest.skip(reason)
    return load_driver(framework)
