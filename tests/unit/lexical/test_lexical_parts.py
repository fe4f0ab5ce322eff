"""The parts of the engine, each on its own: kinds, readings, records, questions, order."""

from __future__ import annotations

import json

import pytest

from overspill.lexical.index import build
from overspill.lexical.kinds import recognise
from overspill.lexical.kinds.code import CODE
from overspill.lexical.kinds.documents import PROSE as DOCUMENT
from overspill.lexical.kinds.lines import split_long
from overspill.lexical.kinds.logs import DIFF
from overspill.lexical.outline import Outline
from overspill.lexical.query import parse
from overspill.lexical.rank import rank
from overspill.lexical.reading import find_filler, strip_colours, strip_tags, unescape
from overspill.lexical.rows.ordering import find_ordered_rows
from overspill.lexical.select import select
from overspill.lexical.words import split_subwords, stem
from overspill.text.encoding import decode

PROSE = "The quick brown fox jumps over the lazy dog, and nobody in the village ever asks why it does so every morning. " * 9


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ('{"a": 1}', "json"),
        ("[1, 2, 3]", "json"),
        ('{"a": 1}\n{"a": 2}\n{"a": 3}', "ndjson"),
        ("[2026-01-01 10:00:00] started\n[2026-01-01 10:00:01] stopped", "log"),
        ("ERROR one\nINFO two\nWARN three", "log"),
        ("[    0.000000] Booting\n[    0.015356] CPU: started", "log"),
        ("[12345]\n[12346]", "ndjson"),
        ("Jan  2 10:00:00 host app: x\nJan  2 10:00:01 host app: y", "log"),
        ("<!DOCTYPE html><html><body>x</body></html>", "html"),
        ("<p>a</p><p>b</p>", "html"),
        ("<?xml version='1.0'?><a><b>1</b></a>", "xml"),
        ("name,age\nann,3\nbob,4\ncyd,5", "csv"),
        ("name\tage\nann\t3\nbob\t4\ncyd\t5", "csv"),
        ("int area(int);\nint side(int);\nvoid draw(void);\nvoid fill(void);", "code"),
        ('"name","note"\n"ann","one\ntwo, three"\n"bob","x"\n"cyd","y"', "csv"),
        ("NAME      READY   STATUS\npod-a     1/1     Running\npod-b     0/1     Pending", "columns"),
        (
            "TYPE      REASON    MESSAGE\nNormal    Pulled    image was present already\nWarning   Failed    no such secret",
            "columns",
        ),
        ("diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b", "diff"),
        ("src/a.py:1:import os\nsrc/b.py:22:import re\nsrc/c.py:3:x", "matches"),
        ("import os\n\n\ndef run(x):\n    return os.path(x)\n\n\nclass A:\n    pass", "code"),
        ("3f1ee12 Take short texts as they are\n6d21c95 Let older clients read them\n0bed8fd Explain an error once", "log"),
        ("commit 3f1ee12\nAuthor: Ann Low <a.low@example.com>\n\n    Mend the roof\n", "history"),
        ("version: 3\nservices:\n  web:\n    image: x\n    ports:\n      - 80", "yaml"),
        ("[12:18] <ann> is it up?\n[12:18] <bob> no, not yet\n[12:19] <ann> why?", "turns"),
        (
            "Ann Low: Shall we go to the lake before the rain comes over the hills?\n"
            "Bob: I would rather stay at home and read.\n" * 4,
            "turns",
        ),
        (
            "[06.01.2024, 16:43:00] Ann: Shall we go to the lake before the rain comes?\n"
            "[06.01.2024, 16:48:10] bob h.: I would rather stay at home and read the book you gave me.\n" * 4,
            "turns",
        ),
        (
            "1/6/24, 4:43 PM - Ann: Shall we go to the lake before the rain comes?\n"
            "1/6/24, 4:48 PM - +44 20: I would rather stay at home and read the book you gave me.\n" * 4,
            "turns",
        ),
        ("[06.01.2024, 16:43:00] started\n[06.01.2024, 16:43:01] stopped", "log"),
        ("2026-01-01 10:00:00 INFO: the pool is up\n2026-01-01 10:00:01 WARN: the pool is full of work\n" * 9, "log"),
        ("[-1.5e3, 0, 10]", "json"),
        ("Name: red oak of the hills\nColour: brown as the earth in autumn\nHeight: as tall as a house with a roof", "yaml"),
        (
            "Ann Low, 2010-01-05 02:02:\nDoes it run?\n\nBob Hay, 2010-01-05 05:37:\n> Does it run?\nIt does.\n\n" * 3,
            "messages",
        ),
        (
            "From: ann@example.com\nDate: Mon, 5 Jan\nSubject: lakes\n\nWhich lake\nis the deepest?\n\nI wonder.\n\n" * 3,
            "messages",
        ),
        (
            "The queue\n=========\n\nWorkers take from the queue what is oldest\n"
            "and put back what they cannot do.\n\n* a list\n* of\n* words\n",
            "prose",
        ),
        ("request worker handled by worker pool and gone\n" * 30, "log"),
        (PROSE, "prose"),
        ("# Title\n\n| a | b |\n|---|:-:|\n| 1 | 2 |\n| 3 | 4 |", "prose"),
        ("# Title\n\ntext\n\n## Part\n\nmore", "prose"),
        ("\x1b[32mThis is what the terminal said\x1b[0m and so on it went", "log"),
        ("", "prose"),
        ("   \n \n", "prose"),
    ],
)
def test_a_kind_is_recognised(text: str, kind: str) -> None:
    assert recognise(text.encode()).name == kind


