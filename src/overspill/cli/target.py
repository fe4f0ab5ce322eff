"""Which file of which client a command is about."""

from __future__ import annotations

import os
import sys
from difflib import get_close_matches
from pathlib import Path

from msgspec import Struct

from overspill.cli.config import home
from overspill.errors import SettingsError
from overspill.mcp.host_configs import clients as places
from overspill.mcp.host_configs import files
from overspill.mcp.host_configs.clients import Client
from overspill.mcp.host_configs.files import ClientFile
from overspill.settings.files import file_exists


class Target(Struct, frozen=True):
    """`spelled` is how the user named it."""

    spelled: str
    file: ClientFile
    client: Client | None


def clients() -> dict[str, Client]:
    return places.known_clients(home(), sys.platform, os.environ)


def target_of(spelled: str) -> Target:
    known = clients()
    client = known.get(spelled)
    path = client.file if client else Path(spelled)
    if not file_exists(path):
        raise SettingsError(_missing(client) if client else _no_file(spelled, known))
    return Target(spelled, files.read(path), client or places.find_owner(path, known))


def _missing(client: Client) -> str:
    here = Path(client.project_file)
    found = f" This folder has servers of its own: {here}." if client.project_file and os.path.exists(here) else ""
    return f"{client.title} has no {client.file}, so there are no servers of yours in it.{found}"


def _no_file(spelled: str, known: dict[str, Client]) -> str:
    near = get_close_matches(spelled, known, n=1)
    hint = f"Did you mean {near[0]!r}?" if near else f"Clients by name: {', '.join(known)}."
    return f"There is no file {spelled}. {hint}"
