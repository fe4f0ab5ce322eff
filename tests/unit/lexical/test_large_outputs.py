"""Outputs too large to cut whole: all of them is searched, and only what a question needs is cut into records.

Most tests lower the memory that an index may take, so that a small text is large.
"""

import json
import random
import threading
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from overspill.lexical.cutting import PART_BYTES
from overspill.lexical.index import Work, build
from overspill.lexical.select import Selection, select

SMALL_MEMORY = 100_000
WORDS = (
    "alpha", "request", "server", "user", "stream", "cache", "index", "worker", "queue", "token", "session", "retry", "limit",
    "order", "shard",
)  # fmt: skip
NEEDLE = "the kestrel flew over zanzibar"
QUESTION = "where did the kestrel fly"


@cache
def words(seed: int, many: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=many))  # noqa: S311


def log(number: int, text: str) -> str:
    return f"2026-03-01T10:{number // 60 % 60:02}:{number % 60:02}Z INFO [worker-{number % 97}] {text} id={number}\n"


def coloured(number: int, text: str) -> str:
    return f"2026-03-01T10:00:{number % 60:02}Z \x1b[32mINFO\x1b[0m \x1b[1m{text}\x1b[0m id={number}\n"


def element(number: int, text: str) -> str:
    return json.dumps({"id": number, "tags": ["a", "b"], "owner": {"mail": f"u{number}@example.org"}, "text": text})


def ndjson(number: int, text: str) -> str:
    return element(number, text) + "\n"


def json_array(number: int, text: str) -> str:
    return ('{"items": [\n' if number == 0 else ",\n") + element(number, text)


def one_line_json(number: int, text: str) -> str:
    return ('{"items": [' if number == 0 else ", ") + element(number, text)


def csv(number: int, text: str) -> str:
    return ("id,name,comment\n" if number == 0 else "") + f"{number},n{number},{text}\n"


def quoted_csv(number: int, text: str) -> str:
    return ("id,name,comment\n" if number == 0 else "") + f'{number},"n, {number}","{text}\nand more"\n'


def code(number: int, text: str) -> str:
    return f"def step_{number}(value):\n    # {text}\n    if value > {number}:\n        return value\n\n\n"


def html(number: int, text: str) -> str:
    opening = "<!doctype html><html><body><h1>Report</h1>" if number == 0 else ""
    return f'{opening}<div class="row"><p id="p{number}">{text}</p><script>var hidden = {number};</script></div>'


def xml(number: int, text: str) -> str:
    return ("<?xml version='1.0'?>\n<list>" if number == 0 else "") + f"<item id='{number}'><text>{text}</text></item>\n"


def prose(number: int, text: str) -> str:
    return f"{text.capitalize()}. {words(number, 30).capitalize()}.\n\n"


def columns(number: int, text: str) -> str:
    return ("ID      NAME      COMMENT\n" if number == 0 else "") + f"{number:<8}n{number:<9}{text.replace(' ', '-')}\n"


def wrapped_log(number: int, text: str) -> str:
    """A log in one string of a JSON document, as tools return it."""
    return ('{"result": "' if number == 0 else "") + json.dumps(log(number, text))[1:-1]


KINDS: dict[str, tuple[str, Callable[[int, str], str]]] = {
    each.__name__: (kind, each)
    for kind, each in (
        ("log", log), ("log", coloured), ("ndjson", ndjson), ("json", json_array), ("json", one_line_json), ("csv", csv),
        ("csv", quoted_csv), ("code", code), ("html", html), ("xml", xml), ("prose", prose), ("columns", columns),
        ("json", wrapped_log),
    )
}  # fmt: skip


def make(write: Callable[[int, str], str], size: int, needle_at: float = 0.9) -> bytes:
    def pieces() -> Iterator[str]:
        done, number, placed = 0, 0, False
        while done < size:
            now = not placed and done >= needle_at * size
            piece = write(number, NEEDLE if now else words(number, 8))
            placed = placed or now
            number += 1
            done += len(piece)
            yield piece

    return "".join(pieces()).encode()


