"""Cards of data that repeats: whatever a card says, with or without "seen", is compared with all of the output."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence

import pytest

from overspill.gate.cards.make import make_card
from overspill.store.meter import size_of

LANGUAGES = ("Python", "Rust", "Go", "Zig", "Java", "Perl", "Lua")
Row = dict[str, str]


def write_card(text: str) -> str:
    data = text.encode()
    return make_card(lambda start, end: data[start:end], size_of(text, None)).write(10_000, lambda shown: len(shown) // 4)


def make_rows(count: int, period: int) -> list[Row]:
    """Values that come in turn, in turn after runs, nearly always, always, and never twice."""
    return [
        {
            "language": LANGUAGES[n % period],
            "run": f"r{n // 3 % period}",
            "state": "failed" if n % 500 == 499 else "ok",
            "zone": "north",
            "name": f"n{n}x",
            "size": str(n),
        }
        for n in range(count)
    ]


def as_csv(rows: Sequence[Row], mark: str = ",") -> str:
    return "\n".join([mark.join(rows[0]), *(mark.join(row.values()) for row in rows)]) + "\n"


def as_json(rows: Sequence[Row]) -> str:
    return json.dumps(rows)


def as_json_lines(rows: Sequence[Row]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def as_document(rows: Sequence[Row]) -> str:
    return json.dumps({"page": 1, "items": rows})


def as_markdown(rows: Sequence[Row]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (list(rows[0]), ["---"] * len(rows[0]), *(row.values() for row in rows))]
    return "\n".join(lines) + "\n"


def as_aligned(rows: Sequence[Row]) -> str:
    return (
        "\n".join("".join(f"{cell.upper():12}" for cell in row).rstrip() for row in ([*rows[0]], *map(dict.values, rows))) + "\n"
    )


TABLES: dict[str, Callable[[Sequence[Row]], str]] = {
    "csv": as_csv,
    "tsv": lambda rows: as_csv(rows, "\t"),
    "json": as_json,
    "json lines": as_json_lines,
    "document": as_document,
    "markdown": as_markdown,
    "aligned": as_aligned,
}


def number(text: str) -> int:
    return int(text.replace(",", ""))


def check_column(said: str, cells: list[str]) -> None:
    """What a card says of one column, against all cells of it."""
    counts = Counter(cells)
    words = said.removesuffix(" seen")
    is_exact = words == said
    if always := re.search(r", (always|only) (\S+)$", words):
        assert (always[1] == "always") == is_exact, said
        assert always[2] in counts, said
        assert not is_exact or counts == {always[2]: len(cells)}, said
    elif words.endswith("all different"):
        assert is_exact, said
        assert len(counts) == len(cells), said
    elif different := re.search(r", ([\d,]+) different$", words):
        assert number(different[1]) == len(counts) if is_exact else number(different[1]) <= len(counts), said
    elif span := re.search(r"numbers? (\d+) to (\d+)$", words):
        low, high = min(map(int, cells)), max(map(int, cells))
        assert (int(span[1]), int(span[2])) == (low, high) if is_exact else low <= int(span[1]) <= int(span[2]) <= high, said
    else:
        named = re.findall(r", (\w+) (?:([\d,]+)(?!%)|(?:under )?(\d+)%|over 99%)(?=,|$)", words)
        others = re.search(r", ([\d,]+) others?$", words)
        assert named, said
        assert bool(others and number(others[1])) == (len(named) < len(counts)) or not is_exact, said
        for value, times, share in named:
            assert bool(times) == is_exact, said
            assert counts[value] == number(times) if times else abs(counts[value] / len(cells) - int(share or 99) / 100) < 0.08, (
                said
            )


def check_table(shown: str, rows: list[Row]) -> None:
    title = re.search(r"(at least )?([\d,]+) rows, (at least )?([\d,]+) columns(, as seen in ([\d,]+) of [^:(\n]*)?", shown)
    assert title, shown
    assert number(title[2]) <= len(rows) if title[1] else number(title[2]) == len(rows), title[0]
    assert number(title[4]) == len(rows[0])
    lines = re.findall(r"^- (.*)$", shown, re.M) or shown[title.end() :].partition(". Its rows")[0].strip(": ").split("; ")
    described = {line.split()[0].lower(): line for line in lines}
    assert len(described) == len(rows[0]), shown
    for column, said in described.items():
        assert said.endswith(" seen") == bool(title[5]), said
        check_column(said, [row[column] for row in rows])


@pytest.mark.parametrize("kind", TABLES)
@pytest.mark.parametrize("period", [2, 3, 4, 7])
@pytest.mark.parametrize("count", [300, 3_400])
def test_the_card_of_a_table_that_repeats_says_nothing_false(kind: str, period: int, count: int):
    rows = make_rows(count, period)
    if kind == "aligned":
        rows = [{key: value.upper() for key, value in row.items()} for row in rows]
    check_table(write_card(TABLES[kind](rows)), rows)


@pytest.mark.parametrize("kind", ["csv", "json lines"])
def test_the_card_of_a_table_that_was_sampled_says_nothing_false(kind: str):
    rows = make_rows(45_000 if kind == "json lines" else 12_000, 4)
    shown = write_card(TABLES[kind](rows))
    assert "Sampled: " in shown
    check_table(shown, rows)


MESSAGES = ("served a page", "opened a door", "closed a door", "lost a key")
LEVELS = ("INFO", "DEBUG", "WARN", "INFO", "ERROR")


def make_log(count: int, period: int) -> list[str]:
    """Long stretches of one message, and some that only come far from each other."""
    return [
        f"2026-01-02 03:{n // 60 % 60:02}:{n % 60:02} {LEVELS[n // 700 % period]} app.web "
        + ("rarely seen " + "abcdefgh"[n // 997 % 8] if n % 997 == 500 else MESSAGES[n // 50 % 4])
        for n in range(count)
    ]


def said_of_what_was_read(title: str, *, is_sampled: bool) -> bool:
    """Whether a statement is only about what was read. It must say so if and only if that is not everything."""
    assert (" in what was read" in title) == is_sampled, title
    return is_sampled


@pytest.mark.parametrize("count", [900, 3_000, 40_000])
@pytest.mark.parametrize("period", [2, 3, 5])
def test_the_card_of_a_log_that_repeats_says_nothing_false(count: int, period: int):
    lines = make_log(count, period)
    shown = write_card("\n".join(lines) + "\n")
    is_sampled = "Sampled: " in shown
    assert is_sampled == (count == 40_000)
    kinds = Counter((line.split()[2], line.partition("app.web ")[2]) for line in lines)

    levels = re.search(r"^levels[^:]*: (.*)$", shown, re.M)
    assert levels
    counted = {level: number(times) for level, times in re.findall(r"(\w+) ([\d,]+)", levels[1])}
    truth = Counter(line.split()[2] for line in lines)
    if said_of_what_was_read(levels[0], is_sampled=is_sampled):
        assert all(times <= truth[level] for level, times in counted.items())
    else:
        assert counted == truth

    for title in re.findall(r"^(?:first time|first error|[\d,]+ kinds? of|occurring once or twice).*$", shown, re.M):
        said_of_what_was_read(title, is_sampled=is_sampled)
    often = re.findall(r"^([\d,]+)× (.*)$", shown, re.M)
    assert often
    for times, line in often:
        true_times = kinds[line.split()[2], line.partition("app.web ")[2]]
        assert number(times) <= true_times if is_sampled else number(times) == true_times
    for line in [] if is_sampled else re.findall(r"^L\d+ (.*)$", shown.partition("occurring once or twice")[2], re.M):
        assert kinds[line.split()[2], line.partition("app.web ")[2]] <= 2


OUTLINES: dict[str, tuple[Callable[[int], str], str]] = {
    "code": (lambda n: f"def step_{n}(x):\n    y = x + {n}\n    return y\n\n", r"([\d,]+) definitions"),
    "history": (
        lambda n: f"commit {n:040x}\nAuthor: A <a@b.c>\nDate:   Thu\n\n    Mend part {n}\n\n",
        r"([\d,]+) commits",
    ),
    "diff": (
        lambda n: f"diff --git a/f{n}.py b/f{n}.py\n--- a/f{n}.py\n+++ b/f{n}.py\n@@ -1,2 +1,3 @@\n a\n-b\n+c\n+d\n",
        r"([\d,]+) changed files",
    ),
    "matches": (lambda n: f"src/a{n}.py:{n + 1}: found = {n}\n", r"([\d,]+) matched files"),
    "headings": (lambda n: f"## Part {n}\n\n{'Words follow here. ' * 9}\n\n", r"([\d,]+) headings"),
}


@pytest.mark.parametrize("kind", OUTLINES)
@pytest.mark.parametrize("count", [120, 9_000])
def test_an_outline_counts_everything_or_says_that_it_did_not(kind: str, count: int):
    part, claim = OUTLINES[kind]
    shown = write_card("".join(map(part, range(count))))
    found = re.search(rf"^{claim}.*$", shown, re.M)
    assert found, shown[:1000]
    if said_of_what_was_read(found[0], is_sampled="Sampled: " in shown):
        assert number(found[1]) < count
    else:
        assert number(found[1]) == count


def test_the_elements_of_xml_are_counted_or_said_not_to_be():
    for count in (200, 30_000):
        shown = write_card("<all>\n" + "".join(f"<item{n % 4}>{n}</item{n % 4}>\n" for n in range(count)) + "</all>\n")
        title = re.search(r"^(\d+) element names.*$", shown, re.M)
        assert title
        is_sampled = said_of_what_was_read(title[0], is_sampled="Sampled: " in shown)
        times = dict(re.findall(r"^([\d,]+)× item(\d)$", shown, re.M))
        assert times
        assert all(number(each) < count / 4 if is_sampled else number(each) == count / 4 for each in times)


@pytest.mark.slow
def test_the_shape_of_json_that_was_cut_off_is_that_of_what_was_read():
    shown = write_card(json.dumps({f"key{n}": {f"size{n}": n, f"name{n}": f"n{n}"} for n in range(200_000)}))  # no rows
    assert "Sampled: " in shown
    assert "\nshape of what was read:\n object with " in shown


def test_a_last_line_that_is_cut_at_its_beginning_says_so():
    lines = [f"2026-01-02 03:04:05 INFO message {n} " + "with many words " * 25 + f"end {n}" for n in range(300)]
    shown = write_card("\n".join(lines) + "\n").partition("last lines:\n")[2].split("\n")[:3]
    assert all(line[1:].startswith(("2026-01-02", "…")) for line in shown)


@pytest.mark.parametrize("write", [as_csv, as_json_lines, as_document])
def test_words_for_nothing_are_missing_only_among_numbers(write: Callable[[Sequence[Row]], str]):
    rows = [
        {"auth": "none", "land": "NA" if n % 2 else "DE", "size": "-" if n % 2 else str(n), "x": "" if n % 2 else "y"}
        for n in range(50)
    ]
    size = "number" if write is as_csv else "text, numbers"  # JSON says that these are strings
    described = f"- auth text, always none\n- land text, DE 25, NA 25\n- size {size} 0 to 48; 50% missing\n"
    assert f"{described}- x text, always y; 50% missing\n" in write_card(write(rows))


@pytest.mark.parametrize("value", ["1e400", "-1E+999", "123456789012345678901234567890"])
def test_a_row_with_an_unusual_value_is_read_too(value: str):
    rows = [f'{{"id": {n}, "x": {value if n % 2 else 5}}}' for n in range(20)]
    card = write_card(f"[{', '.join(rows)}]")
    assert "- id number 0 to 19\n" in card
    assert "missing" not in card
    assert card.count(value.strip('"')) > 1


def test_lines_that_differ_behind_what_is_shown_are_not_called_equal():
    steps = "".join(f"2024-01-01 10:00:{n % 60:02d} INFO step {n} is done\n" for n in range(99))
    failed = "".join(f"error: {'x' * 250} {end}\n" for end in ("one", "two", "two"))
    card = write_card(f"{steps}{failed}make: *** [all] Error 2\n")
    shown = f" error: {'x' * 233}…\n"
    assert f"{shown}{shown}(equal lines follow)\n make: " in card
    event = "".join(f"  at {'x' * 250} {end}\n" for end in ("one", "two", "two"))
    card = write_card(f"{steps}2024-01-01 10:02:00 ERROR broke\n{event}{steps}")
    shown = f"   at {'x' * 235}…\n"
    assert f"{shown}{shown}(equal lines follow)\n" in card
