"""The tokens with which clients reach the hub over HTTP."""

from __future__ import annotations

import os
import shlex
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from overspill.cli.settings import home, lasting_store
from overspill.errors import SettingsError
from overspill.mcp.host_configs.clients import ConfigDialect
from overspill.mcp.host_configs.hub_clients import HubClient, HubClients, identify_token


def find_hub_clients() -> HubClients:
    return HubClients(Path(lasting_store(), "hub-clients"))


def find_servers(token: str) -> str | None:
    client = find_hub_clients().read(identify_token(token.encode()))
    return client and client.servers


def require_private(file: Path, dialect: ConfigDialect) -> None:
    """Raise SettingsError if others may read a client's file, and so a token in it, or if the client cannot use one."""
    if dialect.http_type is None:
        raise SettingsError(f"The client of {file} speaks only stdio. Leave out --hub-http.")
    if file.stat().st_mode & 0o077:
        why = f"Others may read {file}, and so the token that --hub-http would write into it."
        raise SettingsError(f"{why} To prevent it: chmod 600 {shlex.quote(str(file))}")


@contextmanager
def changed_tokens(tokens: Mapping[str, str], file: Path, *, starts_at_home: bool) -> Generator[None]:
    """Let new tokens of a client's file work while it is written, and then revoke those that it no longer has."""
    known, folder, path = find_hub_clients(), home() if starts_at_home else file.parent, os.environ.get("PATH", "")
    now = {
        identify_token(token.encode()): HubClient(str(file), str(folder), path, servers) if servers else None
        for token, servers in tokens.items()
    }
    before = {digest: known.read(digest) for digest, client in now.items() if client}
    try:
        for digest in before:
            known.write(digest, now[digest])
        yield
    except BaseException:
        for digest, client in before.items():
            known.write(digest, client)
        raise
    for digest in now.keys() - before.keys():
        known.write(digest, None)