def test_the_middle_of_a_long_text_is_looked_at_too() -> None:
    text = "header without a time\n" * 300 + "2026-01-01T10:00:00Z INFO x\n" * 12_000
    assert recognise(text.encode()).name == "log"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"plain", "plain"),
        ("Größe".encode(), "Größe"),
        (b"a\xffb", "a\ufffdb"),
        (b"\xed\xa0\x80x", "\ud800x"),
        (b"\xed\xa0\x80\xff", "\ud800\ufffd"),
        (b"\xc3", "\ufffd"),
        (b"\xed\xa0", "\ufffd\ufffd"),
    ],
)
def test_bytes_become_characters_in_their_place(data: bytes, text: str) -> None:
    assert decode(data) == text


def test_a_reading_is_as_long_as_what_was_read() -> None:
    page = b"<h2>T</h2><p>a &eacute; &bogus; &#x41;</p><!-- c --><script>if (a<b) x()</script><pre>1\n2</pre>"
    page += b"<table><tr><td>1</td></tr></table>"
    plain = bytes(strip_tags(page, len(page), b"\xff"))
    assert len(plain) == len(page)
    assert b"x()" not in plain
    assert decode(plain.replace(b"\xff", b"")).split() == ["##", "T", "a", "é", "&bogus;", "A", "1", "2", "1", "|"]
    assert bytes(strip_colours(b"\x1b[31mx\x1b[0m\ny", 11, b"\xff")) == b"\xff" * 5 + b"x" + b"\xff" * 4 + b"\n"
    assert unescape(rb"a\"b\nc\u00e9\ud83d", b"\xff") == b'a\xff"b\xff\nc\xff\xff\xff\xff\xc3\xa9\\ud83d'


def test_what_is_never_closed_is_left_as_it_is() -> None:
    page = b"<p>a</p><script>never closed <script> again"
    assert b"never closed" in strip_tags(page, len(page), b"\xff")


def test_a_filler_is_a_byte_the_text_does_not_have() -> None:
    assert find_filler(b"abc") == b"\xff"
    assert find_filler(b"abc\xff\xfe") == b"\xc0"
    assert find_filler(bytes(range(256))) == b""
    assert select(build(b"<html><p>needle" + bytes(range(256)) + b"</p></html>"), "needle").excerpts


