"""What a root keeps, as the keep limits look at it, and how one output is removed while its session is live."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress

from overspill import handles
from overspill.store import keep
from overspill.store.files import clearing, layout, lock
from overspill.store.files.layout import PART, Directory, Place
from overspill.store.files.survey import FoundSession, ShelfIndex
from overspill.store.keep import KeptItem


class KeptFiles:
    """`remove` removes an item from its place. What processes were writing when they died goes as it is found."""

    def __init__(self, root: Directory, index: ShelfIndex, remove: Callable[[Place, KeptItem], bool]) -> None:
        self.now = time.time()
        self.items: list[KeptItem] = []
        self.bytes: dict[str, int] = {}
        self.places: dict[str, Place] = {}
        self.outputs: dict[str, set[str]] = {}
        """The outputs of each live session, including those that are still being written."""
        self._remove = remove
        for found, directory in index.visit(root):
            if found.opening.retention == "keep":
                self._add(root, found, directory)

    def remove(self, item: KeptItem) -> bool:
        return self._remove(self.places[item.session], item)

    def _add(self, root: Directory, found: FoundSession, directory: Directory) -> None:
        place, files = found.place, layout.measure_files(directory)
        size = sum(size for size, _ in files.values())
        family = keep.family_of(found.opening.name)
        self.places[place.session] = place
        if lock.is_held(directory):
            self.outputs[place.session] = {name.removesuffix(PART) for name in files}
            self.items += [
                KeptItem(place.session, name, used, size, family) for name, (size, used) in files.items() if handles.is_uuid(name)
            ]
        else:
            if any(name.endswith(PART) for name in files):
                size -= clearing.remove_unfinished(root, place)
            self.items.append(KeptItem(place.session, "", clearing.last_used(files), size, family))
        self.bytes[family] = self.bytes.get(family, 0) + size


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
