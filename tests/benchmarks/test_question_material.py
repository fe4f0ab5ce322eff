"""How questions are made of their material: fixes, labels, sections, tables, lists; and how full-text search cuts a document."""

from __future__ import annotations

import os
import subprocess
import tarfile
from itertools import pairwise
from pathlib import Path

import pytest

from benchmarks.questions.kinds.code import as_entry, changed_lines, clean_message
from benchmarks.questions.kinds.lists import combine, get
from benchmarks.questions.kinds.threads import find_quote
from benchmarks.questions.labels import find_labels
from benchmarks.questions.passages import FullTextIndex, Span, cut_windows, fill, merge
from benchmarks.questions.sections import find_sections, split_sentences, without_headings
from benchmarks.questions.sources import Package, Repository, SourceMissing, Sources
from benchmarks.questions.tables import as_value, open_tables, render, run_script

MESSAGE = """printer: fix colors on empty matches (#123)

An empty match at the end of a line was
coloured as if it were a space.

Fixes #99
"""
PAGE = """# FAQ

* [Is it fast?](#fast)

## Is it fast?

Yes. It is faster than everything else that we have measured so far. See the
figures for details.

```
# Is it fast?
```

## Limits

There are no limits that you would notice in daily work.
"""


def test_windows_cover_the_whole_text_and_overlap() -> None:
    text = "".join(f"line {number}\n" for number in range(500)) + "x" * 2000 + "\nend"
    windows = cut_windows(text)
    assert windows[0].start == 0
    assert windows[-1].end == len(text)
    assert all(left.start < right.start <= left.end for left, right in pairwise(windows))
    assert max(end - start for start, end in windows) < 900


def test_an_empty_text_has_no_windows() -> None:
    assert cut_windows("") == []


def test_spans_that_touch_are_merged() -> None:
    assert merge([Span(5, 9), Span(0, 2), Span(2, 4), Span(8, 12)]) == [Span(0, 4), Span(5, 12)]


def test_the_best_spans_are_shown_in_the_order_of_the_text_and_within_the_budget() -> None:
    assert fill("abcdefghij" * 10, [Span(90, 92), Span(0, 3), Span(10, 60)], 15) == "abc\n[...]\nab"


@pytest.mark.parametrize("tokenizer", ["porter", "trigram"])
def test_full_text_search_finds_the_needle(tokenizer: str) -> None:
    text = "".join(f"hay {number}\n" for number in range(5000)) + "a needle is here\n" + "more hay\n" * 5000
    index = FullTextIndex(text, "porter" if tokenizer == "porter" else "trigram")
    assert "needle is here" in index.search('where is the "needle"?', 500)
    assert index.search("is it the one?", 500) == ""


def test_a_message_loses_numbers_and_trailers() -> None:
    assert clean_message(MESSAGE) == (
        "printer: fix colors on empty matches. An empty match at the end of a line was coloured as if it were a space."
    )


def test_an_explanation_that_introduces_an_example_is_dropped() -> None:
    assert clean_message("Fix the cache\n\nBefore this change:\n\n    $ run\n") == "Fix the cache"


def test_changed_lines_are_those_that_are_removed_and_there_only_once() -> None:
    difference = "--- a/x\n+++ b/x\n-    total = count + 1\n-# a gone comment here\n-return self.value\n-x = 1\n+total = count\n"
    before = "    total = count + 1\n# a gone comment here\nreturn self.value\nreturn self.value\nx = 1\n"
    assert changed_lines(difference, before) == ("total = count + 1",)