def test_identifiers_have_subwords() -> None:
    assert split_subwords("parseHTTPReply_v2") == ["parse", "http", "reply", "v", "2"]
    assert stem("countries") == stem("country")


LISTS = ["list all users", "Which of the pods failed?", "which people are on call", "every port", "which issues remain"]


def test_a_question_is_taken_apart() -> None:
    query = parse('why did version 1.2.3 of "parseReply" fail after the top 3 errors')
    weights = {(term.key, term.literal): term.weight for term in query.terms}
    assert weights["1.2.3", True] == 2.0
    assert weights["parsereply", True] == 3.2
    assert (query.failure, query.after, query.before, query.listing) == (True, True, False, False)
    assert not parse('the entry of "disk error"').failure
    assert [question for question in LISTS if not parse(question).listing] == []
    assert not parse("the rule which is broken").listing


def test_long_stretches_are_cut_after_sentences_and_never_inside_a_character() -> None:
    text = ("One sentence here. " * 30).encode()
    parts = list(split_long(text, 0, len(text), 100))
    assert all(text[start:end].endswith(b". ") for start, end in parts)
    wide = ("é" * 300).encode()
    parts = list(split_long(wide, 0, len(wide), 101))
    assert "".join(wide[start:end].decode() for start, end in parts) == "é" * 300


def test_a_block_of_code_stands_under_what_encloses_it() -> None:
    body = "".join(f"    def method_{number}(self):\n        return {number}\n\n" for number in range(60))
    text = f"import os\n\nclass Store:\n{body}\nEND = 1\n".encode()
    outline = Outline()
    CODE.cut(text, 0, len(text), outline, lambda start, end: None)
    record = outline.record_at(text.index(b"method_50"))
    label = outline.lineage(record)[0]
    assert text[outline.label_starts[label] : outline.label_ends[label]] == b"class Store:\n"
    assert b"".join(text[a:b].strip() for a, b in zip(outline.starts, outline.ends, strict=True)).endswith(b"END = 1")


def test_a_hunk_stands_under_its_file() -> None:
    text = b"diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n@@ -9 +9 @@\n-c\n+d\n"
    text += b"diff --git a/y b/y\n--- a/y\n+++ b/y\n@@ -1 +1 @@\n+z\n"
    outline = Outline()
    DIFF.cut(text, 0, len(text), outline, lambda start, end: None)
    assert [text[a:b].splitlines()[0] for a, b in zip(outline.starts, outline.ends, strict=True)] == [
        b"diff --git a/x b/x", b"@@ -9 +9 @@", b"diff --git a/y b/y",
    ]  # fmt: skip
    assert list(outline.under) == [0, 0, 1]


def test_events_keep_their_traces() -> None:
    data = b"2026-01-01 10:00:00 ERROR boom\n  at a.b(C.java:1)\nCaused by: x\n\n2026-01-01 10:00:01 INFO fine\n"
    outline = build(data).outline
    assert [data[a:b] for a, b in zip(outline.starts, outline.ends, strict=True)] == [data[:63], data[64:]]


def test_nesting_has_a_bottom() -> None:
    data = b'{"a":' * 500 + b'"needle"' + b"}" * 500 + b"]]]"
    assert "needle" in select(build(data), "needle", max_tokens=2000).text
    xml = b"<?xml version='1.0'?>" + b"<a>" * 500 + b"needle" + b"</a>" * 600
    assert "needle" in select(build(xml), "needle").text


def test_truncated_json_is_still_cut_into_elements() -> None:
    whole = json.dumps([{"id": number, "name": f"name{number}"} for number in range(100)])
    assert "name57" in select(build(whole[:3_000].encode()), "name57", max_tokens=60).text


def test_xml_comments_and_cdata_are_no_elements() -> None:
    data = b"<?xml version='1.0'?><r><!-- <x> --><a>one</a><![CDATA[<y>]]><b/><c>needle</c><!-- open"
    assert "needle" in select(build(data), "needle").text


