"""A proxy's servers start while the proxy imports what it speaks to them with, and none is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from test_architecture import modules_loaded_by
from waiting import until
from wire import EVERY, Process, proxied

pytestmark = [pytest.mark.anyio, pytest.mark.slow]

STUBBORN = """
import os, signal, sys, time
from pathlib import Path
Path(sys.argv[1]).write_text(str(os.getpid()))
if "deaf" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(1000)
sys.stdin.read()
"""


def start_proxy(folder: Path, *options: str) -> subprocess.Popen[bytes]:
    environ = {**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder)}
    command = proxied((sys.executable, "-c", STUBBORN, str(folder / "pid"), *options))
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environ)


async def server_of(proxy: subprocess.Popen[bytes], folder: Path) -> Path:
    """The server's folder in /proc, once it runs."""
    await until(lambda: (folder / "pid").exists() and (folder / "pid").read_text())
    assert proxy.poll() is None
    return Path("/proc") / (folder / "pid").read_text()


@pytest.mark.parametrize("options", [(), ("deaf",)])
@pytest.mark.parametrize("ending", [signal.SIGTERM, None])
async def test_a_server_that_no_client_asked_for_runs_and_ends_with_the_proxy(
    tmp_path: Path, options: tuple[str, ...], ending: signal.Signals | None
) -> None:
    with start_proxy(tmp_path, *options) as proxy:
        server = await server_of(proxy, tmp_path)
        if ending is None:
            proxy.stdin.close()
        else:
            proxy.send_signal(ending)  # most likely while it still imports
        assert proxy.wait(30) == 0
    assert not server.exists()


def test_a_server_is_started_once(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    code = f"import runpy; open({str(starts)!r}, 'a').write('.'); runpy.run_path({str(EVERY)!r}, run_name='__main__')"
    with Process(proxied((sys.executable, "-c", code)), env={"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}) as wire:
        wire.hello()
        assert wire.names()
        assert wire.end() == 0
    assert starts.read_text() == "."


def test_what_starts_servers_does_not_import_the_sdk() -> None:
    loaded = modules_loaded_by("import sys, overspill.cli.serving; print(*sys.modules, file=sys.stderr)")
    assert "overspill.mcp.client.config" in loaded
    assert loaded & {"mcp", "mcp_types", "overspill.lexical", "overspill.session", "pydantic"} == set()
