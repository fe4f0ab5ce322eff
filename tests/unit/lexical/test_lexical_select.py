"""What a selection says, and what it says it left out."""

from __future__ import annotations

import json
import mmap
from pathlib import Path

import pytest

from overspill.lexical.index import build
from overspill.lexical.reply.drafts import Found
from overspill.lexical.reply.render import make_pointer
from overspill.lexical.select import select

LOG = "\n".join(
    f"2026-01-01 10:00:{number % 60:02d} INFO request {number} served by node-{number % 5}" for number in range(400)
).encode()


def test_an_excerpt_carries_bytes_lines_and_locator() -> None:
    selection = select(build(b"alpha\nbeta gamma\ndelta\n"), "gamma")
    assert selection.excerpts == (
        Found(
            text="beta gamma\n",
            start_byte=6,
            end_byte=17,
            start_line=2,
            end_line=2,
            locator="L2",
            score=selection.excerpts[0].score,
            shown="beta gamma",
        ),
    )
    assert selection.text == "[L2]\nbeta gamma\n(matched 1 record, all shown)"
    assert (selection.matched, selection.searched_bytes, selection.total_bytes, selection.kind) == (1, 23, 23, "log")


def test_the_last_line_says_how_much_is_left_out() -> None:
    assert select(build(LOG), "request served node-3", max_tokens=100).text == (
        "[L4]\n2026-01-01 10:00:03 INFO request 3 served by node-3\n"
        "[L9]\n2026-01-01 10:00:08 INFO request 8 served by node-3\n"
        "[L14]\n2026-01-01 10:00:13 INFO request 13 served by node-3\n"
        "[L19]\n2026-01-01 10:00:18 INFO request 18 served by node-3\n"
        "[L24]\n2026-01-01 10:00:23 INFO request 23 served by node-3\n"
        "(matched 80 records, showing 5; ask more precisely for the rest; common words not counted)"
    )


def test_neighbours_become_one_excerpt() -> None:
    selection = select(build(LOG), "request 17 request 18", max_tokens=90)
    assert "[L18]\n2026-01-01 10:00:17 INFO request 17 served by node-2\n2026-01-01 10:00:18 INFO request 18" in selection.text


def test_nothing_found_says_so_and_what_there_is_in_two_lines() -> None:
    data = json.dumps({"users": [{"name": f"u{number}"} for number in range(300)], "next": None}).encode()
    selection = select(build(data), "phlogiston pressure")
    assert selection.excerpts == ()
    assert selection.confidence == 0.0
    assert selection.text == f"Nothing found for: phlogiston pressure\nThis output is json, {len(data)} bytes, 301 records: users"


TABLE = b"name,price\n" + b"".join(b"%d,%d\n" % (number, number * 2) for number in range(2000))


@pytest.mark.parametrize(
    ("data", "query", "first", "matched"),
    [
        (TABLE, "name and price", "[L1]\nname,price\n0,0\n1,2\n", 2000),
        (LOG, "request served", "[L1]\n2026-01-01 10:00:00 INFO request 0 served by node-0\n", 400),
    ],
)
def test_what_stands_everywhere_is_answered_with_the_first_records_and_little_confidence(
    data: bytes, query: str, first: str, matched: int
) -> None:
    selection = select(build(data), query, max_tokens=100)
    assert selection.text.startswith(first)
    assert (selection.matched, selection.confidence) == (matched, 0.1)


def test_nothing_found_shortens_to_what_fits() -> None:
    index = build(LOG)
    assert select(index, "phlogiston", max_tokens=8).text == "Nothing found for: phlogiston"
    assert select(index, "phlogiston", max_tokens=4).text == "Nothing found."
    assert select(index, "phlogiston", max_tokens=1).text == ""


def test_an_empty_output_has_nothing() -> None:
    assert select(build(b""), "anything").text == "Nothing found for: anything\nThis output is prose, 0 bytes, 0 records: empty"


def test_an_empty_question_finds_nothing() -> None:
    assert select(build(LOG), "").excerpts == ()


def test_a_log_without_labels_is_told_by_its_first_record() -> None:
    assert "2026-01-01 10:00:00 INFO request 0 served" in select(build(LOG), "phlogiston").text


def test_all_of_an_output_is_searched_however_little_memory_there_is() -> None:
    selection = select(build(LOG, max_memory=2_000), "request 7")
    assert selection.searched_bytes == selection.total_bytes == len(LOG)
    assert "searched" not in selection.text


def test_an_over_long_record_is_trimmed_inside_with_a_marker() -> None:
    words = " ".join(f"token{number}" for number in range(3_000))
    record = {"id": 7, "first": words[:900], "needle": "the golden haystack", "rest": words[:900], "pin": "silver haystack"}
    selection = select(build(json.dumps([record, {"id": 8}]).encode()), "golden haystack silver", max_tokens=220)
    assert "the golden haystack" in selection.text
    assert "\n[…]\n" in selection.text
    assert len(selection.excerpts) > 1
    assert all(found.trimmed for found in selection.excerpts)


