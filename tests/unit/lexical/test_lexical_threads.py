"""Threads in archives, trackers, channels and minutes: where one begins, and what in it answers a question about all of it."""

from __future__ import annotations

from overspill.lexical.index import build
from overspill.lexical.select import select

SUBJECTS = ("boiler", "gate", "roof", "lift", "cellar", "fence", "porch", "drain", "hedge", "stairs")


def write_issues(number: str, body: str = "{}") -> str:
    """Each about its own thing, with a reply that does not name it."""
    parts: list[str] = []
    for place, subject in enumerate(SUBJECTS):
        opening = f"The {subject} makes a noise when it rains, and nobody has looked at the {subject} since spring."
        reply = f"Ask the man in house {place + 20}, he has the tools."
        parts.append(number.format(100 + place) + "\n")
        parts.append(f"ann, 2023-03-{place + 10} 10:00:\n{body.format(opening)}\n")
        parts.append(f"bo, 2023-03-{place + 10} 11:00:\n{body.format(reply)}\n")
    return "\n".join(parts)


def test_a_page_that_quotes_messages_is_a_page():
    text = write_issues("Title: house {}", "<p>{}</p><p><em>Thanks</em></p>")
    assert build(f"<div>{text}</div>".encode()).kind == "html"


def test_a_list_that_is_asked_for_in_a_thread_may_be_in_a_reply():
    text = write_issues("#{} (closed)").replace("Ask the man in house 22, he has the tools.", "It hangs beside the door.")
    assert "beside the door" in select(build(text.encode()), "Where is the list of all roof repairs?", max_tokens=120).text


def test_notes_that_begin_with_a_hash_are_no_headings():
    said = [f"{('Ann', 'Bo')[turn % 2]}: The tomatoes are ripe, and that is all there is to say.\n" for turn in range(60)]
    said[10:50:10] = ["#NOTE#: they leave\n"] * 4
    assert build("".join(said).encode()).kind == "turns"
