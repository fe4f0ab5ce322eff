"""Over HTTP, each token has its own logins: the login of one client never serves another, and that of the user serves neither."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import RUN
from http_proxy import ANN, BOB, ByHand, environ
from login_servers import Door, door, oidc_provider, visit

pytestmark = [pytest.mark.anyio, pytest.mark.slow]


@pytest.fixture
def notes() -> Iterator[Door]:
    with oidc_provider() as oidc, door(oidc.introspect) as opened:
        opened.describe(oidc.issuer)
        yield opened


@pytest.fixture
def proxy(tmp_path: Path, notes: Door) -> Iterator[str]:
    line = ["proxy", "--http", "127.0.0.1:0", "--token-env", "ANN", "--token-env", "BOB", "--url", notes.url, "--name", "notes"]
    with subprocess.Popen(
        [sys.executable, "-c", RUN, *line], env=environ(tmp_path), stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr
        found = re.search(r"http://\S+", process.stderr.readline())
        assert found
        yield found.group()
        process.terminate()


def overspill(home: Path, *words: str) -> subprocess.Popen[str]:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, "-c", RUN, *words], env=environ(home), cwd=home, text=True, **pipes)


async def log_in(home: Path, notes: Door, *words: str) -> None:
    process = overspill(home, "login", notes.url, "--no-browser", *words)
    assert process.stderr
    await visit(next(line for line in process.stderr if line.startswith("http")).strip())
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, out + err


def call(proxy: str, token: str) -> str:
    """The older protocol: each client has a connection of its own to the server."""
    message: dict[str, Any] = {"id": 2, "method": "tools/call", "params": {"name": "log", "arguments": {}}}
    answer = ByHand(proxy, token).post(message)
    return str(answer["result"]["content"][0]["text"]) if "result" in answer else str(answer["error"]["message"])


async def test_the_login_of_one_token_never_serves_another(tmp_path: Path, notes: Door, proxy: str):
    await log_in(tmp_path, notes)  # the user's own
    needed = f"on the proxy's machine, and then try again: overspill login {notes.url} --token-env VARIABLE"
    assert needed in call(proxy, ANN)
    assert needed in call(proxy, BOB)
    await log_in(tmp_path, notes, "--token-env", "ANN")
    notes.seen.clear()
    assert "line" in call(proxy, ANN)
    of_ann = set(notes.seen)
    assert needed in call(proxy, BOB)
    await log_in(tmp_path, notes, "--token-env", "BOB")
    notes.seen.clear()
    assert "line" in call(proxy, BOB)
    assert not of_ann & set(notes.seen)
    logout = overspill(tmp_path, "logout", notes.url, "--token-env", "BOB")
    assert logout.communicate(timeout=60)[0] == "Logged out of 127.0.0.1.\n"
    assert needed in call(proxy, BOB)
    assert "line" in call(proxy, ANN)
    listed = {
        name: overspill(tmp_path, "login", "--list", *words).communicate(timeout=60)[0].count(notes.url)
        for name, words in {"user": [], "ann": ["--token-env", "ANN"], "bob": ["--token-env", "BOB"]}.items()
    }
    assert listed == {"user": 1, "ann": 1, "bob": 0}


def test_a_variable_without_a_token_is_an_error(tmp_path: Path):
    process = overspill(tmp_path, "login", "--list", "--token-env", "NOBODY")
    assert process.communicate(timeout=60)[1] == "overspill: error: The environment variable NOBODY is not set.\n"
    assert process.returncode == 2
