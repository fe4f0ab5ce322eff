"""The store: whether it is writable and private, how much space is left, and what ended processes left behind."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from overspill.cli.commands.doctor import Finding
from overspill.errors import SettingsError, StoreError
from overspill.retrieval.archive import Archive
from overspill.settings import Settings
from overspill.store.files.store import FileStore
from overspill.store.files.survey import ShelfIndex
from overspill.store.keep import list_shelves
from overspill.store.open import open_store
from overspill.store.protocols import Store
from overspill.text import humanize

_MIN_FREE_BYTES = 100_000_000
_USE_OTHER_FOLDER = "Set storeDir in your config file to a folder that you own."
_OVER_LIMIT = "That is more than keepBytes. The next kept session removes what nobody has used for a day, oldest first."


def check(url: str | None, settings: Settings) -> list[Finding]:
    """One store. Without a URL, the temporary directory."""
    try:
        store = open_store(url, run_bytes=settings.max_run_bytes)
        if not isinstance(store, FileStore):
            return _check_elsewhere(store)
        if problem := _find_problem(store.root):
            return [_wrong(problem, _USE_OTHER_FOLDER)]
        if os.path.lexists(store.root):
            store.check_writable()
        return [*_find_untrusted(store), _describe_content(store, settings), *_find_leftovers(store), *_check_space(store)]
    except (SettingsError, StoreError) as error:
        return [_wrong(str(error), _USE_OTHER_FOLDER)]


def _check_elsewhere(store: Store) -> list[Finding]:
    try:
        labels = list(list_shelves(store))
    except StoreError as error:
        return [_wrong(str(error), "")]
    live = sum(label.live for label in labels)
    return [Finding("store", "ok", f"{store.url} holds {humanize.count_noun(len(labels), 'session')}, {live} of them live.")]


def _wrong(text: str, advice: str) -> Finding:
    return Finding("store", "wrong", text, advice)


def _find_problem(root: Path) -> str:
    folder = next(part for part in (root, *root.parents) if os.path.exists(part))
    if not folder.is_dir():
        return f"Nothing can be stored in {root}: {folder} is not a folder."
    found = folder.stat()
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"Nothing can be stored in {root}: you cannot write to {folder}{_say_why(folder, found.st_uid)}."
    mode = found.st_mode
    if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        return f"{folder} is not safe: any user can remove what others store there."
    return ""


def _say_why(folder: Path, owner: int) -> str:
    if os.statvfs(folder).f_flag & os.ST_RDONLY:
        return ", because its file system is read-only"
    return "" if owner == os.geteuid() else f", which belongs to another user (uid {owner})"


def _find_untrusted(store: FileStore) -> list[Finding]:
    if not store.root.exists():
        return []
    with store.place.open() as directory:
        return [_wrong(str(refusal), "") for refusal in ShelfIndex().survey(directory)[1]]


def _describe_content(store: FileStore, settings: Settings) -> Finding:
    labels = store.shelves()
    size = sum(item.kept.size.bytes for item in Archive([store]).items())
    live = sum(label.live for label in labels)
    sessions = humanize.count_noun(len(labels), "session")
    text = f"{store.root} holds {sessions}, {live} of them live, with {humanize.format_size(size)} of outputs."
    return Finding("store", "note", text, _OVER_LIMIT) if size > settings.keep_bytes else Finding("store", "ok", text)


def _find_leftovers(store: FileStore) -> list[Finding]:
    left = [label for label in store.shelves() if not label.live and label.retention != "keep"]
    if not left:
        return []
    text = f"{humanize.count_noun(len(left), 'session')} left behind by processes that ended without cleaning up."
    return [Finding("store", "note", text, "The next session removes them. To do it now: overspill artifacts clean")]


def _check_space(store: FileStore) -> list[Finding]:
    free = store.free()
    if free >= _MIN_FREE_BYTES:
        return [Finding("store", "ok", f"{store.root} has room for {humanize.format_size(free)}.")]
    text = f"{store.root} has room for only {humanize.format_size(free)}, so large outputs will be cut."
    return [_wrong(text, "Free some space, or set storeDir in your config file to a folder on another disk.")]
