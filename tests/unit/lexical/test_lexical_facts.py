"""Labels and values of a page, which a question may call something else."""

from __future__ import annotations

from overspill.lexical.index import build
from overspill.lexical.select import select

FILLER = "".join(f"<p>The lamp was shown in hall {number} and many people came.</p>" for number in range(30))
FACTS = "".join(f"<tr><td>{label}</td><td>{value}</td></tr>" for label, value in (("Mass", "4.2 kg"), ("Tint", "ochre")))
PAGE = f"<html><body><h1>Lamp Aurora</h1>{FILLER}<table>{FACTS}</table><dl><dt>Maker</dt><dd>Orla Ltd</dd></dl></body></html>"


def test_values_are_shown_after_all_that_matches() -> None:
    text = select(build(PAGE.encode()), "In which hall was the lamp shown?", max_tokens=1_000).text
    assert "4.2 kg" in text
    assert "Orla Ltd" in text
    assert "4.2 kg" not in select(build(PAGE.encode()), "In which hall was the lamp shown?", max_tokens=150).text


def test_a_value_whose_label_the_question_does_not_have_is_shown_soon() -> None:
    text = select(build(PAGE.encode()), "How heavy is the lamp Aurora?", max_tokens=150).text
    assert "4.2 kg" in text
    assert "Orla Ltd" in text


def test_a_label_with_several_links_leads_elsewhere() -> None:
    links = "".join(
        f"<tr><td>Region {number}</td><td><a href='/a'>2007</a> <a href='/b'>2008</a></td></tr>" for number in range(9)
    )
    page = PAGE.replace("<table>", f"<table>{links}</table><table>")
    assert "2007" not in select(build(page.encode()), "How heavy is the lamp Aurora?", max_tokens=2_000).text
