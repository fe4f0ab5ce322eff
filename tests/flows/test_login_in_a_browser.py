"""`overspill login` with a real browser, at the pages of oidc-provider."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from browsers import chromium
from commands import RUN, bare_environment
from login_servers import door, oidc_provider
from waiting import wait_until

pytestmark = pytest.mark.slow


def test_a_person_logs_in_with_a_browser_and_the_login_is_used(tmp_path: Path):
    opened, program = tmp_path / "opened", tmp_path / "browser"
    program.write_text(f'#!/bin/sh\nprintf %s "$1" > {opened}.new && mv {opened}.new {opened}\n')
    program.chmod(0o755)
    environ = {**bare_environment(tmp_path), "BROWSER": str(program)}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with oidc_provider() as oidc, door(oidc.introspect) as notes, chromium() as browser:
        notes.describe(oidc.issuer)
        command = [sys.executable, "-c", RUN, "login", notes.url]
        with subprocess.Popen(command, env=environ, cwd=tmp_path, **pipes) as login:
            wait_until(opened.exists)
            page = browser.new_page()
            page.goto(opened.read_text())
            page.fill("[name=login]", "ada")
            page.fill("[name=password]", "any")
            page.click("[type=submit]")
            page.click("[type=submit]")  # she agrees
            page.wait_for_url("http://127.0.0.1:*/callback?*")
            assert page.inner_text("body") == "Overspill has the answer. You can close this window."
            out, err = login.communicate(timeout=60)
        assert (login.returncode, out) == (0, "Logged in to 127.0.0.1. Scopes: notes:read.\n")
        assert "Your browser opens this address to log in:" in err
        entry = tmp_path / ".config" / "overspill" / "config.yaml"
        entry.parent.mkdir(parents=True)
        entry.write_text(f"mcpServers:\n  notes:\n    url: {notes.url}\n")
        found = subprocess.run([sys.executable, "-c", RUN, "doctor"], env=environ, cwd=tmp_path, timeout=120, **pipes)
    assert "ok     notes: small 1 answered" in found.stdout
    assert "Logged in, scopes: notes:read. The token expires in 10 min. Overspill renews it." in found.stdout
