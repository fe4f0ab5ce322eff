"""What a selection says it found: true counts, matches before what stands round them, and never nothing about what is there."""

from __future__ import annotations

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import Selection, select

ORDERS = "".join(
    f"{number:05} GET /orders/{number} {'ERROR disk full' if number % 10 == 0 else 'ok'}\n" for number in range(1500)
)
CALM = "".join(f"step {number} went well\n" for number in range(300))


def ask(text: str, question: str, max_tokens: int = 2000) -> Selection:
    return select(build(text.encode()), question, max_tokens=max_tokens)


@pytest.mark.promise("nothing-silently-cut")
def test_only_records_that_match_are_counted_and_they_come_before_their_neighbours() -> None:
    assert ask(ORDERS, "List all error messages with their line numbers", 60).text == (
        "[L1]\n00000 GET /orders/0 ERROR disk full\n"
        "[L11]\n00010 GET /orders/10 ERROR disk full\n"
        "[L21]\n00020 GET /orders/20 ERROR disk full\n"
        "[L31]\n00030 GET /orders/30 ERROR disk full\n"
        "(matched 150 records, showing 4; ask more precisely for the rest)"
    )


def test_a_list_has_as_many_matches_as_fit() -> None:
    shown = ask(ORDERS, "List all error messages with their line numbers", 1000).text
    assert shown.count(" ok\n") == 0
    assert shown.endswith(f"\n(matched 150 records, showing {shown.count('ERROR')}; ask more precisely for the rest)")
    assert len(shown) > 4 * 980
    many = "".join(f"fox {number}\nhen {number}\n" for number in range(1000))
    assert ask(many, "every fox", 10_000).text.endswith("\nfox 999\n(matched 1000 records, all shown)")


def test_records_shown_for_where_they_stand_are_counted_apart() -> None:
    text = "boot\nERROR disk full\nretry\nERROR disk full\nhalt\n"
    assert ask(text, "list all errors").text == ("[L2]\nERROR disk full\n[L4]\nERROR disk full\n(matched 2 records, all shown)")
    calm = "opened the valve\nstarted the pump\n"
    assert ask(f"{calm}exited with code 3\n", "why did it crash", 30).text == (
        f"[L1]\n{calm}exited with code 3\n(no record matched by its words, with 3 others)"
    )
    assert ask(CALM + "exited with code 3\n", "why did it crash", 30).text == (
        "[L301]\nexited with code 3\n(no record matched by its words, with 1 other; repeated lines left out)"
    )


def test_what_speaks_of_failure_matches_a_question_about_it_whatever_its_words() -> None:
    text = CALM + "panic: no more paper\n" + CALM
    assert "panic: no more paper" in ask(text, "list everything that crashed", 60).text
    assert ask(text, "list everything that crashed", 60).matched == 1


def test_words_that_only_word_the_request_make_no_match_beside_others() -> None:
    text = CALM + "line number 7\n" + "the zebra left\n"
    assert ask(text, "list all lines about a zebra").matched == 1
    assert ask(text, "which lines are they").text == "[L301]\nline number 7\n(matched 1 record, all shown)"


def test_words_left_out_because_they_stand_everywhere_are_mentioned() -> None:
    text = "".join(f"request worker {number} handled by worker pool\n" for number in range(40_000)) + "request worker zebra\n"
    assert ask(text, "worker zebra").text == (
        "[L40001]\nrequest worker zebra\n(matched 1 record, all shown; common words not counted)"
    )
    assert ask(text, "worker-7 zebra").text.startswith(
        "[L8]\nrequest worker 7 handled by worker pool\n[L40001]\nrequest worker zebra\n"
    )


def test_what_stands_everywhere_in_a_large_output_is_not_counted_to_the_end() -> None:
    text = "".join(f"request worker {number} handled by worker pool\n" for number in range(40_000))
    selection = ask(text, "list all workers called unicorn", 60)
    assert selection.text == (
        "[L1]\nrequest worker 0 handled by worker pool\nrequest worker 1 handled by worker pool\n"
        "request worker 2 handled by worker pool\n"
        "(matched more than 2500 records, showing 3; ask more precisely for the rest)"
    )
    assert (selection.matched, selection.confidence) == (2500, 0.1)


@pytest.mark.parametrize(
    ("text", "question", "first", "matched"),
    [
        (ORDERS, "GET", "[L2]\n00001 GET /orders/1 ok\n", 1500),
        (ORDERS.replace("GET", "POST"), "all POST requests", "[L2]\n00001 POST /orders/1 ok\n", 1500),
        (CALM, "every step of the phlogiston", "[L1]\nstep 0 went well\nstep 1 went well\n", 300),
        (
            "".join(f"function f{number}(a) {{\n  return a + {number};\n}}\n\n" for number in range(300)),
            "Extract all function definitions",
            "[L1]\nfunction f0(a) {\n  return a + 0;\n}\n",
            300,
        ),
    ],
    ids=["a little word", "a common word", "a common and an absent word", "functions"],
)
def test_what_stands_in_every_record_is_found_though_the_rest_of_the_question_is_nowhere(
    text: str, question: str, first: str, matched: int
) -> None:
    selection = ask(text, question)
    assert selection.text.startswith(first)
    assert (selection.matched, selection.confidence) == (matched, 0.1)