def _rows(text: str, question: str) -> list[str]:
    index = build(text.encode())
    rows = find_ordered_rows(index, parse(question), rank(index, parse(question)))
    return [decode(bytes(index.text[index.outline.starts[row] : index.outline.ends[row]])).strip() for row in rows.rows]


CITIES = "city,country,people,founded\n" + "\n".join(
    [
        "Aby,Norland,500,3 May 1200",
        "Bex,Sudland,90,March 1999",
        "Cor,Norland,70000,1850",
        "Dun,Sudland,1200,12 June 1200",
        "Eel,Norland,15,2001",
    ]
)


def test_rows_are_ordered_by_the_column_a_question_names() -> None:
    assert _rows(CITIES, "which city has the most people")[0] == "Cor,Norland,70000,1850"
    assert _rows(CITIES, "the 2 cities with the fewest people")[:2] == ["Eel,Norland,15,2001", "Bex,Sudland,90,March 1999"]
    assert _rows(CITIES, "the largest number of people in Sudland")[0] == "Dun,Sudland,1200,12 June 1200"
    assert _rows(CITIES, "what was the earliest founded")[0] == "Aby,Norland,500,3 May 1200"


def test_a_question_without_order_or_a_text_without_tables_has_no_ordered_rows() -> None:
    assert _rows(CITIES, "people of Bex") == []
    assert _rows("just a line\n", "the largest") == []
    assert _rows(CITIES, "the largest wombat") == []
    assert _rows("name,note\na,x\nb,y\nc,z\n", "the longest note") == []


def test_the_first_and_the_last_row_are_where_they_stand() -> None:
    assert _rows(CITIES, "the first city listed")[0] == "Aby,Norland,500,3 May 1200"
    assert _rows(CITIES, "the last 2 listed")[:2] == ["Eel,Norland,15,2001", "Dun,Sudland,1200,12 June 1200"]


def test_rows_of_json_and_of_columns_are_ordered_too() -> None:
    rows = json.dumps([{"name": "a", "size": 3}, {"name": "b", "size": 30}, {"name": "c", "size": 7}])
    assert _rows(rows, "largest size")[0] == '{"name": "b", "size": 30}'
    odd = json.dumps({"t": [{"size": 3}, {"size": 30}, {"size": 4}, [1, 2, 3]], "pad": "p" * 3_000})
    assert _rows(odd, "largest size")[0] == '{"size": 30}'
    columns = "NAME     MEMORY   NODE\npod-a    120Mi    n1\npod-b    900Mi    n2\npod-c    64Mi     n3\n"
    assert _rows(columns, "most memory")[0] == "pod-b    900Mi    n2"


def test_words_of_failure_in_a_contract_are_only_words() -> None:
    data = (PROSE + "\n\nThe seller answers for errors and exceptions in the delivered goods for one year.\n\n" + PROSE).encode()
    selection = select(build(data), "liability for errors", max_tokens=100)
    assert "The seller answers for errors" in selection.text


def test_terms_that_stand_everywhere_are_left_out_of_the_scan() -> None:
    lines = "".join(f"request worker {number} handled by worker pool\n" for number in range(40_000))
    index = build((lines + "request worker zebra\n").encode())
    assert select(index, "worker zebra").matched == 1
    assert select(index, "worker").matched > 1_000


def test_a_rarer_spelling_stands_for_itself() -> None:
    versions = "\n".join(["pkg 1.2", "pkg 1.2.3", "pkg ^1.2", "pkg 11.2", *(f"pkg {number}.9" for number in range(20, 60))])
    assert select(build(versions.encode()), "1.2", max_tokens=60).text.splitlines()[1] == "pkg 1.2"


def test_quoted_cells_may_hold_line_ends() -> None:
    rows = "\n".join(f'"town{number}","first line\nsecond line {number}","{number}"' for number in range(50))
    data = f'"name","note","size"\n{rows}\n\n"broken'.encode()
    selection = select(build(data), "note of town31", max_tokens=60)
    assert '"town31","first line\nsecond line 31","31"' in selection.text


