"""What the engine reads in scripts of many languages, in histories, in listings of programs and under names."""

from __future__ import annotations

import json

import pytest

from overspill.lexical.index import build
from overspill.lexical.query import parse
from overspill.lexical.rank import rank
from overspill.lexical.rows.ordering import find_ordered_rows
from overspill.lexical.select import select

WRITINGS = "".join(f"запись {number} готова\n" for number in range(50)) + (
    "«Ошибка» на диске\nСЧЁТ ЗАКРЫТ\nÄRGER MIT ÖL\nσφάλμα δίσκου\n"
    "日本語のエラー: ディスクがいっぱい\n系统磁盘空间不足\n파일 오류가 났다\nข้อผิดพลาดในดิสก์\n"
)


@pytest.mark.parametrize(
    ("question", "line"),
    [
        ("ошибки диска", "«Ошибка» на диске"),
        ("счета", "СЧЁТ ЗАКРЫТ"),
        ("Ärger", "ÄRGER MIT ÖL"),
        ("öl", "ÄRGER MIT ÖL"),
        ("ΣΦΆΛΜΑ", "σφάλμα δίσκου"),
        ("ディスクのエラー", "日本語のエラー: ディスクがいっぱい"),
        ("磁盘不足", "系统磁盘空间不足"),
        ("空", "系统磁盘空间不足"),
        ("오류", "파일 오류가 났다"),
        ("ดิสก์", "ข้อผิดพลาดในดิสก์"),
    ],
)
def test_words_are_found_in_every_script(question: str, line: str) -> None:
    assert select(build(WRITINGS.encode()), question).text.split("\n", 1)[1] == f"{line}\n(matched 1 record, all shown)"


def test_the_rest_of_a_word_is_not_found_for_a_word() -> None:
    assert select(build("обычная запись\nKöln\n".encode()), "ная öln").matched == 0


def test_a_name_mentioned_in_passing_takes_nothing_from_standing_under_it() -> None:
    versions = {
        version: {"notes": {"text": "x" * 700}, "dist": {"tarball": f"pkg-{version}.tgz", "pad": "y" * 1_400}}
        for version in (f"{number}.{number}.{number}" for number in range(60))
    }
    data = json.dumps(versions).encode()
    index = build(data)
    scores = rank(index, parse("7.7.7")).scores
    mentioned, not_mentioned = data.index(b"pkg-7.7.7.tgz"), data.index(b'"notes"', data.index(b'"7.7.7"'))
    assert scores[index.outline.record_at(mentioned)] >= scores[index.outline.record_at(not_mentioned)]


HISTORY = "".join(
    f"commit {number:040x}\nAuthor: Ann <ann@example.org>\nDate:   Mon Jan {number % 28 + 1} 10:00:00 2026 +0000\n\n"
    f"    Change part {number}\n\n src/part_{number}.py | 2 +-\n {'README' if number in (7, 40) else 'docs'}.md | 8 ++\n\n"
    for number in range(60)
)


def test_a_commit_is_read_with_its_author_message_and_files() -> None:
    def whole(number: int) -> str:
        return (
            f"[L{9 * number + 1}]\ncommit {number:040x}\nAuthor: Ann <ann@example.org>\n"
            f"Date:   Mon Jan {number % 28 + 1} 10:00:00 2026 +0000\n\n"
            f"    Change part {number}\n\n src/part_{number}.py | 2 +-\n README.md | 8 ++\n"
        )

    selection = select(build(HISTORY.encode()), "which commits touched README.md", max_tokens=200)
    assert selection.text == f"{whole(7)}{whole(40)}(matched 2 records, all shown; common words not counted)"


def test_a_long_commit_is_cut_at_lines_under_its_name() -> None:
    files = "".join(f" src/module_{number}.py | 2 +-\n" for number in range(200))
    history = f"commit {1:040x}\n\n    Move all\n\n{files}\ncommit {2:040x}\n\n    Rest\n"
    found = select(build(history.encode()), "module_150", max_tokens=600).excerpts[0]
    assert found.locator.endswith(f" commit {0:032}…")
    assert found.text.startswith(" src/module_")


PROCESSES = """\
USER       PID %CPU %MEM    VSZ   RSS TTY      STAT START   TIME COMMAND
root         1  0.0  0.1  44844 16544 ?        SLl  04:26   0:08 /sbin/init --quiet and more
ann      22294 60.3  0.8 597848 20472 ?        R    11:53   0:07 python -m pytest
ann      30071 82.7  3.8 150329 95597 ?        RNl  11:23  24:52 python -m http.server
bob      30080  0.2 12.0 768204 25000 ?        SNs  11:23   0:05 python benchmark.py
"""
IMAGES = """\
NAME        SIZE     CREATED
beta        900MB    3 weeks ago
alpha       1.2GB    2 days ago
gamma       12kB     5 hours ago
"""


@pytest.mark.parametrize(
    ("output", "question", "row"),
    [
        (PROCESSES, "which process uses the most memory", "bob      30080"),
        (PROCESSES, "the process with the highest %CPU", "ann      30071"),
        (IMAGES, "which image has the largest size", "alpha       1.2GB"),
        (IMAGES, "which image has the smallest size", "gamma       12kB"),
        (IMAGES.replace("GB", " GB").replace("MB", " MB"), "which image has the largest size", "alpha       1.2 GB"),
    ],
    ids=["memory", "processor", "largest", "smallest", "units apart"],
)
def test_columns_are_ordered_whether_gaps_or_single_spaces_part_them(output: str, question: str, row: str) -> None:
    index, query = build(output.encode()), parse(question)
    first = find_ordered_rows(index, query, rank(index, query)).rows[0]
    assert output[index.outline.starts[first] :].startswith(row)


def test_what_a_tree_is_drawn_under_is_read_with_it() -> None:
    tree = "app\n" + "".join(f"├─┬ part-{number}\n│ ├── bolt-{number}\n│ └── nut-{number}\n" for number in range(60))
    found = select(build(tree.encode()), "what depends on nut-41", max_tokens=40)
    assert found.text.splitlines()[:4] == ["[L125]", "├─┬ part-41", "│ ├── bolt-41", "│ └── nut-41"]
