"""Survey a root that many runs share: which shelves it has, which are live, and which directories cannot be trusted."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager

from msgspec import Struct

from overspill.errors import StoreError, UnknownHandle
from overspill.store.files import layout, lock
from overspill.store.files.failures import to_store_error
from overspill.store.files.journal import Opening, read_opening
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


class Visit(Struct, frozen=True):
    """A session's directory, open as long as it is visited, and how its journal begins."""

    place: Place
    directory: Directory
    opening: Opening

    @property
    def label(self) -> ShelfLabel:
        first = self.opening
        return ShelfLabel(self.place.session, live=lock.is_held(self.directory), name=first.name, retention=first.retention)


class ShelfIndex:
    """Remembers where the sessions of a root are and how their journals begin. Neither changes as long as a session exists, so
    that only new sessions cost more than a look at their directory."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Place, Opening]] = {}

    def visit(self, root: Directory, look: Callable[[Visit], None]) -> list[StoreError]:
        """Look at every session of this user. Returns what cannot be trusted; what is removed meanwhile is left out."""
        refusals: list[StoreError] = []
        known: dict[str, tuple[Place, Opening]] = {}
        for run in _trusted_runs(root, refusals):
            for session in layout.list_sessions(run):
                with _collect_refusals(refusals), run.open_directory(layout.session_directory(session)) as directory:
                    place = Place(run.path.name, session)
                    opening = self._read_opening(place, directory)
                    if opening is not None:
                        known[session] = place, opening
                    look(Visit(place, directory, opening or Opening(session)))
        self._known = known
        return refusals

    def survey(self, root: Directory) -> Survey:
        shelves: list[tuple[Place, ShelfLabel]] = []
        return Survey(shelves, self.visit(root, lambda visit: shelves.append((visit.place, visit.label))))

    def survey_openings(self, root: Directory) -> None:
        """Learn how every journal begins, so that the next look is a short one."""
        self.visit(root, lambda _: None)

    def find_named(self, root: Directory, name: str) -> Survey:
        """Only the sessions of that name, without finding out which of the others are live."""
        shelves: list[tuple[Place, ShelfLabel]] = []

        def look(visit: Visit) -> None:
            if visit.opening.name == name:
                shelves.append((visit.place, visit.label))

        return Survey(shelves, self.visit(root, look))

    def list_clearable_runs(self, root: Directory) -> list[str]:
        """Runs that contain something other than kept sessions, or nothing. They may be live."""
        has_only_kept: dict[str, bool] = {}

        def look(visit: Visit) -> None:
            run = visit.place.run
            has_only_kept[run] = has_only_kept.get(run, True) and visit.opening.retention == "keep"

        self.visit(root, look)
        return [run for run in layout.list_runs(root) if not has_only_kept.get(run)]

    def knows(self, session: str) -> bool:
        return session in self._known

    def find(self, root: Directory, session: str) -> Place:
        if session in self._known and _is_at(root, place := self._known[session][0]):
            return place
        refusals: list[StoreError] = []
        for run in _trusted_runs(root, refusals):
            if layout.has_session(run, session):
                return Place(run.path.name, session)
        raise refusals[0] if refusals else unknown_session_error(session)

    def read_label(self, root: Directory, place: Place) -> ShelfLabel:
        try:
            with (
                root.open_directory(place.run) as run,
                run.open_directory(layout.session_directory(place.session)) as directory,
            ):
                return Visit(place, directory, self._read_opening(place, directory) or Opening(place.session)).label
        except FileNotFoundError:
            raise unknown_session_error(place.session) from None

    def _read_opening(self, place: Place, directory: Directory) -> Opening | None:
        found = self._known.get(place.session)
        return found[1] if found and found[0] == place else read_opening(place.session, directory)


def unknown_session_error(session: str) -> UnknownHandle:
    return UnknownHandle(layout.session_directory(session))


def _is_at(root: Directory, place: Place) -> bool:
    try:
        with root.open_directory(place.run) as run:
            return layout.has_session(run, place.session)
    except (OSError, StoreError):
        return False


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
