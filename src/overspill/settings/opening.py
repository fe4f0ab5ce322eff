"""The store that the settings name."""

from __future__ import annotations

from overspill.settings.settings import Settings
from overspill.store.open import open_store
from overspill.store.protocols import Store


def store_place(settings: Settings) -> str | None:
    """A path or URL; None means the temporary directory."""
    return settings.store or settings.store_dir


def open_configured_store(settings: Settings) -> Store:
    return open_store(store_place(settings), run_bytes=settings.max_run_bytes)