def git(folder: Path, *arguments: str) -> str:
    environment = os.environ | {
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()


def test_a_fix_in_a_mirrored_repository_becomes_a_question(tmp_path: Path) -> None:
    folder = tmp_path / "mirror/pallets+click"
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet")
    for name, line in (("a.py", "answer = 41 + 0  # wrong"), ("b.py", "unrelated = True")):
        (folder / name).write_text(line + "\n" + "padding = 0\n" * 2000, encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "Begin")
    (folder / "a.py").write_text("answer = 42\n" + "padding = 0\n" * 2000, encoding="utf-8")
    git(folder, "commit", "--quiet", "-a", "-m", "Fix the answer (#7)")
    pick = {"repo": "pallets/click", "commit": git(folder, "rev-parse", "HEAD"), "path": "a.py"}

    entry = as_entry(pick, Sources(tmp_path / "cache", tmp_path / "mirror"), "BSD-3-Clause", is_search=False)

    assert entry.question.question == "Which line has to change for this? Fix the answer"
    assert entry.question.answers == ("answer = 41 + 0  # wrong",)
    assert entry.text.startswith("==> a.py <==\nanswer = 41")
    assert "==> b.py <==\nunrelated = True" in entry.text

    found = as_entry(pick, Sources(tmp_path / "cache", tmp_path / "mirror"), "BSD-3-Clause", is_search=True)
    assert found.text == entry.text  # no word of the line is found often enough


def test_a_commit_that_the_mirror_lacks_is_told(tmp_path: Path) -> None:
    (tmp_path / "mirror/a/b").mkdir(parents=True)
    git(tmp_path / "mirror/a/b", "init", "--quiet")
    source = Sources(tmp_path / "cache", tmp_path / "mirror").git(Repository("a/b", "0" * 40, "MIT"))
    with pytest.raises(SourceMissing, match=r"git cat-file blob 0000.*fetch it"):
        source.read("x")


def test_a_file_that_a_package_lacks_is_told(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "p-1.tgz", "w:gz"):
        pass
    with pytest.raises(SourceMissing, match=r"p 1 has no file data\.json"):
        Sources(tmp_path, None).read_package(Package("p", "1", "MIT"), "data.json")


def test_labels_are_found_in_rows_lists_and_bold_words() -> None:
    page = """<table><tr><th>Item <b>Weight</b></th><td><span>5 g</span></td></tr><tr><td>a</td><td>b</td><td>c</td></tr></table>
    <dl><dt>Founded:</dt><dd>2011</dd></dl><p><strong>Coach:</strong> <a href="x">Jane Doe</a> (2nd)</p><p><b>Note</b> that</p>
    <script>var x = "<b>Not:</b> this"</script>"""
    assert find_labels(page) == [("Item Weight", "5 g"), ("Founded", "2011"), ("Coach", "Jane Doe")]


def test_sections_have_the_sentences_below_their_headings() -> None:
    first, second, third = find_sections(PAGE, is_markdown=True)
    assert (first.heading, second.heading, third.heading) == ("FAQ", "Is it fast?", "Limits")
    assert second.sentences(PAGE) == ["It is faster than everything else that we have measured so far."]


def test_underlined_headings_are_sections_too() -> None:
    page = "FAQ\n===\n\nIs ``it`` fast?\n---------------\n\nIt is as fast as it has to be, and then some more.\n"
    assert [section.heading for section in find_sections(page, is_markdown=False)] == ["FAQ", "Is it fast?"]


def test_a_heading_is_taken_out_together_with_its_line_in_the_contents() -> None:
    left = without_headings(PAGE, {"Is it fast?"}, is_markdown=True)
    assert left.count("Is it fast?") == 1  # in the code, which is no heading
    assert "faster than everything" in left
    assert "## Limits" in left


def test_code_and_lists_are_no_sentences() -> None:
    item, code, more = (f"{words} that is long enough to be taken for a sentence." for words in ("An item", "Code", "More code"))
    text = f"- {item}\n\n```\n{code}\n\n{more}\n```\n"
    assert split_sentences(text) == []


def test_a_query_follows_ids_through_tables_and_lists_of_ids() -> None:
    tables = run_script("CREATE TABLE a (id, name, picture); INSERT INTO a VALUES (1, 'x', x'00'), (2, 'y', NULL);")
    assert tables == {"a": [{"id": 1, "name": "x"}, {"id": 2, "name": "y", "picture": None}]}
    tables["b"] = [{"of": [2, 1], "label": "both"}]
    rows = open_tables(tables).execute("SELECT a.name FROM b, json_each(b.of) e JOIN a ON a.id = e.value ORDER BY e.key")
    assert rows.fetchall() == [("y",), ("x",)]


def test_tables_are_written_a_row_a_line() -> None:
    assert render({"a": [{"x": 1}, {"x": "ü"}]}, None) == '{"a": [\n{"x": 1},\n{"x": "ü"}\n]}\n'


def test_numbers_and_nothing_are_told_from_text() -> None:
    assert [as_value(text) for text in ("12", "-3", "0", "007", "1.5", "\\N", "")] == [12, -3, 0, "007", "1.5", None, ""]


def test_a_filter_needs_all_of_its_conditions() -> None:
    objects = [
        {"size": "L", "kind": {"name": "elf"}, "id": "a"},
        {"size": "L", "kind": {"name": "elf"}, "id": "b"},
        {"size": "L", "kind": {"name": "orc"}, "id": "c"},
        {"size": "S", "kind": {"name": "elf"}, "id": "d"},
        {"size": "M", "kind": {"name": "imp"}, "id": "e"},
        {"size": "M", "kind": {"name": "imp"}, "id": "f"},  # the kind alone would do
    ]
    assert combine(objects, ["size", "kind.name"], "id") == {("L", "elf"): ["a", "b"]}


@pytest.mark.parametrize(
    ("path", "value"), [("a.0.b", "7"), ("a.1", None), ("a", None), ("x.y", None), ("s.0", None), ("n", None)]
)
def test_a_path_leads_to_a_simple_value_or_to_none(path: str, value: str | None) -> None:
    assert get({"a": [{"b": 7}], "s": "text", "n": None}, path) == value


def test_a_quote_is_found_over_line_breaks() -> None:
    assert find_quote("He said:\nuse (the\n  other) one.", "use (the other) one") == "use (the\n  other) one"
    assert find_quote("nothing", "use it") is None
