"""The answer may be beside the words of the question: in the next turn, in the reply, in the line below a label."""

from __future__ import annotations

from overspill.lexical.index import build
from overspill.lexical.select import select


def ask(text: str, question: str, max_tokens: int = 120) -> str:
    return select(build(text.encode()), question, max_tokens=max_tokens).text


def chat(lines: list[str]) -> str:
    filler = [f"[10:{number % 60:02}] <u{number % 7}> the printer in room {number} is fine now" for number in range(300)]
    return "\n".join([*filler[:150], *lines, *filler[150:]]) + "\n"


def test_the_next_turn_of_a_chat_is_shown():
    lines = ["[11:01] <ann> where are the kernel headers?", "[11:02] <bob> under /usr/src, as always"]
    shown = ask(chat(lines), "Where are the kernel headers in a printer room?")
    assert "/usr/src" in shown


def thread(subject: str, question: str, reply: str) -> str:
    quoted = "".join(f"> {line}\n" for line in question.splitlines())
    return f"Thread: {subject}\n\nAnn Low, 2010-01-05 02:02:\n{question}\n\nBob Hay, 2010-01-06 05:37:\n{quoted}\n{reply}\n\n"


def test_a_reply_is_found_by_the_words_of_the_message_that_it_answers():
    threads = [
        thread(
            f"Part {number}", f"Does the pump of model {number} need oil\nor is water enough for it?", f"See page {number} there."
        )
        for number in range(60)
    ]
    threads[30] = thread(
        "Odd", "Why does the turbine valve stick after a cold night?", "Grease freezes there; take graphite instead."
    )
    shown = ask("".join(threads), "Why does a turbine valve stick, and does the pump need oil?", max_tokens=150)
    assert "take graphite" in shown


def test_a_value_in_the_line_below_its_label_is_shown():
    rows = "".join(f"<p>Market {number}</p><p>Stalls and fruit</p>" for number in range(200))
    page = f"<html><body>{rows}<div><div>Industry</div><div>Advertising Services</div></div>{rows}</body></html>"
    shown = ask(page, "Which industry is it in?")
    assert "Advertising Services" in shown


def test_the_row_beside_a_match_gains_nothing():
    rows = "".join(f"| name{number} | {number} |\n" for number in range(400))
    shown = ask("# Towns\n\n| town | people |\n|---|---|\n" + rows, "name200", max_tokens=60)
    assert "name200" in shown
    assert "name201" not in shown


def test_a_word_for_a_numbered_part_alone_on_its_line_is_an_underlined_heading():
    titles = ("Releases", "Schedule", "Article", "Licences")
    part = "{}\n--------\n\nNew versions of it are made on the first Tuesday of each month, as long as nothing bad is found.\n\n"
    text = "".join(map(part.format, titles)).encode()
    index = build(text)
    assert index.kind == "prose"
    labels = [text[start:].partition(b"\n")[0] for start in index.outline.label_starts]
    assert labels == [title.encode() for title in titles]


def test_an_underlined_heading_is_above_what_follows():
    words = ("and", "but", "nor", "so", "yet", "for", "as", "if", "when", "where", "while", "since", "once", "until", "unless")
    text = "".join(
        f"Part {word}\n---------\n\nWorkers of this part take from the queue what is oldest\n"
        f"{word} they put it back when they fail.\n\n"
        for word in words
    )
    text += "Deadlines\n---------\n\nAll of them end after nine minutes, even those that\nhave hardly begun to do anything.\n"
    found = select(build(text.encode()), "deadlines", max_tokens=60)
    assert "nine minutes" in found.text


def test_code_with_error_in_the_question_is_searched_for_its_words():
    """A question about a failure is answered from the end of a log, but not from the end of a source file."""
    blocks = [f"def step_{number}(a):\n    raise ValueError('step failed: {number}')\n\n\n" for number in range(300)]
    blocks[100] = "def open_link(address):\n    return address.split('explorer', 1)\n\n\n"
    found = select(build("".join(blocks).encode()), "Fix the wrong error for spaces in open_link", max_tokens=100)
    assert "address.split" in found.text


def test_a_long_number_is_looked_up_though_the_question_is_about_a_failure():
    lines = [f"2026-01-01 10:00:{number % 60:02} INFO worker {number} took a job" for number in range(400)]
    lines[120] = "2026-01-01 10:02:00 INFO socket 54321 was given to the importer"
    lines += ["2026-01-01 10:09:00 ERROR build failed", "make: *** [all] Error 1"]
    found = select(build("\n".join(lines).encode()), "who had socket 54321 when it failed", max_tokens=60)
    assert "given to the importer" in found.text