def test_blocks_of_columns_each_have_their_header() -> None:
    data = b"NAME    AGE    SITE\n"
    data += b"----    ---    ----\nann     3      north\nbob     4      south\n\n"
    data += b"LONE    HEADER    HERE\n\nKEY    VALUE    NOTE\nk1     needle   x\n"
    index = build(data)
    assert [table.rows.names for table in index.outline.tables] == [("NAME", "AGE", "SITE"), ("KEY", "VALUE", "NOTE")]
    assert select(index, "needle", max_tokens=60).text.startswith("[L8]\nKEY    VALUE    NOTE\nk1     needle   x\n")
    assert "LONE    HEADER    HERE" in select(index, "lone header").text


def test_a_very_long_row_is_cut_and_a_drawn_line_is_no_row() -> None:
    long_cell = "word " * 900
    data = f"# T\n\n| a | b |\n|---|---|\n| 1 | {long_cell}needle |\n| 2 | x |\n| 3 | y |\nARTICLE IV\n\nend of it\n".encode()
    index = build(data)
    assert "needle" in select(index, "needle", max_tokens=200).text
    assert "|---|---|" not in select(index, "x y", max_tokens=200).text


def test_texts_without_a_free_byte_are_read_as_they_are() -> None:
    data = json.dumps({"result": "needle\n" + "line\n" * 100}).encode() + bytes(range(256))
    assert select(build(data), "needle").excerpts


def test_rows_that_are_no_objects_have_no_columns() -> None:
    data = json.dumps({"t": [{"a": [1, 2, number]} for number in range(3)] + [{"b": "x\ud800"}], "pad": "p" * 3_000})
    assert _rows(data, "largest b") == []


def test_which_tests_failed_is_answered_by_verdicts_before_anything_else() -> None:
    lines = [f"ok {number} - case {number}" for number in range(500)]
    lines[123], lines[321] = "not ok 123 - rounds down", "not ok 321 - keeps order"
    selection = select(build("\n".join(lines).encode()), "which of the tests failed", max_tokens=80)
    assert "not ok 123 - rounds down" in selection.text
    assert "not ok 321 - keeps order" in selection.text


def test_a_term_in_the_heading_counts_also_where_the_passage_has_it() -> None:
    plain, headed = "The valve of the mill is old.", "The valve of the dock is old."
    index = build("\n\n".join(["## Mill", plain, "## Valve", headed, *["## Rest", "Nothing to see here."] * 5]).encode())
    scores = rank(index, parse("valve")).scores
    text = bytes(index.text).decode()
    assert scores[index.outline.record_at(text.index(headed))] > scores[index.outline.record_at(text.index(plain))]


def test_what_is_cut_without_a_sentence_to_cut_after_is_cut_between_words() -> None:
    text = b"lorem ipsum dolor sit amet consectetur adipiscing elit sed do eiusmod tempor incididunt ut labore"
    parts = [text[start:end] for start, end in split_long(text, 0, len(text), 30)]
    assert parts == [
        b"lorem ipsum dolor sit amet ",
        b"consectetur adipiscing elit ",
        b"sed do eiusmod tempor ",
        b"incididunt ut labore",
    ]


def test_a_paragraph_in_capitals_is_no_pile_of_headings() -> None:
    shouted = "IN NO EVENT WILL ANY HOLDER OF RIGHTS\nBE LIABLE TO YOU FOR DAMAGES, INCLUDING\nLOSS OF DATA OR OF PROFIT"
    text = f"WARRANTY\n\nThere is none.\n\nLIABILITY\n\n{shouted}\n\nREST\nNothing else holds.\n"
    outline = Outline()
    DOCUMENT.cut(text.encode(), 0, len(text), outline, lambda start, end: None)
    records = [text[start:end].strip() for start, end in zip(outline.starts, outline.ends, strict=True)]
    assert records == ["WARRANTY", "There is none.", "LIABILITY", shouted, "REST\nNothing else holds."]
