"""Cards: what a model is told of a stored output of each kind. Every figure is checked against the output."""

from __future__ import annotations

import json

from overspill.gate.cards.make import make_card
from overspill.store.meter import size_of
from overspill.text.tokens import count


def card(text: str | bytes, tokens: int = 400) -> str:
    data = text.encode() if isinstance(text, str) else text
    made = make_card(lambda start, end: data[start:end], size_of(data.decode("utf-8", "replace"), None))
    return made.write(tokens, lambda shown: count(shown).tokens)


def steps(text: str) -> list[tuple[str, str]]:
    data = text.encode()
    return [(step.way, step.value) for step in make_card(lambda start, end: data[start:end], size_of(text, None)).steps]


ROWS = [
    {"id": number, "state": "failed" if number % 10 == 0 else "ok", "at": {"day": f"2026-01-{1 + number % 28:02}"}, "tags": ["a"]}
    for number in range(280)
]
TABLE = [
    "280 rows, 4 columns:",
    "- id number 0 to 279",
    "- state text, ok 252, failed 28",
    "- at.day date 2026-01-01 to 2026-01-28",
    "- tags array of 1",
]


def test_a_title_above_a_table_is_shown_and_is_no_row():
    rows = "".join(f"{number},Leeds,{number % 7}\n" for number in range(200))
    shown = card("All orders, March\n\nNorth only\nid,city,weight\n" + rows).splitlines()
    assert shown[1] == "200 rows, 3 columns; 2 rows above the header left out: All orders, March North only:"
    assert shown[2] == "- id number 0 to 199"


def test_an_array_of_objects_is_a_table_with_paths_for_what_is_nested():
    shown = card(json.dumps(ROWS)).splitlines()
    assert shown[0].startswith("JSON, 1 line, ")
    assert shown[1:6] == TABLE
    assert shown[6].startswith("first rows (")
    assert shown[7:9] == [' 0 | failed | 2026-01-01 | ["a"]', ' 1 | ok | 2026-01-02 | ["a"]']
    assert steps(json.dumps(ROWS)) == [("query", "[?state=='failed']")]


def test_json_lines_are_a_table():
    text = "\n".join(map(json.dumps, ROWS))
    assert card(text).splitlines()[:6] == [f"JSON lines, 280 lines, {round(len(text) / 1000)} KB", *TABLE]


def test_tables_inside_a_document_have_their_pointers():
    text = json.dumps({"page": 1, "data": {"jobs": ROWS, "users": [{"name": "Ada"}, {"name": "Bo"}, {"name": "Cy"}]}})
    shown = card(text)
    assert '"/data/jobs": 280 rows, 4 columns:\n- id number 0 to 279\n- state text, ok 252, failed 28\n' in shown
    assert '"/data/users": 3 rows, 1 column:\n- name text, all different\nfirst rows:\n Ada\n Bo\n Cy' in shown
    assert steps(text) == [("query", "data.jobs[?state=='failed']")]


def test_cells_that_a_row_does_not_have_are_missing():
    shown = card(json.dumps([{"a": 1, "b": 2} if number % 4 else {"a": number} for number in range(400)]))
    assert "- b number, always 2; 25% missing" in shown


def test_delimited_rows_have_columns_with_ranges_and_frequent_values():
    rows = "".join(f'{number},"{"north" if number % 3 else "south"}",{number / 4},\n' for number in range(240))
    shown = card("id,region,price,note\n" + rows).splitlines()
    assert shown[1:6] == [
        "240 rows, 4 columns:",
        "- id number 0 to 239",
        "- region text, north 160, south 80",
        "- price number 0.0 to 59.75",
        "- note empty",
    ]
    assert shown[7:9] == [' 0,"south",0.0,', ' 1,"north",0.25,']


def test_of_equally_frequent_words_among_numbers_the_first_is_shown():
    rows = [f"{number},{number}" for number in range(300)]
    rows[100:100] = [f"x,{word}" for word in ("later", "withheld", "refused", "estimated", "lost", "open", "closed", "moved")]
    assert "but later once and 7 others" in card("\n".join(["id,amount", *rows]))


def test_rows_with_another_number_of_cells_are_counted():
    rows = "".join(f"{number},x,y\n" for number in range(350)) + "and now something else\n" * 40
    assert "; 40 rows with more or fewer cells than the header" in card("id,a,b\n" + rows)


def test_aligned_columns_and_markdown_tables_are_tables():
    pods = "NAME       READY   STATUS\n" + "".join(f"web-{number:05}   1/1     Running\n" for number in range(3_000))
    assert "3,000 rows, 3 columns, as seen in " in card(pods)
    assert "- STATUS text, only Running seen" in card(pods)
    assert "- STATUS text, always Running" in card(pods[:5000])
    marked = "| name | size |\n|---|---|\n" + "".join(f"| n{number} | {number} |\n" for number in range(200))
    assert "200 rows, 2 columns:\n- name text, all different\n- size number 0 to 199\n" in card(marked)


def test_a_page_that_is_a_table_is_a_table():
    rows = "".join(f"<tr><td>n{number}</td><td>{number}</td></tr>\n" for number in range(300))
    assert "300 rows, " in card(f"<html><body><table><tr><th>name</th><th>size</th></tr>\n{rows}</table></body></html>")


