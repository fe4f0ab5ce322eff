"""`overspill artifacts`: list, show, export and remove stored outputs. `overspill verify`: check that they are unchanged."""

from __future__ import annotations

import base64
import os
import sys
from pathlib import Path
from typing import Any

import click
from msgspec import to_builtins

from overspill.cli import output, stores, tables
from overspill.cli.common_options import CommandGroup
from overspill.cli.settings import load_settings, settings_options
from overspill.cli.terminal import inform, on_terminal
from overspill.errors import BadRequest, StoreError
from overspill.retrieval.archive import ArchivedOutput
from overspill.retrieval.definitions import parse_range
from overspill.retrieval.output import StoredOutput
from overspill.store.readers import read_blocks
from overspill.text import encoding
from overspill.text.humanize import count_noun, escape_invisible, format_size
from overspill.types import Lineage


@click.group(cls=CommandGroup)
def artifacts() -> None:
    """List, show, export and remove stored outputs.

    ID is a name (out_…), an artifact id (art_…) or a handle (session-…/…), as the model sees it.

    \b
    overspill artifacts list
    overspill artifacts show out_3f7k9q --lines 1-40
    overspill artifacts export out_3f7k9q report.json
    """


@artifacts.command("list")
@output.json_options()
@settings_options
def list_(as_json: bool, as_lines: bool, **options: Any) -> None:
    """List stored outputs, oldest first."""
    settings = load_settings(**options).settings
    items = stores.open_archive(settings).items()
    if as_json or as_lines:
        output.print_records(map(_describe, items), as_lines=as_lines)
    elif not items:
        click.echo("No stored outputs.")
    else:
        rows = [
            [kept.artifact_id, kept.name, format_size(kept.size.bytes), f"{kept.size.lines:,}", kept.source, kept.server,
             output.format_time(kept.created_ms), "live" if label.live else "closed"]
            for kept, label in ((item.kept, item.label) for item in items)
        ]  # fmt: skip
        columns = ("ID", "Name", "Size", "Lines", "Source", "Server", "Stored", "Session")
        # A terminal does not have room for both the ID and the name, so it gets the one that messages show.
        id = settings.wording.id_column
        unseen = "Name" if id == "ID" else "ID"
        tables.print_table("Session Artifacts", columns, rows, numbers=("Size", "Lines"), id=id, unseen=unseen)


@artifacts.command()
@click.argument("id", shell_complete=stores.complete_outputs)
@click.option("--lines", metavar="A-B", help="Print only lines A to B, counted from 1, both included.")
@click.option("--bytes", "bytes_", metavar="A-B", help="Print only bytes A to B, counted from 0, both included.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the text, or base64 if it is not text, and its position.")
@settings_options
def show(id: str, lines: str | None, bytes_: str | None, as_json: bool, **options: Any) -> None:
    """Print a stored output, or part of it.

    On a terminal, control characters are shown as escapes. A pipe or a file gets the exact bytes.
    """
    if lines is not None and bytes_ is not None:
        raise click.UsageError("Use --lines or --bytes, not both.")
    with stores.archive(**options).open(id) as stored:
        start, end = _find_span(stored, lines, bytes_)
        if as_json:
            data, is_binary = stored.reader.read(start, end), stored.kept.media == "binary"
            part = {"base64": base64.b64encode(data).decode()} if is_binary else {"text": encoding.clean(encoding.decode(data))}
            position = {"start_byte": start, "end_byte": end, "total_bytes": stored.reader.size}
            output.print_json({"artifact_id": stored.kept.artifact_id, **position, **part})
        elif on_terminal():
            if stored.kept.media == "binary":
                raise BadRequest(f"{id} is not text. Save it with `{output.program()} artifacts export {id} FILE`.")
            rest = b""
            for block in read_blocks(stored.reader, start, end):
                whole = encoding.complete_length(rest + block)
                click.echo(escape_invisible(encoding.decode((rest + block)[:whole])), nl=False)
                rest = (rest + block)[whole:]
            click.echo(escape_invisible(encoding.decode(rest)))
        else:
            _write_bytes(stored, start, end)


