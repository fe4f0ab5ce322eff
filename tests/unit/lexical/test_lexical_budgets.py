"""What a small budget shows, and that a larger one shows all of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import cycle, pairwise

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import Selection, select


def make_log(lines: int, message: str, fatal: str, at: int) -> bytes:
    stamps = (f"2026-03-01 10:{number // 60 % 60:02}:{number % 60:02}" for number in range(lines))
    return "".join(
        f"{stamp} {fatal}\n" if number == at else f"{stamp} INFO {message} {number}\n" for number, stamp in enumerate(stamps)
    ).encode()


@pytest.mark.parametrize("max_tokens", [40, 60, 80, 100, 500])
def test_the_one_line_that_has_the_failure_word_is_shown_before_the_end_of_the_log(max_tokens: int):
    log = make_log(14_000, "tick", "FATAL out of file descriptors in shard 7", 5_600)
    assert "FATAL out of file descriptors in shard 7" in select(build(log), "FATAL", max_tokens=max_tokens).text


@pytest.mark.parametrize("max_tokens", [44, 60, 100, 2_000])
def test_the_exact_words_of_a_question_about_a_failure_are_shown_first(max_tokens: int):
    log = make_log(40_000, "payments worker handled request", "FATAL payments worker crashed", 16_000)
    assert "FATAL payments worker crashed" in select(build(log), "payments worker crashed", max_tokens=max_tokens).text


def test_what_was_rarely_said_does_not_hide_why_a_build_failed():
    lines = [f"compiling unit {number} of the harbour" for number in range(900)]
    lines[10] = "harbour build by travis, java 17"
    cause = ["error: valve.c has no symbol `valve_open`", "  needed by main.c", "make: *** [harbour] Error 2"]
    log = "\n".join([*lines, *cause, *(f"removing file {number}" for number in range(400))]).encode()
    found = select(build(log), "This is the travis log of a java build. Why did it fail?", max_tokens=200)
    assert all(line in found.text for line in cause)


MODULE = "\n\n".join(
    f"def read_{number}(path):\n    '''Reads part {number} of a file.'''\n    lines = open(path).read()\n"
    + "".join(f"    check(lines, {number}, {step})\n" for step in range(number % 40))
    + f"    return lines[{number}]"
    for number in range(60)
)
PROSE = "\n\n".join(
    f"## Section {number}\n\n"
    + " ".join(f"The tenant of flat {number} pays rent {step} and may end the lease." for step in range(number % 16 + 1))
    for number in range(32)
)
ROWS = [{"name": f"row-{number}", "size": number * 7 % 50, "note": "ok " * (number % 90)} for number in range(200)]
TABLE = "name,size,city\n" + "".join(f"{row['name']},{row['size']},town{number % 9}\n" for number, row in enumerate(ROWS))
FAILING = "\n".join(
    [
        *(f"test_{number} PASSED" for number in range(200)),
        *(f"test_{number} FAILED" for number in range(200, 230)),
        "Traceback (most recent call last):",
        *(f'  File "a{number}.py", line {number}, in run' for number in range(30)),
        "ValueError: no valve in row-17",
        "exit code 1",
        *(f"cleaning step {number}" for number in range(200)),
    ]
)
PAGE = (
    "<html><h1>Rents</h1><table><tr><th>name</th><th>size</th></tr>"
    + "".join(f"<tr><td>{row['name']}</td><td>{row['size']}</td></tr>" for row in ROWS)
    + "</table>"
    + "".join(f"<p>The tenant pays rent {number}.</p>" for number in range(80))
    + "</html>"
)
DIFF = "".join(
    f"diff --git a/f{number} b/f{number}\n--- a/f{number}\n+++ b/f{number}\n@@ -1,9 +1,9 @@\n"
    + "+rent\n-lease\n ok\n" * (number % 20)
    for number in range(40)
)
ISSUES = "".join(
    f"Issue {number} (closed)\nTitle: Rent of flat {number}\n\nann, 2020-01-02T10:00:\nDoes the tenant pay rent?\n\n"
    f"bo, 2020-01-03T10:00:\nRow-{number % 25} of the lease says so.\n\n\n"
    for number in range(60)
)
TENANTS = {
    "flats": [{**row, "tenants": [number + 1, number // 2 + 1, 200 - number]} for number, row in enumerate(ROWS)],
    "tenants": [{"id": number, "note": "pays rent " * (number % 40), "name": f"Tenant {number}"} for number in range(1, 201)],
}
DOCUMENTS = {
    "module": MODULE,
    "prose": PROSE,
    "json": json.dumps({"rows": ROWS, "about": {"rent": "r " * 900}}, indent=1),
    "joined tables": json.dumps(TENANTS),
    "issues": ISSUES,
    "ndjson": "\n".join(map(json.dumps, ROWS)),
    "table": TABLE,
    "failing tests": FAILING,
    "coloured log": make_log(900, "\x1b[31mtenant\x1b[0m pays", "FATAL rent of row-17 missing", 333).decode(),
    "page": PAGE,
    "diff": DIFF,
    "matches": "\n".join(f"src/a{number}.py:{number}: rent = lease(row-{number}) # error" for number in range(300)),
    "one line": " ".join(f"word{number} rent" for number in range(2_000)),
}
QUESTIONS = (
    "row-17",
    "why did it fail?",
    "which tests failed",
    "list all functions",
    "how many tests passed",
    "the rent of the tenant in flat 17",
    "every rent and lease",
    "the largest size",
    "what comes after row-17",
    "problem with read_39",
    "which tenants has row-17",
)
BUDGETS = (*range(8, 120, 14), 140, 220, 410, 800, 1_500)


def shown_bytes(selection: Selection) -> set[int]:
    return {position for found in selection.excerpts for position in range(found.start_byte, found.end_byte)}


def count_words(text: str) -> int:
    return len(text.split())


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.parametrize(("name", "count"), list(zip(DOCUMENTS, cycle([count_words, None]))), ids=DOCUMENTS)
def test_a_larger_budget_shows_all_that_a_smaller_one_does(name: str, count: Callable[[str], int] | None):
    index = build(DOCUMENTS[name].encode())
    for question in QUESTIONS:
        shown = [shown_bytes(select(index, question, max_tokens=budget, count_tokens=count)) for budget in BUDGETS]
        lost = [
            (question, smaller, larger)
            for (smaller, less), (larger, more) in pairwise(zip(BUDGETS, shown, strict=True))
            if not less <= more
        ]
        assert lost == []


def test_no_draft_is_counted_twice():
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return -(-len(text) // 4)

    log = make_log(5_000, "payments worker handled request", "FATAL payments worker crashed", 1_600)
    assert select(build(log), "payments worker", max_tokens=300, count_tokens=count).excerpts
    assert len(counted) == len(set(counted))
