"""Remove only what no session needs any more: names of exactly our layout that belong to this user and are not locked.

If two processes clear the same run, they meet each other's locks or find files gone. Both are fine.
"""

from __future__ import annotations

from contextlib import suppress

from overspill.errors import StoreError
from overspill.store.files import layout, lock
from overspill.store.files.journal import read_opening
from overspill.store.files.layout import Directory


def remove_session(run: Directory, session: str, directory: Directory) -> None:
    """The caller holds its lock. If the directory contains other files, it stays, with those files."""
    layout.sweep(directory)
    if not directory.names():
        with suppress(FileNotFoundError):
            run.remove_directory(layout.session_directory(session))


def remove_free_session(run: Directory, session: str) -> bool:
    """False while another process holds it."""
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
    """Remove the sessions that are free and not kept, and the run itself if it is empty. The caller holds its lock."""
    for session in layout.list_sessions(run):
        # What cannot be removed must not stop a process from starting or ending; the next start tries again.
        with suppress(OSError, StoreError):
            if not _is_kept(run, session):
                remove_free_session(run, session)
    with suppress(OSError):
        remove_empty_run(root, run)


def clear_dead_run(root: Directory, name: str) -> None:
    """Does nothing while the run is alive."""
    with suppress(OSError, StoreError), root.open_directory(name) as run:
        hold = lock.take(run)
        if hold is not None:
            try:
                clear_run(root, run)
            finally:
                hold.release()


def _is_kept(run: Directory, session: str) -> bool:
    with run.open_directory(layout.session_directory(session)) as directory:
        return read_opening(session, directory).retention == "keep"
