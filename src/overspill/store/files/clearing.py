"""Removing what nobody needs any more, and only that: names of our exact layout, of this user, that nobody holds.

Two processes that clear at once find each other's locks or find things gone; both are fine.
"""

from __future__ import annotations

from contextlib import suppress

from overspill.errors import StoreError
from overspill.store.files import layout, lock
from overspill.store.files.journal import opening
from overspill.store.files.layout import Directory


def remove_session(run: Directory, session: str, directory: Directory) -> None:
    """For whoever holds its lock. A directory with somebody's own files in it stays, with those."""
    layout.sweep(directory)
    if not directory.names():
        with suppress(FileNotFoundError):
            run.remove_directory(layout.session_directory(session))


def remove_free_session(run: Directory, session: str) -> bool:
    """False while somebody holds it."""
    with run.open_directory(layout.session_directory(session)) as directory:
        hold = lock.take(directory)
        if hold is None:
            return False
        try:
            remove_session(run, session, directory)
        finally:
            hold.release()
    return True


def remove_empty_run(root: Directory, run: Directory) -> None:
    with suppress(FileNotFoundError):
        if set(run.names()) <= {layout.LOCK}:
            with suppress(FileNotFoundError):
                run.remove_file(layout.LOCK)
            root.remove_directory(run.path.name)


def clear_run(root: Directory, run: Directory) -> None:
    """For whoever holds its lock: remove the sessions that are free and not to be kept, and the run when nothing is left."""
    for session in layout.sessions(run):
        # What cannot be removed must not keep anybody from starting or ending; the next start tries again.
        with suppress(OSError, StoreError):
            if not _to_keep(run, session):
                remove_free_session(run, session)
    with suppress(OSError):
        remove_empty_run(root, run)


def clear_dead_run(root: Directory, name: str) -> None:
    """Does nothing while the run lives."""
    with suppress(OSError, StoreError), root.open_directory(name) as run:
        hold = lock.take(run)
        if hold is not None:
            try:
                clear_run(root, run)
            finally:
                hold.release()


def _to_keep(run: Directory, session: str) -> bool:
    with run.open_directory(layout.session_directory(session)) as directory:
        return opening(session, directory).retention == "keep"
