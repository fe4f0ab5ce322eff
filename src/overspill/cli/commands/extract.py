"""`overspill extract`: the parts of files or of a stream that answer a question."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, get_args

import click
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from overspill.cli import output
from overspill.cli.extractions import has_answer, print_extraction, print_parts
from overspill.cli.settings import endpoints, load_settings, settings_options
from overspill.cli.signals import read_stream, run_until_done
from overspill.cli.terminal import has_color, inform, is_quiet, report_error, warn, watched_on_terminal
from overspill.errors import BadRequest, NotText, SettingsError
from overspill.extraction import BUILTIN
from overspill.models.endpoints import Endpoint
from overspill.models.opening import open_model
from overspill.retrieval.definitions import ExtractMode
from overspill.session.oneshot import Ask, open_extraction
from overspill.settings import Settings
from overspill.text import tokens
from overspill.text.humanize import count_noun, format_size
from overspill.types import Extraction

Opening: TypeAlias = Callable[[], AbstractAsyncContextManager[Ask]]
Found = TypeVar("Found")
Answers: TypeAlias = list[tuple[str, Extraction]]
"""What was extracted from each file, with the file's name."""
_MIN_TOKENS_OF_A_FILE = 300
_MAX_SHARES = 4
_MAX_LISTED = 5
_MAX_FILES = 10_000
MAX_COPIED_BYTES = 16 << 20
"""The most bytes of files to search in one session, which keeps its copies until it ends."""


