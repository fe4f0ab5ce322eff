"""What models write where any text is the report: forgiven, and never misread in a way that loses the answer."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overspill.extraction.report import parse
from overspill.extraction.wrapper import strip

N = "0a1b2c3d4e5f"
TAG = f'<ai-agent-{N}-FINAL format="text">'
END = f"</ai-agent-{N}-FINAL>"
ANSWER = "Request 901 failed."
QUOTES = ("00901 GET /items/901 500", "connection reset by peer")
FORMS: dict[str, Callable[[str, str], str]] = {
    "plain": lambda answer, quotes: f"{answer}\n\nQUOTES:\n{quotes}",
    "wrapped": lambda answer, quotes: f"{TAG}{answer}\nQUOTES:\n{quotes}\n{END}",
    "quotes after the wrapper": lambda answer, quotes: f"{TAG}\n{answer}\n{END}\nQUOTES:\n{quotes}",
    "fenced": lambda answer, quotes: f"```text\n{answer}\nQUOTES:\n{quotes}\n```",
    "quotes fenced": lambda answer, quotes: f"{answer}\nQUOTES:\n```\n{quotes}\n```",
    "with a denial": lambda answer, quotes: f"{answer}\nNO RELEVANT DATA FOUND\nQUOTES:\n{quotes}",
    "with an echo": lambda answer, quotes: f"echo me\n{answer}\nECHO ME\n**Quotes**\n{quotes}",
    "after thinking": lambda answer, quotes: f"<think>QUOTES:\nno</think>{answer}\nQUOTES:\n{quotes}",
}
MARKS = ("> {}", "- {}", "{}", "1. {}", "• {}")


def read(text: str, **options: bool):
    return parse(strip(text, N), is_echo=lambda line: line.strip().lower() == "echo me", **options)


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_answer_and_quotes_are_found_in_every_form(form: Callable[[str, str], str], mark: str):
    report = read(form(ANSWER, "\n".join(mark.format(quote) for quote in QUOTES)))
    assert (report.answer, report.quotes, report.found) == (ANSWER, QUOTES, True)


@pytest.mark.parametrize(
    ("section", "numbers"),
    [
        ("QUOTES: 3, 7", (3, 7)),
        ("QUOTES: [3] [7]", (3, 7)),
        ("Quotes:\n- 3\n- 7", (3, 7)),
        ("Lines: 3-5", (3, 4, 5)),
        ("QUOTES:\nLines 3 and 7", (3, 7)),
        ("QUOTES:\n> 3| 00901 GET\n> 7| reset", (3, 7)),
        ("QUOTES: 1-999999999", ()),
        ("as [3] and (lines 7-8) say", (3, 7, 8)),
    ],
)
def test_lines_are_cited_by_number_in_many_ways(section: str, numbers: tuple[int, ...]):
    assert read(f"{ANSWER}\n{section}", has_numbers=True).numbers == numbers


@pytest.mark.parametrize("text", ["NO RELEVANT DATA FOUND", "**No relevant data found.**", f"{TAG}NO RELEVANT DATA FOUND{END}"])
def test_a_denial_alone_is_taken_as_such(text: str):
    assert not read(text).found


def test_where_only_sources_are_asked_for_no_heading_is_needed():
    assert read("3, 7", has_numbers=True, only_sources=True).numbers == (3, 7)
    assert read("a line", only_sources=True).quotes == ("a line",)
    assert not read("NO RELEVANT DATA FOUND", only_sources=True).found


MARKUP = "QUOTES: LINES: > - ``` [3] 3-9 <think> </think> word"
pieces = st.sampled_from([TAG, END, "\n", " ", "NO RELEVANT DATA FOUND", *MARKUP.split()])


@given(st.lists(pieces | st.text(max_size=8), max_size=30).map("".join), st.booleans(), st.booleans())
def test_no_text_breaks_the_parser_and_no_answer_is_made_up(text: str, has_numbers: bool, only_sources: bool):
    report = read(text, has_numbers=has_numbers, only_sources=only_sources)
    words = strip(text, N)
    assert all(line.strip() in words for line in report.answer.splitlines())
    assert all(quote in words for quote in report.quotes)


@pytest.mark.parametrize("piece", ["> ", "[1", "1, ", "QUOTES: ", "* ", "``` ", "(line 1-", "NO RELEVANT ", "- \n", "<think>"])
def test_a_long_report_is_read_in_linear_time(piece: str):
    report = read(piece * 20_000, has_numbers=True)
    assert len(report.numbers) <= 1000