def check_excerpts(data: bytes, selection: Selection) -> None:
    for excerpt in selection.excerpts:
        assert data[excerpt.start_byte : excerpt.end_byte].decode() == excerpt.text
        assert excerpt.start_line == data.count(b"\n", 0, excerpt.start_byte) + 1


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("needle_at", [*(pytest.param(place, marks=pytest.mark.slow) for place in (0.02, 0.5, 0.999)), 0.9])
def test_a_passage_is_found_wherever_it_is(name: str, needle_at: float) -> None:
    kind, write = KINDS[name]
    data = make(write, 600_000, needle_at)
    selection = select(build(data, max_memory=SMALL_MEMORY), QUESTION)
    assert selection.kind == kind
    assert "kestrel" in selection.text
    assert selection.matched == 1
    assert selection.searched_bytes == selection.total_bytes == len(data)
    check_excerpts(data, selection)


@pytest.mark.parametrize("name", KINDS)
def test_what_is_not_there_is_not_found(name: str) -> None:
    data = make(KINDS[name][1], 600_000)
    selection = select(build(data, max_memory=SMALL_MEMORY), "phlogiston")
    assert selection.excerpts == ()
    assert "records" not in selection.text  # they were never counted


def test_a_count_is_exact_as_long_as_all_matches_were_read() -> None:
    few = make(log, 600_000) + b"the kestrel again\n"
    assert "(matched 2 records, all shown" in select(build(few, max_memory=SMALL_MEMORY), QUESTION).text
    many = b"".join(make(log, 40_000) for _ in range(100))
    assert "(matched more than " in select(build(many, max_memory=SMALL_MEMORY), QUESTION).text


def test_a_row_far_from_its_header_is_shown_with_it() -> None:
    text = select(build(make(csv, 600_000), max_memory=SMALL_MEMORY), QUESTION).text
    assert text.startswith("[L1]\nid,name,comment\n")


def test_a_row_is_not_shown_with_the_header_of_another_block() -> None:
    first = make(columns, 100_000, 2.0).decode()
    second = "POD     NODE      AGE\n" + "".join(f"p{number:<7}n{number:<9}3d\n" for number in range(900))
    data = f"{first}\n{second}kestrel n1        3d\n".encode()
    text = select(build(data, max_memory=SMALL_MEMORY), "kestrel").text
    assert "kestrel n1" in text
    assert "COMMENT" not in text


def test_what_a_reader_of_a_page_does_not_see_is_not_shown() -> None:
    script = "<script>" + "var kestrel = 1; " * 20_000 + "</script>"
    data = make(html, 300_000, 2.0) + script.encode() + make(html, 300_000)
    selection = select(build(data, max_memory=SMALL_MEMORY), QUESTION)
    assert NEEDLE in selection.text
    assert "var kestrel" not in selection.text
    assert selection.matched == 1


def test_a_word_in_a_tag_is_no_match() -> None:
    data = make(html, 600_000).replace(b'class="row"', b'class="kestrel"')
    assert "(matched 1 record, all shown" in select(build(data, max_memory=SMALL_MEMORY), QUESTION).text


@pytest.mark.parametrize(
    ("name", "spelt"),
    [
        ("one_line_json", "Gr\\u00f6\\u00dfe"),
        ("html", "Gr&ouml;&szlig;e"),
        ("html", "Gr&#246;&#xdf;e"),
        ("coloured", "\x1b[31mGröße"),
    ],
)
def test_a_letter_may_be_escaped(name: str, spelt: str) -> None:
    data = make(KINDS[name][1], 600_000).replace(b"kestrel", spelt.encode())
    selection = select(build(data, max_memory=SMALL_MEMORY), "Größe")
    assert "Größe" in selection.text
    assert selection.matched == 1


def test_a_failure_far_behind_is_read_with_what_led_to_it() -> None:
    failure = b"cc -c kestrel.c\nkestrel.c:7: error: unknown type name 'wing'\nmake: *** [kestrel.o] Error 1\n"
    data = make(log, 500_000, 2.0) + failure + make(log, 100_000, 2.0)
    selection = select(build(data, max_memory=SMALL_MEMORY), "why did the build fail", max_tokens=300)
    assert "unknown type name 'wing'" in selection.text
    assert selection.confidence >= 0.5


@pytest.mark.slow
def test_an_order_that_was_not_compared_whole_says_so() -> None:
    rows = b"id,name,amount\n" + b"".join(b"%d,n%d,%d\n" % (number, number, number % 1000) for number in range(60_000))
    assert "rows compared" in select(build(rows, max_memory=SMALL_MEMORY), "the highest amount").text
    assert "rows compared" not in select(build(rows), "the highest amount").text


