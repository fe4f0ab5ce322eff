"""Tokens in the keyring of a desktop: GNOME's, on a message bus of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import bare_environment

pytestmark = pytest.mark.slow
PROGRAM = """
import anyio
from overspill.mcp.client.login.storage import Login, LoginStore, Tokens
import os
store, url = LoginStore(os.environ), "https://a.example/mcp"
async def main():
    written = await store.write(Login(server=url, tokens=Tokens("of-access", "of-refresh")))
    read = await store.read(url)
    print(written.in_keyring, read.tokens.access, read.tokens.refresh, [login.tokens == Tokens() for login in store.list()])
anyio.run(main)
"""
ELSEWHERE = """
import anyio, os
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.login.keeper import TokenKeeper
try:
    anyio.run(TokenKeeper(ServerConfig("a", url="https://a.example/mcp"), os.environ).get_token)
except Exception as problem:
    print(type(problem).__name__, problem)
"""


def test_tokens_are_in_the_keyring_and_not_in_the_file(tmp_path: Path):
    if not shutil.which("gnome-keyring-daemon") or not shutil.which("dbus-run-session"):
        why = "there is no GNOME keyring. On Debian and Ubuntu: apt install gnome-keyring dbus"
        pytest.fail(why) if os.environ.get("CI") else pytest.skip(why)
    unlock = 'printf secret | gnome-keyring-daemon --unlock --components=secrets >/dev/null 2>&1; exec "$@"'
    command = ["dbus-run-session", "--", "sh", "-c", unlock, "sh", sys.executable, "-c", PROGRAM]
    found = subprocess.run(command, env=bare_environment(tmp_path), capture_output=True, text=True, timeout=60)
    assert found.stdout == "True of-access of-refresh [True]\n", found.stderr
    (file,) = (tmp_path / ".local" / "share" / "overspill" / "logins").glob("*.json")
    assert "of-" not in file.read_text()
    assert json.loads(file.read_text())["in_keyring"]
    elsewhere = [sys.executable, "-c", ELSEWHERE]  # without the bus, as over SSH
    told = subprocess.run(elsewhere, env=bare_environment(tmp_path), capture_output=True, text=True, timeout=60).stdout
    assert told.startswith(
        "LoginNeeded The login is in the system's keyring, which cannot be opened here. The server a needs a login."
    )
