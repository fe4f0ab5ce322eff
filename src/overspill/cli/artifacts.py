"""`overspill artifacts`: list, show, info, export and clean what is stored."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from overspill import text, wording
from overspill.archive import Item
from overspill.cli import look
from overspill.errors import BadRequest, StoreError
from overspill.stored import StoredOutput
from overspill.tools import parse_range

_BLOCK = 1 << 20


@click.group()
def artifacts() -> None:
    """Look at what is stored: ID is a handle (session-…/…) or an artifact id (art_…)."""


@artifacts.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_(as_json: bool) -> None:
    """List stored outputs, oldest first."""
    items = look.archive().items()
    if as_json:
        look.print_json([_facts(item) for item in items])
    elif not items:
        click.echo("Nothing is stored.")
    else:
        rows = [
            [item.kept.artifact_id, wording.people_size(item.kept.size.bytes), f"{item.kept.size.lines:,}", item.kept.source,
             look.when(item.kept.created_ms), "live" if item.label.live else "closed"]
            for item in items
        ]  # fmt: skip
        look.print_table(
            "Session Artifacts", ("ID", "Size", "Lines", "Source", "Stored", "Session"), rows, numbers=("Size", "Lines")
        )


@artifacts.command()
@click.argument("id")
@click.option("--lines", metavar="A-B", help="Only these lines, counted from 1, both included.")
@click.option("--bytes", "bytes_", metavar="A-B", help="Only these bytes, counted from 0, both included.")
def show(id: str, lines: str | None, bytes_: str | None) -> None:
    """Print a stored output, whole or in part."""
    if lines and bytes_:
        raise click.UsageError("Give --lines or --bytes, not both.")
    with look.archive().open(id) as stored:
        start, end = _span(stored, lines, bytes_)
        if sys.stdout.isatty():
            if stored.kept.media == "binary":
                raise BadRequest(f"{id} is not text. Save it with `overspill artifacts export {id} FILE`.")
            for block in _blocks(stored, start, end):
                click.echo(look.visible(text.decode(block)), nl=False)
        else:
            for block in _blocks(stored, start, end):
                sys.stdout.buffer.write(block)
            sys.stdout.buffer.flush()


@artifacts.command()
@click.argument("id")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def info(id: str, as_json: bool) -> None:
    """Tell what is known of a stored output."""
    facts = _facts(look.archive().find(id))
    if as_json:
        look.print_json(facts)
    else:
        look.print_table(
            facts["artifact_id"],
            ("", ""),
            [[key, f"{value:,}" if _is_count(value) else str(value)] for key, value in facts.items()],
        )


@artifacts.command()
@click.argument("id")
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--force", is_flag=True, help="Overwrite FILE.")
def export(id: str, file: Path, force: bool) -> None:
    """Copy a stored output's exact bytes to FILE (- for standard output)."""
    with look.archive().open(id) as stored:
        if str(file) == "-":
            for block in _blocks(stored, 0, stored.reader.size):
                sys.stdout.buffer.write(block)
            sys.stdout.buffer.flush()
            return
        try:
            _copy(stored, file, force=force)
        except FileExistsError:
            raise StoreError(f"{file} is there already. Choose another name or use --force.") from None
        except OSError as error:
            raise StoreError(f"{file} cannot be written: {error.strerror}.") from None
        click.echo(f"{stored.reader.size:,} bytes written to {file}", err=True)


@artifacts.command()
@click.option("--force", is_flag=True, help="Do not ask.")
@click.option("--live", is_flag=True, help="Also the outputs of sessions that are going on.")
def clean(force: bool, live: bool) -> None:
    """Remove stored outputs of ended sessions."""
    archive = look.archive()
    doomed = [item for item in archive.items() if live or not item.label.live]
    size = wording.people_size(sum(item.kept.size.bytes for item in doomed))
    if doomed and not force:
        click.confirm(f"Remove {len(doomed)} stored outputs ({size})?", abort=True, err=True)
    archive.remove(live=live)
    click.echo(f"{len(doomed)} stored outputs removed ({size})." if doomed else "Nothing to remove.")


def _span(stored: StoredOutput, lines: str | None, bytes_: str | None) -> tuple[int, int]:
    if lines:
        first, last = parse_range("--lines", lines)
        if not 1 <= first <= last or first > stored.view.lines:
            raise BadRequest(f"--lines {lines}: the output has lines 1-{stored.view.lines}.")
        return stored.view.line_span(first, last)
    if bytes_:
        first, last = parse_range("--bytes", bytes_)
        if not first <= last or first >= stored.reader.size:
            raise BadRequest(f"--bytes {bytes_}: the output has bytes 0-{stored.reader.size - 1}.")
        return first, min(last + 1, stored.reader.size)
    return 0, stored.reader.size


def _blocks(stored: StoredOutput, start: int, end: int) -> Iterator[bytes]:
    for at in range(start, end, _BLOCK):
        yield stored.reader.read(at, min(at + _BLOCK, end))


def _copy(stored: StoredOutput, file: Path, *, force: bool) -> None:
    """For its owner only, like the original."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL)
    with open(os.open(file, flags, 0o600), "wb") as target:
        for block in _blocks(stored, 0, stored.reader.size):
            target.write(block)


def _facts(item: Item) -> dict[str, Any]:
    kept = item.kept
    return {
        "artifact_id": kept.artifact_id,
        "handle": kept.handle,
        "tool": kept.tool,
        "server": kept.server,
        "source": kept.source,
        "reason": kept.reason,
        "media": kept.media,
        "bytes": kept.size.bytes,
        "chars": kept.size.chars,
        "lines": kept.size.lines,
        "tokens": kept.size.tokens,
        "tokens_estimated": kept.size.estimated,
        "sha256": kept.sha256,
        "stored_at": look.when(kept.created_ms),
        "missing": kept.missing,
        "session_name": item.label.name,
        "retention": item.label.retention,
        "live": item.label.live,
    }


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
