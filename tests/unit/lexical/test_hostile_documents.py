"""Whatever is read takes linear time, however it is written: stored outputs, questions, reports, agents' and clients' files."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest
from hostile import DOCUMENTS, Document, run
from linear import is_linear
from readers import BytesReader

from overspill.agent.file import read_agent_file
from overspill.errors import BadRequest, OverspillError
from overspill.extraction import report, wrapper
from overspill.extraction.provenance import ModelQuote, locate
from overspill.lexical.index import build
from overspill.lexical.kinds import KINDS
from overspill.lexical.select import select
from overspill.mcp.client.framing import BadLine, error_reply
from overspill.models.protocol import Response
from overspill.models.written import find_written_calls
from overspill.reading import Bound, grep
from overspill.reading.positions import View
from overspill.reading.query import query
from overspill.reading.query.document import documents, outline_levels
from overspill.settings.files import parse_yaml
from overspill.tables.lines import find_tables
from overspill.text import jsonc, lenient_json, names
from overspill.truncate import truncate

pytestmark = [pytest.mark.slow, pytest.mark.no_cover]  # a minute of processor time

SIZE = 20_000
QUICK = 2.0
"""Processor seconds for four times SIZE characters. The quadratic cases took ten and more."""
HOPELESS = 15.0
QUESTIONS = ("why did alpha fail?", "which alpha has the largest size and is not failed?", "list all with the same name as beta")
ROOMY = Bound(12_288)
NONCE = "0123456789ab"

every_document = pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)


def stored(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape" if "\udc80" in text[:1] else "surrogatepass")


def is_read_in_linear_time(read: Callable[[str], object], document: Document, size: int = SIZE) -> bool:
    def work(size: int) -> Callable[[], None]:
        return partial(_read, read, document(size))

    return is_linear(work, size, quick=QUICK, hopeless=HOPELESS)


def _read(read: Callable[[str], object], text: str) -> None:
    with suppress(OverspillError, ValueError, RecursionError):  # refused is read too
        read(text)


def ask_engine(text: str) -> None:
    index = build(stored(text))
    for question in QUESTIONS:
        select(index, question)


def ask_query(text: str) -> None:
    for largest in (1 << 30, 1):
        for expression in ("/items/0/name", "items[*].name"):
            with suppress(OverspillError):
                query(BytesReader(stored(text)), expression, ROOMY, largest=largest)


def list_tables(text: str) -> None:
    list(find_tables(data := stored(text), 0, len(data)))


def search(text: str) -> None:
    reader = BytesReader(stored(text))
    for pattern in ("failed", "(a|b|ab)*c", "(?i)ALPHA.*x$"):
        grep(reader, View(reader), pattern, ROOMY)


def quote(text: str) -> None:
    lines = text.splitlines()[:50]
    locate(
        BytesReader(stored(text)),
        [*map(ModelQuote, filter(None, lines)), ModelQuote(text[:3000]), ModelQuote(text[5:60].swapcase() or "x")],
    )


def ask_shortener(text: str) -> None:
    for strategy in ("element", "line", "head_tail", "tail"):
        truncate(text, 2_000, strategy)


def sketch(text: str) -> None:
    with suppress(BadRequest, RecursionError):
        min(outline_levels(documents(text)), key=len, default="")


def report_on(text: str) -> None:
    rest = text.removeprefix("alpha")
    wrapped = f"{wrapper.opening_tag(NONCE)}\n{text}\n{wrapper.closing_tag(NONCE)}"
    for answer in (text, wrapped, f"<think>{text}</think>{wrapped}", f"QUOTES{rest}x", f"CONFIDENCE: 5{rest}x"):
        report.parse(wrapper.unwrap(answer, NONCE) or answer)


def call_tools(text: str) -> None:
    for written in (text, f"<tool_call>{text}", f"```json\n{text}\n```", f"[TOOL_CALLS]{text}"):
        find_written_calls(Response(text=written), {"Grep"})


def receive(text: str) -> None:
    line = stored(text)
    error_reply(BadLine("too long", b'{"jsonrpc": "2.0", ' + line, line))
    lenient_json.loads(line)


@every_document
def test_the_engine_reads_a_document_in_linear_time(document: Document):
    assert is_read_in_linear_time(ask_engine, document)


@every_document
@pytest.mark.parametrize("read", [ask_query, list_tables, search, quote, ask_shortener, sketch])
def test_a_stored_output_is_read_in_linear_time(read: Callable[[str], object], document: Document):
    assert is_read_in_linear_time(read, document)


@every_document
@pytest.mark.parametrize("read", [report_on, call_tools, receive])
def test_what_models_and_servers_say_is_read_in_linear_time(read: Callable[[str], object], document: Document):
    assert is_read_in_linear_time(read, document)


@every_document
def test_files_of_others_are_read_in_linear_time(document: Document, tmp_path: Path):
    def read(text: str) -> None:
        file = tmp_path / "agent.ai"
        file.write_bytes(stored(f"---\ndescription: {text[:2000]}\n---\n{text}"))
        for one in (lambda: jsonc.scan(text, "f"), lambda: parse_yaml(text, "f"), lambda: read_agent_file(file)):
            with suppress(OverspillError):
                one()

    assert is_read_in_linear_time(read, document, SIZE // 4)


@every_document
def test_a_question_is_read_in_linear_time(document: Document):
    index = build(b"alpha failed\nbeta did not\n" * 100)
    assert is_read_in_linear_time(lambda text: select(index, text), document)


@every_document
def test_names_are_read_in_linear_time(document: Document):
    assert is_read_in_linear_time(lambda text: names.own_name(names.qualify_name(text, "alpha"), text), document)


@pytest.mark.parametrize("words", [700, 100_000])
def test_of_a_very_long_question_the_first_words_are_looked_for_and_the_answer_says_so(words: int):
    index = build(b"alpha failed\n" + b"beta did not\n" * 100)
    question = "why did alpha fail? " + " ".join(f"w{number}x" for number in range(words))
    answer = select(index, question)
    assert "alpha failed" in answer.text
    assert "the question is too long: not all of its words were looked for" in answer.text
    assert "too long" not in select(index, "why did alpha fail?").text


def test_a_word_too_long_to_look_for_is_said_to_be_left_out_also_when_nothing_is_found():
    said = select(build(b"beta did not\n" * 100), "z" * 5_000).text
    assert said.startswith("Nothing found for: zzz")
    assert "not all of its words were looked for" in said


def test_wrappers_inside_each_other_are_taken_off_in_linear_time():
    def nested(size: int) -> str:
        depth = size // 70
        return wrapper.opening_tag(NONCE) * depth + " … " + wrapper.closing_tag(NONCE) * depth

    assert is_read_in_linear_time(lambda text: wrapper.unwrap(text, NONCE), nested, 200_000)


def test_the_documents_are_of_every_kind():
    kinds = {build(stored(document(SIZE))).kind for document in DOCUMENTS.values()}
    assert kinds == {kind.name for kind in KINDS}


def test_a_million_short_lines_are_read():
    index = build(run("a\n", 2_000_000, end="alpha failed\n").encode())
    assert "alpha failed" in select(index, "alpha").text
