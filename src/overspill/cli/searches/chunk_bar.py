"""What you see on a terminal while `overspill extract` reads files and asks a model."""

from __future__ import annotations

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from overspill.cli.consoles import progress_console
from overspill.text.humanize import format_size


class ChunkBar:
    """Counts the bytes that were read, and then the chunks that a model has read. `total` is 0 if it is not known."""

    def __init__(self, total: int = 0) -> None:
        console = progress_console()
        columns = (TextColumn("extracting"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_interactive)
        self._task = self._bar.add_task("", total=total or None)
        self._total = total

    def __enter__(self) -> ChunkBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total, description=f"{done}/{total} chunks")

    def read(self, before: int, done: int) -> None:
        """So many bytes of the files before, and of the one that is being read."""
        done += before
        shown = f"{format_size(done)} of {format_size(self._total)}" if self._total else format_size(done)
        self._bar.update(self._task, completed=done, total=self._total or None, description=shown)