def test_neighbours_across_the_edge_of_a_part_are_neighbours() -> None:
    line = b"2026-03-01T10:00:00Z INFO line %07d of the log\n"
    size = len(line % 0)
    data = b"".join(line % number for number in range(20_000))
    last = 3 * PART_BYTES // size  # the line that the edge of a part cuts
    for number in (last - 1, last, last + 1):
        text = select(build(data, max_memory=SMALL_MEMORY), f"what came after {number:07}", max_tokens=60).text
        assert f"line {number:07}" in text
        assert f"line {number + 1:07}" in text


HOSTILE = {
    "unclosed string": b'{"a": "' + b"\\\\" * 150_000,
    "open arrays": b"[" * 300_000,
    "open objects": b'{"a":' * 60_000,
    "open comments": b"<p>" * 40 + b"<!--" * 75_000,
    "open scripts": b"<p>" * 40 + b"<script " * 40_000,
    "quotation marks": b'"' * 300_000,
    "half colours": b"\x1b[" * 150_000,
    "one word": b"a" * 300_000,
    "no spaces": "漢".encode() * 100_000,
    "all bytes": bytes(range(256)) * 1_200,
    "line ends": b"\n" * 300_000,
    "open cells": b'a,"b\n' * 60_000,
    "open paragraphs": b"<p>" * 100_000,
    "half entities": b"<p>" * 40 + b"&#x" * 100_000,
    "escaped letters": b'{"a": "' + b"\\u00e4" * 50_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_are_searched_to_their_end(name: str) -> None:
    data = HOSTILE[name] + b"\nkestrel "
    selection = select(build(data, max_memory=SMALL_MEMORY), "kestrel äx")
    check_bytes(data, selection)
    assert selection.matched >= 1


def check_bytes(data: bytes, selection: Selection) -> None:
    for excerpt in selection.excerpts:
        assert data[excerpt.start_byte : excerpt.end_byte].decode("utf-8", "replace") == excerpt.text


@pytest.mark.slow
def test_questions_may_be_asked_at_the_same_time() -> None:
    data = make(html, 600_000, 0.9)
    index = build(data, max_memory=SMALL_MEMORY)
    asked = [QUESTION, *(f"p{number} {word}" for number, word in enumerate(WORDS[:6]))]
    alone = [select(build(data, max_memory=SMALL_MEMORY), question).text for question in asked]
    together: dict[int, str] = {}

    def ask(number: int) -> None:
        together[number] = select(index, asked[number]).text

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(len(asked))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [together[number] for number in range(len(asked))] == alone


@pytest.mark.slow
@pytest.mark.parametrize("name", ["log", "one_line_json", "html", "prose"])
def test_a_passage_at_nine_tenths_of_a_hundred_megabytes_is_found(name: str) -> None:
    part = make(KINDS[name][1], 1_000_000, 2.0)
    needle = KINDS[name][1](77, NEEDLE).encode()
    data = part * 90 + needle + part * 10
    selection = select(build(data), QUESTION)
    assert "kestrel" in selection.text
    assert selection.matched == 1
    assert selection.searched_bytes == len(data)


@pytest.mark.parametrize("make", [log, ndjson, json_array, csv, code, html])
def test_with_limited_work_only_the_parts_that_have_the_words_are_cut(make: Callable[[int, str], str]):
    text = "".join(make(number, NEEDLE if number == 4_000 else words(number, 9)) for number in range(5_000)).encode()
    index = build(text)
    found = select(index, QUESTION, work=Work(len(text), 4 * PART_BYTES))
    assert NEEDLE in found.text
    assert "_build" not in vars(index)  # it was not cut whole
    assert found == select(build(text, max_memory=SMALL_MEMORY), QUESTION)


def test_with_limited_work_only_the_first_rows_are_compared_and_the_answer_says_so():
    rows = "".join(f"{number},n{number},{number * 7919 % 20_011}\n" for number in range(20_000))
    found = select(build(f"id,name,amount\n{rows}".encode()), "the largest amount", work=Work(1 << 20, 4 * PART_BYTES))
    assert " rows compared)" in found.text
