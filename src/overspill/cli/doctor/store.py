"""The store: can it be written, is it private, is there room, and what do ended processes still have in it?"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from overspill.cli.doctor.findings import Finding
from overspill.errors import SettingsError, StoreError
from overspill.retrieval.archive import Archive
from overspill.settings import Settings
from overspill.store.files.store import FileStore
from overspill.store.files.survey import survey
from overspill.store.open import open_store
from overspill.text import humanize

_LEAST_ROOM = 100_000_000
_ELSEWHERE = "Set storeDir in your config file to a folder of your own."


def examine(url: str | None, settings: Settings) -> list[Finding]:
    """One store; None: the temporary directory."""
    try:
        store = open_store(url, run_bytes=settings.max_run_bytes)
    except SettingsError as problem:
        return [_wrong(str(problem), _ELSEWHERE)]
    if not isinstance(store, FileStore):
        return [Finding("store", "ok", f"Outputs are kept in {store.url}")]
    if unusable := _unusable(store.root):
        return [_wrong(unusable, _ELSEWHERE)]
    try:
        return [*_find_untrusted(store), _content(store, settings), *_leftovers(store), *_room(store)]
    except StoreError as problem:
        return [_wrong(str(problem), _ELSEWHERE)]


def _wrong(text: str, advice: str) -> Finding:
    return Finding("store", "wrong", text, advice)


def _unusable(root: Path) -> str:
    place = next(part for part in (root, *root.parents) if os.path.exists(part))
    if not place.is_dir():
        return f"Nothing can be stored in {root}: {place} is not a folder."
    if not os.access(place, os.W_OK | os.X_OK):
        return f"Nothing can be stored in {root}: you may not write to {place}."
    mode = place.stat().st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        return f"{place} is no safe place: everybody may remove there what others have stored."
    return ""


def _find_untrusted(store: FileStore) -> list[Finding]:
    if not store.root.exists():
        return []
    with store.place.open() as directory:
        return [_wrong(str(refusal), "") for refusal in survey(directory).refusals]


def _content(store: FileStore, settings: Settings) -> Finding:
    labels = store.shelves()
    size = sum(item.kept.size.bytes for item in Archive([store]).items())
    live = sum(label.live for label in labels)
    sessions = humanize.count_noun(len(labels), "session")
    text = f"{store.root} holds {sessions}, {live} of them live, with {humanize.format_size(size)} of outputs."
    over = size > settings.keep_bytes
    return Finding(
        "store",
        "note" if over else "ok",
        text,
        "The next kept session removes what nobody has used for a day, oldest first." if over else "",
    )


def _leftovers(store: FileStore) -> list[Finding]:
    left = [label for label in store.shelves() if not label.live and label.retention != "keep"]
    if not left:
        return []
    text = f"Left behind by processes that ended without clearing up: {humanize.count_noun(len(left), 'session')}."
    return [Finding("store", "note", text, "The next start removes them, or do it now: overspill artifacts clean")]


def _room(store: FileStore) -> list[Finding]:
    room = store.free()
    if room >= _LEAST_ROOM:
        return [Finding("store", "ok", f"{store.root} has room for {humanize.format_size(room)} more.")]
    text = f"{store.root} has room for {humanize.format_size(room)} only: large outputs will be cut."
    return [_wrong(text, "Free space on that disk, or set storeDir in your config file to another one.")]
