"""`overspill view` as you start it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path

import pytest
from commands import Place
from forked import Forked
from viewers import fill, run_apart

from overspill.session.session import Session
from overspill.settings import Settings


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, monkeypatch, capsys)


@contextmanager
def started(*args: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    process = Forked(["view", *args], env={**os.environ, **env}, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)
        assert process.stderr
        process.stderr.close()


def read_link(process: subprocess.Popen[str]) -> str:
    assert process.stderr
    line = process.stderr.readline()
    found = re.search(r"http://\S+", line)
    assert found, line
    return found[0]


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_link_that_it_prints_opens_the_page_and_a_signal_ends_it(place: Place, end: signal.Signals):
    fill(place.store, name="mine", a="x" * 20_000)
    with started() as process:
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with browser.open(read_link(process), timeout=30) as page:
            assert "token" not in page.url
            assert "mine" in page.read().decode()
        process.send_signal(end)
        assert process.wait(30) == 0


@pytest.mark.slow
@pytest.mark.parametrize("server", ["postgres_url", "s3_url"])
def test_it_looks_at_a_store_on_a_server(place: Place, request: pytest.FixtureRequest, server: str):
    url: str = request.getfixturevalue(server)

    async def store_something() -> None:
        async with Session(Settings(retention="keep"), store=url, name="on a server", preload=False) as session:
            await session.call("fetch", {}, lambda: "x" * 20_000)

    run_apart(store_something)
    with started("--store", url) as process:
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
        with browser.open(read_link(process), timeout=30) as page:
            assert "on a server" in page.read().decode()


@pytest.mark.slow
def test_a_browser_is_started_without_the_token_on_its_command_line(place: Place):
    told = place.root / "told"
    browser = place.root / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" >{told}.new\ncat "${{1#file://}}" >>{told}.new\nmv {told}.new {told}\n')
    browser.chmod(0o755)
    with started("--open", BROWSER=str(browser)) as process:
        assert process.stderr
        line = process.stderr.readline()
        assert "token" not in line
        address, content = told.read_text().split("\n", 1)
        assert "token" not in address
        assert re.search(r"url=http://127.0.0.1:\d+/[\w-]+/\?token=[\w-]{43}", content)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    assert not Path(address.removeprefix("file://")).exists()


def test_an_address_that_others_can_reach_has_to_be_asked_for(place: Place):
    result = place.overspill("view", "--host", "192.0.2.1")
    assert (result.code, result.out) == (2, "")
    assert "--insecure" in result.err


@pytest.mark.parametrize("host", ["0.0.0.0", "::", ""])  # noqa: S104
def test_an_address_that_no_browser_can_call_is_refused(place: Place, host: str):
    result = place.overspill("view", "--host", host, "--insecure")
    assert result.code == 2
    assert "is not an address a browser can reach" in result.err


def test_a_port_that_is_taken_is_named(place: Place):
    with started() as process:
        port = read_link(process).split(":")[2].split("/")[0]
        result = place.overspill("view", "--port", port)
    assert result.code == 2
    assert f"Cannot listen on 127.0.0.1:{port}" in result.err


@pytest.mark.parametrize("store", ["nowhere:x", "memory:abc"])
def test_a_store_that_cannot_be_used_is_named(place: Place, store: str):
    result = place.overspill("view", "--store", store)
    assert result.code == 2
    assert store in result.err


def test_without_its_packages_the_error_says_what_to_install(place: Place):
    result = place.without("jinja2", "view")
    assert result.code == 2
    assert "'.[view]'" in result.err
    assert "Traceback" not in result.err
