"""A real browser, chromium, driven by Playwright. Where there is none, tests are skipped and say why; on CI they fail."""

from __future__ import annotations

import os
import shutil
from collections.abc import Generator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright


@contextmanager
def chromium() -> Generator[Browser]:
    """Playwright keeps an event loop running in this thread, so it has to be gone before the tests of another file."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        why = "no chromium is on the PATH. On Debian and Ubuntu: apt install chromium"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    with sync_playwright() as playwright:
        # Chromium's own sandbox does not work for root, which is who runs tests in a container.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        started = playwright.chromium.launch(executable_path=program, args=arguments)
        yield started
        started.close()
