"""What you see on a terminal while `overspill extract` asks a model."""

from __future__ import annotations

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from overspill.cli.consoles import progress_console


class ChunkBar:
    """Counts the chunks that a model has read."""

    def __init__(self) -> None:
        console = progress_console()
        columns = (TextColumn("extracting"), BarColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
        self._bar = Progress(*columns, console=console, transient=True, disable=not console.is_interactive)
        self._task = self._bar.add_task("", total=None)

    def __enter__(self) -> ChunkBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, done: int, total: int) -> None:
        self._bar.update(self._task, completed=done, total=total, description=f"{done}/{total} chunks")
