"""A real server that speaks Azure's protocol, on loopback: Azurite, which comes from npm."""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from pathlib import Path

import pytest
from packages import AZURITE, Unavailable, npm_home
from store_servers import free_ports, require_package

CONTAINER = "overspill-tests"
_ACCOUNT = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""Not a secret: Azurite's documentation has it."""
_VERSION = "2021-12-02"


@contextmanager
def run_azure(folder: Path) -> Iterator[dict[str, str]]:
    """The variables that lead to the server."""
    require_package("obstore")
    program = _find_program()
    [port] = free_ports(1)
    options = ["--blobHost", "127.0.0.1", "--blobPort", str(port), "--inMemoryPersistence", "--silent"]
    options.append("--skipApiVersionCheck")
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([program, *options], cwd=folder, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 60
        while not _make_container(port):
            assert process.poll() is None, (folder / "log").read_text()[-2000:]
            assert time.monotonic() < deadline
            threading.Event().wait(0.1)
        yield {
            "AZURE_STORAGE_ACCOUNT_NAME": _ACCOUNT,
            "AZURE_STORAGE_ACCOUNT_KEY": _KEY,
            "AZURE_STORAGE_USE_EMULATOR": "true",
            "AZURITE_BLOB_STORAGE_URL": f"http://127.0.0.1:{port}",
            "AZURE_ALLOW_HTTP": "true",
        }
    finally:
        process.kill()
        process.wait(30)


def _find_program() -> Path:
    try:
        return npm_home("azurite", AZURITE) / "node_modules" / ".bin" / "azurite-blob"
    except Unavailable as reason:
        pytest.fail(str(reason)) if os.environ.get("CI") else pytest.skip(str(reason))


def _make_container(port: int) -> bool:
    """The library that stores objects cannot make a container."""
    date = formatdate(usegmt=True)
    path = f"/{_ACCOUNT}/{CONTAINER}"
    text = "PUT" + "\n" * 12 + f"x-ms-date:{date}\nx-ms-version:{_VERSION}\n/{_ACCOUNT}{path}\nrestype:container"
    signature = base64.b64encode(hmac.new(base64.b64decode(_KEY), text.encode(), hashlib.sha256).digest()).decode()
    headers = {"x-ms-date": date, "x-ms-version": _VERSION, "Authorization": f"SharedKey {_ACCOUNT}:{signature}"}
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("PUT", f"{path}?restype=container", headers={**headers, "Content-Length": "0"})
        return connection.getresponse().status in (201, 409)
    except OSError:
        return False
    finally:
        connection.close()