@click.command()
@click.argument("what")
@click.argument("files", nargs=-1, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--mode", type=click.Choice(get_args(ExtractMode)), default="auto", show_default=True, help="How to extract.")
@click.option(
    "--model", "models", multiple=True, metavar="PROVIDER/MODEL", help="Ask this model. Repeat to name others to try next."
)
@click.option(
    "--max-tokens", type=click.IntRange(1), default=2000, metavar="N", show_default=True, help="The longest answer, in tokens."
)
@output.json_options("Print JSON: the answer, and its excerpts with their positions.")
@settings_options
def extract(
    what: str,
    files: tuple[Path, ...],
    mode: ExtractMode,
    models: tuple[str, ...],
    max_tokens: int,
    as_json: bool,
    as_lines: bool,
    **options: Any,
) -> None:
    """Print the parts of FILES (or standard input) that answer WHAT, word for word.

    \b
    kubectl logs web-0 | overspill extract "every failed request with its id"
    overspill extract "the integrity hash of version 1.3.0" registry.json --json
    overspill extract "where the retry limit is set" src docs
    overspill extract "how to undo a release (roll back, revert)" docs

    A file may be compressed (gzip, bzip2, xz, Zstandard), in an encoding other than UTF-8, or a PDF. In a folder, every file that
    is not hidden is searched. If you give several files, the best answers come first, and all files share --max-tokens.

    Without a model, the built-in engine answers, with no API key and no network. The exit code is 1 if nothing seems to
    answer, and 2 if a file that you named could not be read as text.
    """
    settings = load_settings(**options).settings
    available = endpoints(settings, os.environ, models)
    asked, problem = _choose_models(models, settings, available)
    opening = partial(open_extraction, what, mode=mode, models=asked, settings=settings, endpoints=available, secrets=os.environ)
    one, failed = files[0] if files else Path("-"), list[Path]()
    is_many = len(files) > 1 or one.is_dir()
    answers = _ask_many(files, opening, max_tokens, failed) if is_many else _ask_one(one, opening, max_tokens)
    if problem:
        answers = [
            (name, replace(found, warnings=(problem, *found.warnings)) if found.model == BUILTIN else found)
            for name, found in answers
        ]
    _print(answers, what, max_tokens, is_many=is_many, as_json=as_json, as_lines=as_lines)
    sys.exit(2 if failed else 0 if any(has_answer(found) for _, found in answers) else 1)


def _choose_models(models: Sequence[str], settings: Settings, available: Mapping[str, Endpoint]) -> tuple[Sequence[str], str]:
    """Return the models to use, and a remark. If no model works, choose the built-in engine, and say why in the remark."""
    named = models or settings.tool_output.models or tuple(filter(None, [settings.extraction_model]))
    problems: list[str] = []
    for target in named:
        try:
            open_model(target, available, {})
        except SettingsError as problem:
            problems.append(str(problem))
    if BUILTIN in named or not problems or len(problems) < len(named) or "builtin" not in settings.extraction_fallback:
        return models, ""
    return [BUILTIN], f"{' '.join(problems)} The built-in engine answered instead."


def _ask_one(file: Path, opening: Opening, max_tokens: int) -> Answers:
    is_stream = str(file) == "-"
    stream = read_stream(output.standard_input()) if is_stream else None
    size = 0 if is_stream or not file.is_file() else file.stat().st_size

    async def search(bar: ChunkBar | None) -> Extraction:
        watching = {"note_read": bar.read} if bar and size else {}
        async with opening() as ask:
            return await ask(stream or file, max_tokens=max_tokens, progress=bar, **watching)

    return [("standard input" if is_stream else str(file), _run(search, size))]


def _ask_many(given: Sequence[Path], opening: Opening, max_tokens: int, failed: list[Path]) -> Answers:
    """Ask all files, and return the best answers first. Skips files in folders that do not contain text."""
    if any(str(path) == "-" for path in given):
        raise BadRequest("Standard input cannot be searched together with files. Leave out `-`.")
    files = list_files(given)
    share = min(max_tokens, max(_MIN_TOKENS_OF_A_FILE, max_tokens // min(len(files) or 1, _MAX_SHARES)))

    async def search(bar: ChunkBar | None) -> Answers:
        answers, done = Answers(), 0
        for batch in split_files(files):
            async with opening() as ask:
                for file in batch:
                    watching = {"note_read": partial(bar.read, before=done)} if bar else {}
                    done += file.size
                    try:
                        answers.append((str(file.path), await ask(file.path, max_tokens=share, **watching)))
                    except (BadRequest, NotText) as problem:
                        if file.is_named:
                            report_error(str(problem))
                            failed.append(file.path)
        return answers

    answers = _run(search, sum(file.size for file in files))
    found = sorted((each for each in answers if each[1].found), key=lambda each: -each[1].confidence)
    best = [each for each in found if not each[1].is_nearest] or found[:1]
    if not best and not failed:
        inform(f"No match in {count_noun(len(answers), 'file')}. Try words that appear in them, or ask a model with --model.")
    return best


def _run(search: Callable[[ChunkBar | None], Awaitable[Found]], size: int) -> Found:
    async def run() -> Found:
        with ChunkBar(size) if watched_on_terminal() and not is_quiet() else nullcontext() as bar:
            return await search(bar)

    # A signal leaves nothing open. A thread that is still searching cannot be interrupted, and Python would wait for it.
    return run_until_done(run, os._exit)


class ChunkBar:
    """On a terminal, counts the bytes read, then the chunks that a model has read. `total` is 0 if it is not known."""

    def __init__(self, total: int) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # Rich takes long to import

        from overspill.cli.tables import progress_console

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

    def read(self, done: int, before: int = 0) -> None:
        """Report the bytes read so far: `done` of this file and `before` of earlier ones."""
        done += before
        shown = f"{format_size(done)} of {format_size(self._total)}" if self._total else format_size(done)
        self._bar.update(self._task, completed=done, total=self._total or None, description=shown)


def _print(answers: Answers, what: str, max_tokens: int, *, is_many: bool, as_json: bool, as_lines: bool) -> None:
    if as_json or as_lines:
        records = [{"file": name, **to_builtins(found)} for name, found in answers]
        output.print_records(records, as_lines=as_lines) if as_lines or is_many else output.print_json(records[0])
        return
    left = max_tokens
    for place, (name, found) in enumerate(answers):
        if is_many:
            size = tokens.count(found.text).tokens
            if place and size > left:
                names = ", ".join(name for name, _ in answers[place : place + _MAX_LISTED])
                rest = len(answers) - place
                more = f" and {rest - _MAX_LISTED:,} more" if rest > _MAX_LISTED else ""
                inform(f"{count_noun(rest, 'more file')} with matches did not fit: {names}{more}. Raise --max-tokens.")
                return
            left -= size
            print_parts(("\n" if place else "") + (f"\x1b[35m{name}\x1b[0m" if has_color() else name), is_safe=has_color())
        elif found.warnings:
            name = f"the part of {name} that was searched"
        print_extraction(found, name, max_tokens, what)


class SearchedFile(Struct, frozen=True):
    """`is_named`: you named the file, and not only a folder that it is in."""

    path: Path
    size: int
    is_named: bool


def list_files(given: Sequence[Path]) -> list[SearchedFile]:
    """List files in order and without repetition. In folders, skips hidden files, links and everything but regular files."""
    found: dict[Path, SearchedFile] = {}
    for path in given:
        try:
            if path.is_dir():
                for file in islice(_walk(path), _MAX_FILES + 1):
                    found.setdefault(file.path, file)
            else:
                found[path] = SearchedFile(path, path.stat().st_size, is_named=True)
        except OSError:
            found[path] = SearchedFile(path, 0, is_named=True)  # the error appears when the file is read
        if len(found) > _MAX_FILES:
            raise BadRequest(f"{path} has more than {_MAX_FILES:,} files. Name fewer, or a folder in it.")
    return list(found.values())


def _walk(folder: Path) -> Iterator[SearchedFile]:
    def report(problem: OSError) -> None:
        if problem.filename == str(folder):
            raise problem
        warn(f"{problem.filename}: {problem.strerror}.")

    for parent, folders, names in os.walk(folder, onerror=report):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for path in (Path(parent, name) for name in sorted(names) if not name.startswith(".")):
            status = path.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_size:
                yield SearchedFile(path, status.st_size, is_named=False)


def split_files(files: Sequence[SearchedFile]) -> Iterator[list[SearchedFile]]:
    """Split files into batches. All copies of one batch are on disk at the same time."""
    batch, size = list[SearchedFile](), 0
    for file in files:
        if batch and size + file.size > MAX_COPIED_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch
