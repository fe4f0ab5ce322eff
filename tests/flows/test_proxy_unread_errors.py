"""A client starts the proxy with a pipe as standard error and never reads it, while a server prints without end."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from waiting import wait_until
from wire import Process, proxied

pytestmark = pytest.mark.slow

SERVER = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    if asked["method"] == "server/discover":
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": "unknown"}}), flush=True)
        continue
    if asked["method"] == "tools/list":
        result = {"tools": [{"name": "print", "inputSchema": {"type": "object"}}]}
    if asked["method"] == "tools/call":
        for _ in range(asked["params"]["arguments"]["lines"]):
            os.write(2, b"x" * 999 + b"\\n")
        result = {"content": [{"type": "text", "text": "done"}]}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""

PROXY = proxied([sys.executable, "-c", SERVER])
PRINTED = b"x" * 999 + b"\n"


class Deaf(Process):
    """Reads standard error only when it is told to."""

    def _hear(self) -> None: ...

    def listen(self, words: bytes) -> bytes:
        """Everything up to these words."""
        found = b""
        while words not in found and (piece := os.read(self.process.stderr.fileno(), 65536)):
            found += piece
        return found


def environ(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "TMPDIR": str(home)}


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Deaf]:
    deaf = Deaf(PROXY, env=environ(tmp_path))
    try:
        deaf.hello()
        yield deaf
    finally:
        deaf.close()


@pytest.mark.promise("no-turn-blocked")
def test_the_proxy_keeps_answering_and_says_what_it_left_out(client: Deaf) -> None:
    for _ in range(3):
        assert client.text("print", {"lines": 2000}) == "done"
    assert client.result("ping") == {}
    found = client.listen(b"nothing read them in time.\n")
    assert PRINTED in found
    assert b" bytes of messages are left out here, because nothing read them in time.\n" in found


def test_the_proxy_ends_with_its_client(client: Deaf) -> None:
    assert client.text("print", {"lines": 2000}) == "done"
    assert client.end() == 0


def test_everything_is_passed_on_to_a_client_that_reads(tmp_path: Path) -> None:
    process = Process(PROXY, env=environ(tmp_path))
    try:
        process.hello()
        for _ in range(5):
            assert process.text("print", {"lines": 100}) == "done"
        wait_until(lambda: process.errors.count(PRINTED) == 500)
        assert process.end() == 0
        assert b"left out" not in process.errors
    finally:
        process.close()