def test_a_service_log_has_times_levels_and_messages():
    lines = [f"2026-01-02 03:{n // 60:02}:{n % 60:02} INFO web.server request {n} served in {n % 9} ms" for n in range(1200)]
    lines[700] = "2026-01-02 03:11:40 ERROR web.pool cannot reach the database at 10.0.0.7"
    lines[900] = "2026-01-02 03:15:00 WARN web.pool reconnected after 3 tries"
    shown = card("\n".join(lines))
    assert shown.splitlines()[1:3] == [  # no summary: "40 ERROR" is not a count of errors
        "first time 2026-01-02 03:00:00, last 2026-01-02 03:19:59",
        "levels: INFO 1,198, ERROR 1, WARN 1",
    ]
    assert f"first error:\nL700\n {lines[699]}\n {lines[700]}\n {lines[701]}\n" in shown
    assert f"1,198× {lines[0]}" in shown
    assert f"L901 {lines[900]}" in shown
    assert steps("\n".join(lines)) == []


def test_the_first_error_is_shown_with_what_continues_it():
    lines = [f"2026-01-02 03:{n // 60:02}:{n % 60:02} INFO web.server request {n} served" for n in range(600)]
    lines[300:300] = ["2026-01-02 03:05:00 ERROR web.pool broke", "  at one", "  at two", "  at three"]
    assert "\n".join([" 2026-01-02 03:05:00 ERROR web.pool broke", "   at one", "   at two", "   at three"]) in card(
        "\n".join(lines)
    )


def test_a_build_log_has_what_failed_and_how_it_ends():
    made = [f"[{number}/900] Compiling module_{number}.c" for number in range(900)]
    text = "\n".join(
        [
            *made[:600],
            "part.c:12: error: unknown type name 'size'",
            "make: *** [Makefile:7: all] Error 2",
            "Done: build failed",
        ]
    )
    shown = card(text).splitlines()
    assert " Done: build failed" in shown
    assert " part.c:12: error: unknown type name 'size'" in shown
    assert " make: *** [Makefile:7: all] Error 2" in shown


def test_a_test_run_names_the_tests_that_failed():
    passed = [f"tests/test_{number}.py::test_one PASSED" for number in range(400)]
    text = "\n".join([*passed, "FAILED tests/test_9.py::test_two - assert 1 == 2", "==== 1 failed, 400 passed in 2.00s ===="])
    shown = card(text).splitlines()
    assert " ==== 1 failed, 400 passed in 2.00s ====" in shown
    assert " FAILED tests/test_9.py::test_two - assert 1 == 2" in shown


def test_equal_lines_are_folded():
    text = "starting\n" + "retry failed: error: refused\n" * 900 + "command failed with exit code 1\n"
    shown = card(text)
    assert shown.count("retry failed") == 3  # the first, before the end, and as a kind of line
    assert "900× retry failed" in shown
    assert " retry failed: error: refused\n(equal lines follow)" in shown


def test_json_that_is_no_table_has_its_shape():
    text = json.dumps({"name": "x", "versions": {f"1.{number}": {f"size{number}": number} for number in range(900)}})
    shown = card(text)
    assert '\nshape:\n object with 2 keys\n - name: "x"\n - versions: object with 900 keys\n   - 1.0: object with 1 key' in shown
    assert steps(text) == []


def test_objects_that_are_alike_and_lists_of_them_are_tables_with_their_keys():
    shown = card(json.dumps({"name": "x", "versions": {f"v{number}": {"size": number} for number in range(900)}}))
    assert '"/versions": 900 rows, 2 columns:\n- _key text, all different\n- size number 0 to 899\n' in shown
    found = {f"src/{number}.py": [{"line": line, "rule": "E501"} for line in range(2)] for number in range(50)}
    shown = card(json.dumps({**found, "src/last.py": []}))
    assert "\n100 rows, 3 columns:\n- _key text, " in shown
    assert "\n- line number 0 to 1\n- rule text, always E501\n" in shown


def test_words_around_json_are_shown_beside_its_table():
    shown = card(f"Found 500 rows:\n{json.dumps(ROWS)}\nDone in 3 s.\n").splitlines()
    assert shown[1:6] == TABLE
    assert shown[shown.index("Something else is above it:") + 1] == " Found 500 rows:"
    assert shown[shown.index("Something else follows it from line 3 on:") + 1] == " Done in 3 s."
    assert card(repr(ROWS)).splitlines()[1:6] == TABLE


def test_markdown_has_headings_with_lines():
    text = "# Guide\n\nHow to use it.\n\n" + "".join(f"## Part {n}\n\n{'Words follow here. ' * 20}\n\n" for n in range(30))
    shown = card(text)
    assert "\nL1 Guide\nL5  Part 0\nL9  Part 1\n" in shown
    assert "31 headings" in shown


def test_code_has_definitions_with_lines():
    text = "import os\n\n" + "".join(f"def step_{n}(x):\n    y = x + {n}\n    return y\n\n" for n in range(300))
    shown = card(text)
    assert "300 definitions (" in shown
    assert "\nL3 def step_0(x):\nL7 def step_1(x):\n" in shown


def test_a_diff_has_files_with_counts():
    hunk = "@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n" * 3
    text = "".join(f"diff --git a/f{n}.py b/f{n}.py\n--- a/f{n}.py\n+++ b/f{n}.py\n{hunk}" for n in range(60))
    shown = card(text)
    assert "60 changed files (" in shown
    assert "\nL1 +6 -3 a/f0.py b/f0.py\n" in shown


def test_search_results_have_files_with_counts():
    text = "".join(f"src/a{n % 3}.py:{n + 1}: found = {n}\n" for n in range(600)) + "src/b.py:1: found = 0\n"
    shown = card(text)
    assert "4 matched files, most first:\n200× src/a0.py\n200× src/a1.py\n200× src/a2.py\n1× src/b.py" in shown


def test_a_history_has_its_commits():
    text = "".join(f"commit {n:040x}\nAuthor: A <a@b.c>\nDate:   Thu\n\n    Mend part {n}\n\n" for n in range(300))
    shown = card(text)
    assert "300 commits (" in shown
    assert "L1 000000000 Mend part 0" in shown
