"""The documentation as a site: built by the command that people use, and opened in a real browser."""

from __future__ import annotations

import fcntl
import functools
import http.server
import os
import re
import subprocess
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest
from browsers import chromium
from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
PHONE = {"width": 390, "height": 844}

pytestmark = pytest.mark.slow


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


def build_once(run: str) -> None:
    """All processes that run these tests share the site, which is built in one place."""
    place = ROOT / "build"
    place.mkdir(exist_ok=True)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = place / "tested"
        if done.exists() and done.read_text() == run:
            return
        built = subprocess.run([ROOT / "scripts" / "docs"], capture_output=True, text=True, timeout=600)
        if "installing failed" in built.stderr and "CI" not in os.environ:
            pytest.skip(f"what builds the site cannot be installed: {built.stderr[-300:]}")
        assert built.returncode == 0, built.stdout + built.stderr
        done.write_text(run)


@pytest.fixture(scope="module")
def site() -> Iterator[str]:
    build_once(os.environ.get("PYTEST_XDIST_TESTRUNUID", uuid.uuid4().hex))
    handler = functools.partial(Quiet, directory=str(ROOT / "build" / "site"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser: Browser, site: str) -> Iterator[Page]:
    """No page asks another host for anything, and none has an error."""
    problems = list[str]()
    with browser.new_page() as opened:
        opened.on(
            "request", lambda request: None if request.url.startswith((site, "data:", "blob:")) else problems.append(request.url)
        )
        opened.on("pageerror", lambda error: problems.append(str(error)))
        yield opened
    assert problems == []


def test_a_page_is_found_by_its_words(page: Page, site: str) -> None:
    page.goto(f"{site}/index.html")
    page.get_by_role("button", name="Search").first.click()
    page.keyboard.type("keyring")
    page.locator("a[href*='login.html?h=keyring']").first.click()
    page.wait_for_url(re.compile(r"login\.html"))


def test_on_a_phone_every_page_fits_and_its_menu_opens(page: Page, site: str) -> None:
    page.set_viewport_size(PHONE)
    for name in sorted(each.name for each in (ROOT / "build" / "site").glob("*.html")):
        page.goto(f"{site}/{name}")
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"], name
    page.goto(f"{site}/proxy.html")
    page.locator("label[for=__drawer]:visible").first.click()
    page.locator("nav a:visible", has_text="Slow tools").first.wait_for()


@pytest.mark.parametrize(("scheme", "least", "most"), [("light", 600, 765), ("dark", 0, 150)])
def test_it_is_dark_where_the_system_is(page: Page, site: str, scheme: Literal["light", "dark"], least: int, most: int) -> None:
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{site}/proxy.html")
    page.locator("body[data-md-color-scheme]").wait_for()
    shade = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert least <= sum(map(int, re.findall(r"\d+", shade)[:3])) <= most


def test_examples_are_shown_as_code(page: Page, site: str) -> None:
    page.goto(f"{site}/getting-started.html")
    assert page.locator("pre code").count() == len(
        re.findall(r"^```\w", (ROOT / "docs" / "getting-started.md").read_text("utf-8"), re.M)
    )
    assert "```" not in page.locator("body").inner_text()


def test_models_find_every_page_as_markdown(page: Page, site: str) -> None:
    listed = re.findall(r"\]\(([^)]+)\)", page.request.get(f"{site}/llms.txt").text())
    assert set(listed) == {each.name for each in (ROOT / "docs").glob("*.md")} - {"index.md"}
    for name in listed:
        assert page.request.get(f"{site}/{name}").text() == (ROOT / "docs" / name).read_text("utf-8")


def test_a_mistyped_argument_is_named() -> None:
    ran = subprocess.run([ROOT / "scripts" / "docs", "--opne"], capture_output=True, text=True)
    assert ran.returncode == 1
    assert ran.stderr.startswith("scripts/docs: unknown arguments: --opne\n")
