"""Which stores commands look at."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import redirect_stderr, suppress
from io import StringIO
from pathlib import Path

import click

from overspill.cli.settings import lasting_store, load_settings
from overspill.cli.terminal import warn
from overspill.errors import OverspillError, StoreError
from overspill.redaction.policy import Redaction
from overspill.retrieval.archive import Archive
from overspill.settings import Settings
from overspill.settings.opening import store_place
from overspill.store.files.layout import explain_failures
from overspill.store.files.store import FileStore
from overspill.store.open import open_store
from overspill.store.protocols import Store


def archive(preset: str | None, config: Path | None, assignments: Sequence[str]) -> Archive:
    return open_archive(load_settings(preset, config, assignments).settings)


def open_archive(settings: Settings, redaction: Redaction | None = None) -> Archive:
    return Archive(find_stores(settings), warn, redaction)


def find_stores(settings: Settings) -> list[Store]:
    """Find the configured store, the proxy's store, and the folder in this project where the artifacts preset stores outputs."""
    stores = {store.url: store for store in map(open_store, (store_place(settings), lasting_store()))}
    project = open_store(Settings(preset="artifacts").store_dir)
    if project.url not in stores and _can_open(project):
        stores[project.url] = project
    return list(stores.values())


def complete_outputs(_: click.Context, __: click.Parameter, typed: str) -> list[str]:
    """Complete names of stored outputs in your shell, newest first. Ignores problems, because a shell cannot show them."""
    with suppress(OverspillError, OSError), redirect_stderr(StringIO()):
        found = archive(None, None, ()).items()
        names = [kept.artifact_id if typed.startswith("art_") else kept.name for kept in (item.kept for item in reversed(found))]
        return [name for name in names if name and name.startswith(typed)][:100]
    return []


def _can_open(store: Store) -> bool:
    """Whether a store in the working directory exists and can be opened. If not, it must not hide the other stores."""
    if not isinstance(store, FileStore) or not (store.root.is_symlink() or store.root.exists()):
        return False
    try:
        with explain_failures(f"open {store.root}"), store.place.open():
            return True
    except StoreError as problem:
        warn(f"{problem} Skipping it.")
        return False
