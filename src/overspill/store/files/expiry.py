"""What the keep limits look at in a root, and how one output is removed while its session is live."""

from __future__ import annotations

from contextlib import suppress

from msgspec import Struct

from overspill import handles
from overspill.store.files import layout
from overspill.store.files.layout import Directory
from overspill.store.files.survey import Place, survey
from overspill.store.rules import KeptItem


class KeptContent(Struct, frozen=True):
    items: list[KeptItem]
    bytes: int
    """The size of everything, including what cannot be removed."""
    places: dict[str, Place]
    outputs: dict[str, set[str]]
    """The outputs of each live session, including those that are still being written."""


def measure_kept(root: Directory) -> KeptContent:
    content = KeptContent([], 0, {}, {})
    total = 0
    for place, label in survey(root).shelves:
        if label.retention != "keep":
            continue
        # Its owner may remove it while we look.
        with (
            suppress(FileNotFoundError),
            root.open_directory(place.run) as run,
            run.open_directory(layout.session_directory(place.session)) as directory,
        ):
            files = _measure_files(directory)
            total += sum(size for size, _ in files.values())
            content.places[place.session] = place
            if label.live:
                content.outputs[place.session] = {name.removesuffix(layout.PART) for name in files}
                content.items.extend(
                    KeptItem(place.session, name, used, size) for name, (size, used) in files.items() if handles.is_uuid(name)
                )
            else:
                used = max((used for name, (_, used) in files.items() if name != layout.LOCK), default=0.0)
                content.items.append(KeptItem(place.session, "", used, sum(size for size, _ in files.values())))
    return KeptContent(content.items, total, content.places, content.outputs)


def remove_output(root: Directory, place: Place, item: KeptItem) -> bool:
    """Remove it in one step: a process that dies here leaves all of the output or nothing. False if it was read meanwhile."""
    with (
        root.open_directory(place.run) as run,
        run.open_directory(layout.session_directory(place.session)) as directory,
        suppress(FileNotFoundError),
    ):
        if directory.stat(item.id).st_mtime > item.used:
            return False
        directory.remove_file(item.id)
    return True


def _measure_files(directory: Directory) -> dict[str, tuple[int, float]]:
    """The size of each file and when it was last used, by name."""
    files: dict[str, tuple[int, float]] = {}
    for name in directory.names():
        with suppress(FileNotFoundError):
            found = directory.stat(name)
            files[name] = found.st_size, found.st_mtime
    return files
