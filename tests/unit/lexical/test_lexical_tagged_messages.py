"""Messages that are written in HTML."""

import re

import pytest

from overspill.lexical.index import build
from overspill.lexical.reply.render import render
from overspill.lexical.select import select

GREETING = "<p>Good morning, and thank you for the <strong>quick</strong> help last week.</p>"


def archive(*bodies: str) -> bytes:
    return "\n\n".join(f"Writer{number}, 2024-03-05 10:{number:02}:\n{body}" for number, body in enumerate(bodies)).encode()


def records(content: bytes) -> list[str]:
    index = build(content)
    return [render(index, *span) for span in zip(index.outline.starts, index.outline.ends, strict=True)]


@pytest.mark.parametrize(
    ("body", "paragraphs"),
    [
        ("<p>The kettle leaks.</p>\n<p>Its seal is <em>worn</em>.</p>", ["The kettle leaks.", "Its seal is worn."]),
        ("<p>The kettle leaks.</p><p>Its seal is worn.</p>", ["The kettle leaks.", "Its seal is worn."]),
        ("The kettle leaks.<br>\n<br>\nIts seal is worn.", ["The kettle leaks.", "Its seal is worn."]),
        ("The kettle leaks.<br />\nIts seal is worn.<br />", ["The kettle leaks.\nIts seal is worn."]),
        ("The kettle leaks.<br>Its seal is worn.", ["The kettle leaks.\nIts seal is worn."]),
        ("<ul>\n<li>kettle</li>\n<li>seal</li>\n</ul>", ["kettle\nseal"]),
        ('<p>See <a href="https://example.org/seal" rel="nofollow">the manual</a>.</p>', ["See the manual."]),
        ("<p>Type <code>seal --new</code> there.</p>", ["Type <code>seal --new</code> there."]),
        ('<pre><code class="lang-c">if (a)\n    b();\n</code></pre>', ["if (a)\n    b();"]),
        ("<p>A <Seal> of ann@example.org</p>", ["A <Seal> of ann@example.org"]),
    ],
)
def test_paragraphs_are_read_without_tags(body: str, paragraphs: list[str]) -> None:
    found = records(archive(GREETING, GREETING, GREETING, body))
    assert [text.removeprefix("Writer3, 2024-03-05 10:03:\n").strip() for text in found[3:]] == paragraphs


def test_a_small_budget_holds_more_of_a_thread() -> None:
    link = '<a href="https://example.org/boards/kettles/topic-{0}?page=2" class="inline" rel="nofollow noopener">topic {0}</a>'
    asked = f"<p>Why does my kettle whistle before it boils? I read {link.format(7)} and {link.format(8)}.</p>"
    answer = f"<p>{link.format(9)}<br>\n{link.format(10)}<br>\nThe lid lets steam escape too early.</p>"
    content = archive(*[GREETING] * 6, asked, answer, *[GREETING] * 6)
    shown = select(build(content), "Why does my kettle whistle before it boils?", max_tokens=90).text
    assert "The lid lets steam escape too early." in shown


def test_tags_that_messages_are_about_stay() -> None:
    plain = "Which element ends a line? I think\nit has no end, and so I never close it\nin my pages.\nIs that right?"
    content = archive(*[plain] * 6, "Use <br> for it, and <p> for paragraphs.")
    assert records(content)[-1].endswith("Use <br> for it, and <p> for paragraphs.")


def test_positions_are_those_of_the_source() -> None:
    content = archive(*[GREETING] * 4, "<p>The <b>seal</b> is worn.</p>")
    index = build(content)
    found = re.search(rb"is worn", content)
    assert found
    assert index.text[found.start() : found.end()] == b"is worn"
    assert len(index.text) == len(content)