def test_a_table_row_comes_with_its_header() -> None:
    data = ("id,city,mayor\n" + "\n".join(f"{number},town{number},name{number}" for number in range(300))).encode()
    selection = select(build(data), "mayor of town77", max_tokens=100)
    assert selection.text.startswith("[L1]\nid,city,mayor\n[L79]\n77,town77,name77\n")


def test_neighbouring_rows_come_when_the_question_says_before_or_after() -> None:
    data = ("step,action\n" + "\n".join(f"{number},act{number}x" for number in range(300))).encode()
    assert "121,act121x" in select(build(data), "what comes after act120x", max_tokens=70).text
    assert "119,act119x" in select(build(data), "what comes before act120x", max_tokens=70).text


def test_confidence_is_high_for_what_is_there_and_low_for_an_identifier_that_is_not() -> None:
    index = build(LOG)
    assert select(index, "request 321").confidence >= 0.5
    assert select(index, "request 98765 by node-44").confidence < 0.5


@pytest.mark.parametrize("line_end", ["\n", "\r", "\r\n"])
def test_lines_are_counted_the_same_however_they_end_and_wherever_they_stand(line_end: str) -> None:
    for padding in range(3):
        data = ("x" * padding + line_end.join(f"line {number}" for number in range(1, 2_000)) + line_end + "needle").encode()
        assert [found.end_line for found in select(build(data), "needle").excerpts] == [2_000]


@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_an_excerpt_that_includes_the_end_of_a_line_ends_on_that_line(line_end: str) -> None:
    data = line_end.join(f"line {number} of the log" for number in range(1, 300)).encode()
    (found,) = select(build(data), "line 77", max_tokens=30).excerpts
    assert (found.text, found.start_line, found.end_line) == (f"line 77 of the log{line_end}", 77, 77)