@artifacts.command()
@click.argument("id", shell_complete=stores.complete_outputs)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options
def info(id: str, as_json: bool, **options: Any) -> None:
    """Show a stored output's details."""
    item = stores.archive(**options).find(id)
    if as_json:
        output.print_json(_describe(item))
        return
    kept, label = item.kept, item.label
    facts = [
        ("Name", kept.name),
        ("Handle", kept.handle),
        ("Source", f"{kept.source} (server {kept.server})" if kept.server else kept.source),
        ("Reason", kept.reason),
        ("Size", f"{kept.size.bytes:,} bytes, {kept.size.chars:,} characters, {kept.size.lines:,} lines"),
        ("Tokens", f"{'~' if kept.size.estimated else ''}{kept.size.tokens:,}"),
        ("Content", kept.media),
        ("SHA-256", kept.sha256),
        ("Stored", output.format_time(kept.created_ms)),
        ("Session", f"{label.name or label.session}, {'live' if label.live else 'closed'}, retention {label.retention}"),
    ]
    tables.print_facts(kept.artifact_id, [*facts, *([("Incomplete", kept.missing)] if kept.missing else [])])


@artifacts.command(short_help="Copy a stored output to a file.")
@click.argument("id", shell_complete=stores.complete_outputs)
@click.argument("file", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options
def export(id: str, file: Path, force: bool, as_json: bool, **options: Any) -> None:
    """Copy the exact bytes of a stored output to FILE (- for standard output)."""
    with stores.archive(**options).open(id) as stored:
        if str(file) == "-":
            _write_bytes(stored, 0, stored.reader.size)
            return
        try:
            _copy(stored, file, force=force)
        except FileExistsError:
            raise StoreError(f"{file} already exists. Choose another name, or overwrite it with --force.") from None
        except OSError as error:
            raise StoreError(f"Could not write {file}: {error.strerror}.") from None
        if as_json:
            output.print_json({"artifact_id": stored.kept.artifact_id, "file": str(file), "bytes": stored.reader.size})
        else:
            inform(f"Wrote {stored.reader.size:,} bytes to {file}.")


@artifacts.command()
@click.option("--force", is_flag=True, help="Do not ask for confirmation.")
@click.option("--live", is_flag=True, help="Also remove outputs of live sessions.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@settings_options
def clean(force: bool, live: bool, as_json: bool, **options: Any) -> None:
    """Remove the stored outputs of closed sessions.

    This covers all programs and every store that overspill artifacts list reads: storeDir in your settings (by default the
    temporary directory), the proxy's store in ~/.local/state/overspill, and .overspill/artifacts in the working directory.
    The command asks for confirmation, unless there is nothing to remove or you use --force.
    """
    archive = stores.archive(**options)
    found = archive.items()
    selected = [item for item in found if live or not item.label.live]
    size = sum(item.kept.size.bytes for item in selected)
    what = f"{count_noun(len(selected), 'stored output')} ({format_size(size)})"
    if selected and not force:
        if not (sys.stdin and sys.stdin.isatty()):
            raise BadRequest(f"This would remove {what}, and there is no terminal to confirm it on. Use --force.")
        if not click.confirm(f"Remove {what}?", err=True):
            inform("Nothing removed.")
            return
    sessions = archive.remove(live=live)
    if as_json:
        output.print_json({"removed": len(selected), "bytes": size, "sessions": sessions})
    else:
        kept = count_noun(len(found) - len(selected), "output")
        spared = f" --live also removes the {kept} of live sessions." if len(found) > len(selected) else ""
        click.echo(f"Removed {what}." if selected else f"Nothing to remove.{spared}")


def _find_span(stored: StoredOutput, lines: str | None, bytes_: str | None) -> tuple[int, int]:
    given = lines if lines is not None else bytes_
    if given is None:
        return 0, stored.reader.size
    option, unit = ("--lines", "line") if lines is not None else ("--bytes", "byte")
    first, last = parse_range(option, given)
    total, counted_from = (stored.view.lines, 1) if lines is not None else (stored.reader.size, 0)
    if last < first:
        raise BadRequest(f"{option} {given}: the first {unit} is after the last.")
    if not counted_from <= first < total + counted_from:
        raise BadRequest(f"{option} {given}: the output has {total:,} {unit}s, counted from {counted_from}.")
    return stored.view.line_span(first, last) if lines is not None else (first, min(last + 1, total))


def _write_bytes(stored: StoredOutput, start: int, end: int) -> None:
    sys.stdout.buffer.writelines(read_blocks(stored.reader, start, end))
    sys.stdout.buffer.flush()


def _copy(stored: StoredOutput, file: Path, *, force: bool) -> None:
    """Copy an output to a file that only you can read. If copying fails, the file is removed, unless it existed before."""
    fd = os.open(file, os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if force else os.O_EXCL), 0o600)
    try:
        with open(fd, "wb") as target:
            target.writelines(read_blocks(stored.reader))
    except BaseException:
        if not force:
            file.unlink(missing_ok=True)
        raise


def _describe(item: ArchivedOutput) -> dict[str, Any]:
    kept, size, label = item.kept, item.kept.size, item.label
    names = ("artifact_id", "name", "handle", "tool", "server", "source", "reason", "media")
    sizes = {"bytes": size.bytes, "chars": size.chars, "lines": size.lines, "tokens": size.tokens}
    return {
        **{name: getattr(kept, name) for name in names},
        **sizes,
        "tokens_estimated": size.estimated,
        "sha256": kept.sha256,
        "stored_at": output.format_iso(kept.created_ms),
        "missing": kept.missing,
        "session_name": label.name,
        "retention": label.retention,
        "live": label.live,
    }


@click.command()
@click.argument("id", required=False, shell_complete=stores.complete_outputs)
@output.json_options()
@settings_options
def verify(id: str | None, as_json: bool, as_lines: bool, **options: Any) -> None:
    """Check stored outputs against the SHA-256 checksums recorded when they were stored.

    With ID, only that output is checked. If a query or a program made an output, that is shown too, with the outputs that it
    read, the tools that it called, and their checksums then. The exit code is 1 if an output has changed.
    """
    archive = stores.archive(**options)
    checks = list(archive.verify([archive.find(id)] if id else archive.items()))
    changed = [check for check in checks if not check.sound]
    if as_json or as_lines:
        described = (
            {"artifact_id": check.kept.artifact_id, "sound": check.sound, "problem": check.problem}
            | ({"redacted": check.redacted} if check.redacted else {})
            | ({} if check.kept.lineage is None else {"lineage": to_builtins(check.kept.lineage)})
            for check in checks
        )
        output.print_records(described, as_lines=as_lines)
    else:
        if changed:
            tables.print_table(
                "Changed outputs", ("ID", "Problem"), [[check.kept.artifact_id, check.problem] for check in changed]
            )
        for check in checks:
            if (made := check.kept.lineage) is not None:
                click.echo(escape_invisible(_describe_lineage(check.kept.artifact_id, made)))
            if check.redacted:
                click.echo(f"{check.kept.artifact_id}: {count_noun(check.redacted, 'quoted passage')} redacted, not compared.")
        click.echo(f"{len(checks):,} checked, {len(changed):,} changed.")
    sys.exit(1 if changed else 0)


def _describe_lineage(id: str, made: Lineage) -> str:
    is_program = made.language == "python"
    written = "".join(f"\n    {line}" for line in made.query.splitlines()) if is_program else " " + " ".join(made.query.split())
    sources = [f"from {each.name}: {each.handle}, SHA-256 {each.sha256}" for each in made.sources]
    calls = [
        f"called {f'{each.server}/' if each.server else ''}{each.tool}: {each.handle or 'not stored'}, SHA-256 {each.sha256}"
        for each in made.calls
    ]
    return "\n  ".join([f"{id} was made by:{written}", *sources, *calls])
