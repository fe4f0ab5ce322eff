"""Survey a root that many runs share: which shelves it has, which are live, and which directories cannot be trusted."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager

from msgspec import Struct

from overspill.errors import StoreError, UnknownHandle
from overspill.store.files import layout, lock
from overspill.store.files.failures import to_store_error
from overspill.store.files.journal import read_opening
from overspill.store.files.layout import Directory
from overspill.store.protocols import ShelfLabel


class Place(Struct, frozen=True):
    """Where one session is below the root."""

    run: str
    session: str


class Survey(Struct, frozen=True):
    shelves: list[tuple[Place, ShelfLabel]]
    refusals: list[StoreError]
    """Directories of this user that look like a run or a session but cannot be trusted."""


def survey(root: Directory) -> Survey:
    shelves: list[tuple[Place, ShelfLabel]] = []
    refusals: list[StoreError] = []
    for run in _trusted_runs(root, refusals):
        for session in layout.list_sessions(run):
            with _collect_refusals(refusals), run.open_directory(layout.session_directory(session)) as directory:
                shelves.append((Place(run.path.name, session), _label(session, directory)))
    return Survey(shelves, refusals)


def find(root: Directory, session: str) -> Place:
    refusals: list[StoreError] = []
    for run in _trusted_runs(root, refusals):
        if layout.has_session(run, session):
            return Place(run.path.name, session)
    raise refusals[0] if refusals else unknown_session_error(session)


def unknown_session_error(session: str) -> UnknownHandle:
    return UnknownHandle(layout.session_directory(session))


def read_label(root: Directory, place: Place) -> ShelfLabel:
    try:
        with (
            root.open_directory(place.run) as run,
            run.open_directory(layout.session_directory(place.session)) as directory,
        ):
            return _label(place.session, directory)
    except FileNotFoundError:
        raise unknown_session_error(place.session) from None


def _label(session: str, directory: Directory) -> ShelfLabel:
    first = read_opening(session, directory)
    return ShelfLabel(session, live=lock.is_held(directory), name=first.name, retention=first.retention)


def _trusted_runs(root: Directory, refusals: list[StoreError]) -> Iterator[Directory]:
    for name in layout.list_runs(root):
        with _collect_refusals(refusals), root.open_directory(name) as run:
            yield run


@contextmanager
def _collect_refusals(refusals: list[StoreError]) -> Generator[None]:
    try:
        yield
    except FileNotFoundError:
        return  # removed by its owner while we looked
    except OSError as error:
        refusals.append(to_store_error("open a directory in the store", error))
    except StoreError as refusal:
        refusals.append(refusal)