def test_memory_maps_and_views_are_searched_without_a_copy(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_bytes(LOG)
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert "request 321 " in select(build(mapped), "request 321").text
    view = memoryview(LOG)
    assert build(view).source is LOG
    assert build(view[10:500]).source == LOG[10:500]


@pytest.mark.parametrize(
    ("data", "question", "locators"),
    [
        ({"a": {"b": [{"id": 1, "v": "x" * 1_500}, {"id": 2, "v": "needle " + "y" * 900}]}, "pad": "z"}, "needle", ["/a/b/1"]),
        ({"items": [{"name": "n" * 30 + str(number)} for number in range(200)]}, "n" * 30 + "150", ["/items/150"]),
        ([{"k": "needle"}, {"k": "other"}], "needle", ["/0"]),
        ({"mixed": [1, "two", {"deep": "needle"}, {"deep": "x" * 2_500}]}, "needle", ["/mixed/*"]),
        ({"~/x": {"in": "needle " + "q" * 3_000, "other": {"k": "v" * 2_000}}}, "needle", ["/~0~1x"]),
    ],
)  # fmt: skip
def test_json_is_located_by_pointer(data: object, question: str, locators: list[str]) -> None:
    selection = select(build(json.dumps(data).encode()), question, max_tokens=300)
    assert [found.locator for found in selection.excerpts][: len(locators)] == locators


def test_a_pointer_leads_to_the_element() -> None:
    data = {"rows": [{"n": number, "pad": "p" * 50} for number in range(80)]}
    index = build(json.dumps(data).encode())
    for record in (0, 41, 79):
        assert make_pointer(index, record) == f"/rows/{record}"


@pytest.mark.parametrize("indent", [None, 2])
def test_json_inside_a_string_is_cut_and_located_like_any_other(indent: int | None) -> None:
    rows = [{"name": f"row-{number}", "size": number * 7 % 50} for number in range(90)]
    data = json.dumps({"content": [{"type": "text", "text": json.dumps({"rows": rows}, indent=indent)}]}).encode()
    index = build(data)
    found = select(index, "row-17", max_tokens=60).excerpts[0]
    assert found.locator == "/content/0/text/rows/17"
    assert json.loads(json.loads(f'"{found.text}"')) == {"name": "row-17", "size": 19}
    assert select(index, "the largest size", max_tokens=60).excerpts[0].locator == "/content/0/text/rows/7"


@pytest.mark.parametrize("word", ["größer", "ошибка", "日本語", "naïve"])
def test_letters_that_json_escapes_are_read_as_themselves(word: str) -> None:
    notes = [{"note": f"nothing {number}"} for number in range(150)]
    notes[31] = {"note": f"see\t{word} \U0001f600 \\u00e9"}
    data = json.dumps(notes).encode()
    selection = select(build(data), word, max_tokens=60)
    seen = f'{{"note": "see\\t{word} \U0001f600 \\\\u00e9"}}'
    assert selection.text == f"[/31]\n{seen}\n(matched 1 record, all shown)"
    assert selection.excerpts[0].text.encode() == json.dumps(notes[31]).encode()
    inside = json.dumps({"result": json.dumps({"notes": notes})}).encode()
    assert select(build(inside), word, max_tokens=60).text == f"[/result/notes/31]\n{seen}\n(matched 1 record, all shown)"


@pytest.mark.parametrize("needle", ["needle", "v1.2.3", "Ärger"])
def test_a_word_after_an_escaped_line_end_is_found(needle: str) -> None:
    data = json.dumps([{"text": f"one\n{needle} two"}, *({"text": "one\ntwo"} for _ in range(50))], ensure_ascii=False).encode()
    assert select(build(data), needle).text == f'[/0]\n{{"text": "one\\n{needle} two"}}\n(matched 1 record, all shown)'


def test_long_lines_are_located_by_byte() -> None:
    data = (
        b"<html>"
        + b"".join(b"<p>paragraph %d about nothing much</p>" % number for number in range(2_000))
        + b"<p>needle</p></html>"
    )
    assert select(build(data), "needle").excerpts[0].locator.startswith("@")


def test_the_heading_stands_in_the_locator() -> None:
    data = (
        b"# Guide\n\nSome words about the guide and how it is meant to be read by people.\n\n## Limits\n\n"
        + b"Nothing here. " * 20
    )
    data += b"\n\nThe quota of a tenant is nine gigabytes and it cannot be raised by anyone.\n"
    assert select(build(data), "quota of a tenant", max_tokens=45).text.startswith("[L9 Limits]\nThe quota of a tenant is nine")


def test_colours_tags_and_escapes_are_left_out_of_the_text_but_not_of_the_excerpts() -> None:
    coloured = select(build(b"\x1b[32mok\x1b[0m one\n\x1b[31mbad needle\x1b[0m\n"), "needle")
    assert coloured.text.startswith("[L2]\nbad needle\n")
    assert coloured.excerpts[0].text == "\x1b[31mbad needle\x1b[0m\n"
    page = select(build(b"<html><p>Fish &amp; <b>needle</b>&nbsp;soup</p><p>x</p></html>"), "needle")
    assert "Fish & needle\xa0soup" in page.text
    wrapped = select(build(json.dumps({"result": 'say "needle"\n' + "line\n" * 100}).encode()), "needle")
    assert 'say "needle"\n' in wrapped.text
    assert '\\"needle\\"\\n' in wrapped.excerpts[0].text


def test_a_tokeniser_of_the_caller_counts() -> None:
    selection = select(build(LOG), "request served", max_tokens=50, count_tokens=lambda text: len(text.split()))
    assert len(selection.text.split()) <= 50
    assert selection.excerpts


def test_what_tells_of_a_failure_comes_before_what_only_holds_the_words_around_the_question():
    setting = [f"worker {number}: nightly pipeline of the harbour project, stage log" for number in range(40)]
    cause = ["error: pump.c has no symbol `valve_open`", "  needed by harbour/main.c", "  while linking the harbour binary"]
    lines = [*setting, *(f"compiling unit {number}" for number in range(300)), *cause]
    lines += [*(f"uploading report part {number}" for number in range(300)), "done, exit code 2"]
    question = "This is the log of the nightly pipeline of the harbour project. Why did it fail?"
    found = select(build("\n".join(lines).encode()), question, max_tokens=400)
    assert all(line in found.text for line in cause)
    assert not any(line in found.text for line in setting)


def test_a_heading_that_is_found_brings_what_stands_below_it():
    sections = [
        f"## Part {number}\n\nThe {('valve', 'pump')[number % 2]} of part {number} is seen to weekly." for number in range(40)
    ]
    sections[30] = "## Valve\n\nThe valve is made of bronze and opens to the left."
    found = select(build("\n\n".join(sections).encode()), "valve", max_tokens=60)
    assert "made of bronze" in found.text


def test_how_to_end_something_is_no_question_about_a_failure_in_a_manual():
    options = [f"--option-{number} makes the rebase of the branch keep part {number} of it, as before." for number in range(40)]
    options[10] = "--abort gives the rebase up and brings the branch back to where it was before it began."
    options[35] = "Any command that fails will interrupt the rebase, with exit code 1, and it can go on later."
    found = select(build("\n\n".join(options).encode()), "how to abort a rebase", max_tokens=60)
    assert options[10] in found.text


def test_a_sign_is_looked_for():
    lines = [f"line {number} of the price list, nothing special" for number in range(2000)]
    lines[1234] = "here the ☃ stands"
    found = select(build("\n".join(lines).encode()), "☃", max_tokens=100)
    assert "here the ☃ stands" in found.text