def test_little_words_are_looked_for_when_they_are_in_capitals_or_there_are_no_others() -> None:
    text = CALM + "GET it\nwhat is it\nparts of US make\n"
    assert ask(text, "GET").text == "[L301]\nGET it\n(matched 1 record, all shown)"
    assert ask(text, "US customers").text == "[L303]\nparts of US make\n(matched 1 record, all shown)"
    assert ask(text, "a == b || c").matched == 0
    assert ask(text + "a == b\n", "==").text == "[L304]\na == b\n(matched 1 record, all shown)"
    vague = ask(text, "What is it?", 40)
    assert (vague.text, vague.confidence) == ("[L301]\nGET it\nwhat is it\n(matched 2 records, all shown)", 0.1)


def test_an_answer_too_small_for_what_matched_says_so() -> None:
    assert ask(ORDERS, "disk", 20).text == "(matched 150 records, none fits into 20 tokens: ask for more)"
    assert ask(ORDERS, "disk", 8).text == "(matched 150 records, none fits)"
    assert ask(ORDERS, "disk", 6).text == "(matched 150 records)"
    assert ask(ORDERS, "disk", 1).text == ""


def test_a_record_longer_than_a_small_answer_is_trimmed_to_what_was_asked() -> None:
    one_line = " ".join(f"word{number}" for number in range(900))
    shown = ask(one_line, "word42", 64).text
    assert " word42 " in shown
    assert shown.endswith("\n(matched 1 record, all shown; some shortened)")


def test_a_list_that_does_not_fit_whole_is_cut_to_the_lines_that_tell() -> None:
    module = "".join(f"def pump{number}(a):\n    b = a + {number}\n    return b\n\n\n" for number in range(4))
    assert ask(module, "Extract all pump definitions", 34).text == (
        "[L1]\ndef pump0(a):\n[L6]\ndef pump1(a):\n[L11]\ndef pump2(a):\n[L16]\ndef pump3(a):\n"
        "(matched 4 records, all shown; some shortened)"
    )
    assert ask(module, "Extract all pump definitions").text.endswith("    return b\n(matched 4 records, all shown)")
    traced = "".join(f"2026-01-01 10:00:0{number} ERROR no {number}\n" + "  at a.b(C.java:1)\n" * 20 for number in range(4))
    errors = ask(traced, "list all errors", 60).text
    assert all(f"ERROR no {number}\n" in errors for number in range(4))
    assert errors.endswith("\n(matched 4 records, all shown; some shortened)")
    file = "diff --git a/f{0} b/f{0}\n--- a/f{0}\n+++ b/f{0}\n@@ -1,9 +1,9 @@\n same\n+def pump{0}():\n" + " same" * 40 + "\n"
    patch = "".join(map(file.format, range(3)))
    added = ask(patch, "list all pumps", 50).text
    assert all(f"+def pump{number}():\n" in added for number in range(3))
    assert added.endswith("\n(matched 3 records, all shown; some shortened)")


@pytest.mark.parametrize(
    ("line", "question"),
    [
        ("def area(side):", "list all functions"),
        ("func Area(side int) int {", "every function"),
        ("fn area(side: u32) -> u32 {", "which functions are there"),
        ("#include <math.h>", "list all imports"),
        ("struct Square {", "list all classes"),
        ("const SIDES = 4;", "list all constants"),
        ("var side = 4;", "what variables are there"),
    ],
)
def test_what_people_ask_for_in_code_is_found_as_the_language_spells_it(line: str, question: str) -> None:
    code = "".join(f"call_{number}(required);\n\n" for number in range(60)) + f"{line}\n\n" + "finally(call);\n\n" * 60
    assert ask(code, question).text == f"[L121]\n{line}\n(matched 1 record, all shown)"


def test_definitions_are_listed_before_what_stands_inside_them() -> None:
    method, bases = "    def m{0}(self):\n        return {0}\n\n", ", ".join(f"Base{number}" for number in range(30))
    classes = "".join(f"class C{number}({bases}):\n" + "".join(map(method.format, range(40))) + "\n" for number in range(5))
    shown = ask(classes, "list all classes", 600).text
    assert [line[:9] for line in shown.splitlines() if line.startswith("class ")] == [f"class C{number}(" for number in range(5)]


def test_a_list_is_of_what_was_asked_for_not_of_words_of_the_request() -> None:
    statements = "".join(
        f"CREATE VIEW v{number} AS SELECT {number};\n\nSELECT 1 UNION ALL SELECT {number};\n\n" for number in range(9)
    )
    shown = ask(statements, "list all views").text
    assert [line for line in shown.splitlines() if "UNION" in line] == []
    assert shown.endswith("CREATE VIEW v8 AS SELECT 8;\n(matched 9 records, all shown)")


def test_how_many_is_answered_by_what_says_a_number() -> None:
    run = "".join(f"test_{number} PASSED\n" for number in range(300)) + "== 2 failed, 300 passed in 0.31s ==\n"
    assert "== 2 failed, 300 passed in 0.31s ==\n" in ask(run, "how many tests passed", 120).text
    assert "== 2 failed, 300 passed in 0.31s ==\n" in ask(run, "how many tests failed", 120).text
