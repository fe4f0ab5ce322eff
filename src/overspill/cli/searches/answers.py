"""Ask one file, or many, and print what each answers."""

from __future__ import annotations

import os
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import anyio
from msgspec import Struct, to_builtins
from msgspec.structs import replace

from overspill.cli import output
from overspill.cli.searches.extractions import print_extraction, print_parts
from overspill.cli.searches.highlighting import head
from overspill.cli.searches.searching import SearchedFile, WatchedFile, list_files, split_files
from overspill.cli.signals import Interrupted, cancel_on_signal
from overspill.cli.stderr import inform, is_quiet, report_error
from overspill.cli.streams import read_stream
from overspill.cli.terminal import has_color, watched_on_terminal
from overspill.errors import BadRequest, NotText
from overspill.extraction import BUILTIN
from overspill.session.oneshot import Ask
from overspill.text import tokens
from overspill.text.humanize import count_noun
from overspill.types import Extraction

Opening: TypeAlias = Callable[[], AbstractAsyncContextManager[Ask]]
_MIN_TOKENS_OF_A_FILE = 300
_MAX_SHARES = 4
_MAX_LISTED = 5


class Answer(Struct, frozen=True):
    name: str
    found: Extraction


class Searched(Struct, frozen=True):
    """`is_many`: whether answers are told apart by the names of their files. `is_incomplete`: a named file could not be read."""

    answers: list[Answer]
    is_many: bool = False
    is_incomplete: bool = False


def asked_of_one(file: Path, opening: Opening, max_tokens: int) -> Searched:
    is_stream = str(file) == "-"
    stream = read_stream(output.standard_input()) if is_stream else None
    size = 0 if is_stream or not file.is_file() else file.stat().st_size

    async def run(bar: Any) -> Extraction:
        async with opening() as ask:
            if stream is not None or bar is None or not size:
                return await ask(stream if stream is not None else file, max_tokens=max_tokens, progress=bar)
            return await _ask_watched(file, partial(ask, max_tokens=max_tokens, progress=bar), partial(bar.read, 0))

    return Searched([Answer("standard input" if is_stream else str(file), _run(run, size))])


def asked_of_many(given: Sequence[Path], opening: Opening, max_tokens: int) -> Searched:
    """Best first. Files in folders that are no text are left out."""
    if any(str(path) == "-" for path in given):
        raise BadRequest("Standard input cannot be searched together with files. Leave out `-`.")
    files = list_files(given)
    share = max(_MIN_TOKENS_OF_A_FILE, max_tokens // min(len(files) or 1, _MAX_SHARES))
    failed: list[str] = []

    async def search(bar: Any) -> list[Answer]:
        answers: list[Answer] = []
        done = 0
        for batch in split_files(files):
            async with opening() as ask:
                for file in batch:
                    told = partial(bar.read, done) if bar else None
                    found = await _search(file, partial(ask, max_tokens=min(share, max_tokens)), told, failed)
                    done += file.size
                    if found is not None:
                        answers.append(Answer(str(file.path), found))
        return answers

    answers = _run(search, sum(file.size for file in files))
    found = sorted((each for each in answers if each.found.found), key=lambda each: -each.found.confidence)
    best = [each for each in found if not each.found.is_nearest] or found[:1]
    if not best and not failed:
        inform(f"No match in {count_noun(len(answers), 'file')}. Try words that appear in them, or ask a model with --model.")
    return Searched(best, is_many=True, is_incomplete=bool(failed))


def add_warning(searched: Searched, problem: str) -> Searched:
    """To every answer of the built-in engine."""
    if not problem:
        return searched
    added = [
        Answer(each.name, replace(each.found, warnings=(problem, *each.found.warnings))) if each.found.model == BUILTIN else each
        for each in searched.answers
    ]
    return replace(searched, answers=added)


def describe(answer: Answer) -> dict[str, Any]:
    return {"file": answer.name, **to_builtins(answer.found)}


def print_answers(searched: Searched, words: Sequence[str], max_tokens: int) -> None:
    if not searched.is_many:
        (answer,) = searched.answers
        name = f"the part of {answer.name} that was searched" if answer.found.warnings else answer.name
        print_extraction(answer.found, name, max_tokens, words)
        return
    left = max_tokens
    for place, answer in enumerate(searched.answers):
        size = tokens.count(answer.found.text).tokens
        if place and size > left:
            _tell_rest(searched.answers[place:])
            return
        left -= size
        print_parts(("\n" if place else "") + (head(answer.name) if has_color() else answer.name), is_safe=has_color())
        print_extraction(answer.found, answer.name, max_tokens, words)


def _tell_rest(rest: Sequence[Answer]) -> None:
    names = ", ".join(each.name for each in rest[:_MAX_LISTED])
    more = f" and {len(rest) - _MAX_LISTED:,} more" if len(rest) > _MAX_LISTED else ""
    inform(f"{count_noun(len(rest), 'more file')} with matches did not fit: {names}{more}. Raise --max-tokens.")


async def _search(file: SearchedFile, ask: Ask, told: Callable[[int], None] | None, failed: list[str]) -> Extraction | None:
    try:
        return await (_ask_watched(file.path, ask, told) if told else ask(file.path))
    except (BadRequest, NotText) as problem:
        if file.is_named:
            report_error(str(problem))
            failed.append(str(file.path))
        return None


async def _ask_watched(path: Path, ask: Ask, told: Callable[[int], None]) -> Extraction:
    try:
        with path.open("rb") as file:
            return await ask(WatchedFile(file, told))
    except OSError as problem:
        raise BadRequest(f"{path} cannot be read: {problem.strerror}.") from None
    except NotText as error:
        raise NotText(error.what, error.advice, str(path)) from None


def _run(search: Callable[[Any], Coroutine[Any, Any, Any]], size: int) -> Any:
    async def run() -> Any:
        with cancel_on_signal(), _show_progress(size) as bar:
            return await search(bar)

    try:
        return anyio.run(run)
    except Interrupted as ended:
        # Everything is closed and removed by now. A thread that is still searching cannot be interrupted, and Python would
        # wait for it.
        os._exit(ended.code)


def _show_progress(size: int) -> AbstractContextManager[Any]:
    if not watched_on_terminal() or is_quiet():
        return nullcontext()
    from overspill.cli.searches.chunk_bar import ChunkBar  # Rich takes long to import

    return ChunkBar(size)
