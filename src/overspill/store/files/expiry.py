"""What the keep limits look at in a root, and how one output is removed while its session is live."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from msgspec.structs import replace

from overspill import handles
from overspill.store import rules
from overspill.store.files import layout
from overspill.store.files.clearing import last_used
from overspill.store.files.layout import PART, Directory
from overspill.store.files.survey import Place, ShelfIndex, Visit
from overspill.store.rules import KeptItem


class KeptContent:
    """Everything that is kept in a root, measured without stopping anybody who writes there meanwhile."""

    def __init__(self, root: Directory, index: ShelfIndex) -> None:
        self.items: list[KeptItem] = []
        self.bytes: dict[str, int] = {}
        """The size of everything that a family keeps, including what cannot be removed."""
        self.places: dict[str, Place] = {}
        self.outputs: dict[str, set[str]] = {}
        """The outputs of each live session, including those that are still being written."""
        self.unfinished: list[Place] = []
        """Closed sessions with outputs that nobody writes any more."""
        index.visit(root, self._add)

    def note_freed(self, freed: Mapping[str, int]) -> None:
        """So many bytes of these closed sessions are gone."""
        for item in self.items:
            self.bytes[item.family] -= 0 if item.id else freed.get(item.session, 0)
        self.items = [replace(item, bytes=item.bytes - freed.get(item.session, 0)) for item in self.items]

    def _add(self, visit: Visit) -> None:
        if visit.opening.retention != "keep":
            return
        place, files = visit.place, layout.measure_files(visit.directory)
        size = sum(size for size, _ in files.values())
        family = rules.family_of(visit.opening.name)
        self.bytes[family] = self.bytes.get(family, 0) + size
        self.places[place.session] = place
        if visit.label.live:
            self.outputs[place.session] = {name.removesuffix(PART) for name in files}
            self.items += [
                KeptItem(place.session, name, used, size, family) for name, (size, used) in files.items() if handles.is_uuid(name)
            ]
        else:
            self.items.append(KeptItem(place.session, "", last_used(files), size, family))
            if any(name.endswith(PART) for name in files):
                self.unfinished.append(place)


def remove_output(root: Directory, place: Place, item: KeptItem) -> bool:
    """Remove it in one step: a process that dies here leaves all of the output or nothing. False if it was read meanwhile."""
    with suppress(FileNotFoundError), place.open(root) as directory:
        if directory.stat(item.id).st_mtime > item.used:
            return False
        directory.remove_file(item.id)
    return True


def is_gone(root: Directory, place: Place, id: str) -> bool:
    """Whether an output was removed. A list of files alone does not tell: one that is renamed meanwhile may be missing in it."""
    with suppress(FileNotFoundError), place.open(root) as directory:
        return not layout.has_output(directory, id)
    return True
