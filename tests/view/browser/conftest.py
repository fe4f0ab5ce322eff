"""A real browser, chromium, driven by Playwright. Where there is none the tests are skipped and say why; on CI they fail."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsers import chromium
from packages import Unavailable, npm_home
from playwright.sync_api import Browser, Page
from viewers import Window

AXE = {"axe-core": "4.14.0"}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    try:
        return (npm_home("axe", AXE) / "node_modules" / "axe-core" / "axe.min.js").read_text()
    except Unavailable as reason:
        pytest.fail(str(reason)) if os.environ.get("CI") else pytest.skip(str(reason))


@pytest.fixture
def window(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Window]:
    """A browser window that fails the test if anything stored runs, opens a dialog, or asks another origin for something."""
    options: dict[str, Any] = getattr(request, "param", {})
    context = browser.new_context(**options)
    context.set_default_timeout(30_000)
    page: Page = context.new_page()
    opened = Window(page)
    yield opened
    opened.check()
    context.close()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "store"
