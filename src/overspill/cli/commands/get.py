"""`overspill get`: read a stored output, a bounded part at a time."""

from __future__ import annotations

import os
import sys
from typing import Any

import anyio
import click
from msgspec import to_builtins

from overspill.cli import stores
from overspill.cli.extractions import has_answer, highlight_pattern, print_extraction, print_parts
from overspill.cli.output import json_options, print_json, print_records
from overspill.cli.settings import endpoints, load_settings, settings_options
from overspill.cli.terminal import has_color
from overspill.reading import Bound
from overspill.record.ledger import Ledger
from overspill.redaction.policy import Redaction
from overspill.retrieval.extractor import ExtractionRequest, Extractor
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.pages import Page
from overspill.settings import Settings
from overspill.shell.reading import OutputFinder, PartRequest, read_part
from overspill.text.humanize import escape_invisible
from overspill.types import Extraction

_UNLIMITED_BYTES = 1 << 40
_BYTES_PER_TOKEN = 4


@click.command()
@click.argument("name", shell_complete=stores.complete_outputs)
@click.option("--ask", metavar="WHAT", help="Print the parts that answer this, as `overspill extract` does.")
@click.option("--grep", metavar="PATTERN", help="Print the lines that match an RE2 regular expression.")
@click.option("--context", "-C", type=click.IntRange(0), default=0, metavar="N", help="With --grep: lines around each match.")
@click.option("--ignore-case", "-i", is_flag=True, help="With --grep: match any case.")
@click.option("--lines", metavar="A-B", help="Print lines A to B, counted from 1, both included.")
@click.option("--bytes", metavar="A-B", help="Print bytes A to B, counted from 0, both included.")
@click.option("--query", metavar="EXPRESSION", help="Print what a JSON pointer or a JMESPath expression finds.")
@click.option(
    "--from", "start", type=click.IntRange(0), default=0, metavar="N", help="With --grep and --query: where to continue."
)
@click.option("--wait", type=click.FloatRange(0), metavar="SECONDS", help="First wait this long for a command that still runs.")
@json_options("Print JSON: the text, and where it is or how to print the rest, in `notes`.")
@settings_options
def get(name: str, ask: str | None, wait: float | None, as_json: bool, as_lines: bool, **options: Any) -> None:
    """Print part of the stored output NAME: its beginning, or what you ask for.

    \b
    overspill get out_3f7k9q --ask "the first error and its stack trace"
    overspill get out_3f7k9q --grep "ERROR|WARN" -C 2
    overspill get out_3f7k9q --query "items[?status=='failed'].id"

    NAME is a name (out_…), an artifact id (art_…) or a handle (session-…/…). If the answer exceeds answerMaxBytes, the last line
    says how to print the rest. To print everything: overspill artifacts show NAME.

    The exit code is 1 if nothing was found or seems to answer.
    """
    settings = load_settings(*(options.pop(key) for key in ("preset", "config", "assignments")), lasting="get").settings
    wanted = _read_wanted(ask, **options)
    finder = OutputFinder(stores.open_archive(settings, Redaction(settings, os.environ)))
    bound = Bound(settings.answer_max_bytes or _UNLIMITED_BYTES, settings.answer_max_chars)
    if wait:
        finder.wait(name, wait)
    with finder.open(name) as (stored, note):
        id, notes = stored.shown_id, [note] if note else []
        if ask is None:
            answer, is_found = read_part(stored, wanted, bound)
            data = answer.text if answer.data is None else answer.data
            described = {"found": is_found, "text": data, "notes": [*answer.notes, *notes]}
        else:
            answer = _ask(stored, ask, settings)
            is_found, described = has_answer(answer), {**to_builtins(answer), "notes": notes}
        if as_lines:
            print_records([{"id": id, **described}], as_lines=True)
        elif as_json:
            print_json({"id": id, **described})
        else:
            _print(answer, id, wanted, ask or "", settings)
            print_parts(*notes)
    sys.exit(0 if is_found else 1)


def _print(answer: Page | Extraction, id: str, wanted: PartRequest, what: str, settings: Settings) -> None:
    if isinstance(answer, Extraction):
        print_extraction(answer, id, _count_tokens(settings), what)
    elif wanted.grep is None or not has_color():
        print_parts(answer.text)
    else:
        shown = highlight_pattern(escape_invisible(answer.text), wanted.grep, ignore_case=wanted.ignore_case)
        print_parts(shown, is_safe=True)


def _read_wanted(ask: str | None, **options: Any) -> PartRequest:
    wanted = PartRequest(**options)
    given = {"ask": ask, **options}
    ways = [f"--{name}" for name in ("ask", "grep", "lines", "bytes", "query") if given[name] is not None]
    if len(ways) > 1:
        raise click.UsageError(f"Use one of {' and '.join(ways)}.")
    if wanted.grep is None and (wanted.context or wanted.ignore_case):
        raise click.UsageError("--context and --ignore-case work only with --grep.")
    if wanted.start and wanted.grep is None and wanted.query is None:
        raise click.UsageError("--from works only with --grep and --query.")
    return wanted


def _ask(stored: StoredOutput, what: str, settings: Settings) -> Extraction:
    request = ExtractionRequest(tool="extract", query=what, max_tokens=_count_tokens(settings))
    extractor = Extractor(settings, Ledger(stored.kept.session, lambda _: None), {}, endpoints(settings, os.environ))
    return anyio.run(extractor.extract, stored, "{}", request)


def _count_tokens(settings: Settings) -> int:
    most = settings.answer_max_bytes or _UNLIMITED_BYTES
    return min(most, settings.answer_max_chars or most) // _BYTES_PER_TOKEN
