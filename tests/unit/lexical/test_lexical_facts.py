"""Labels and values of a page, which a question may call something else."""

from __future__ import annotations

from overspill.lexical.index import build
from overspill.lexical.select import select


def test_a_value_is_shown_whose_label_the_question_does_not_have():
    filler = "".join(f"<p>The lamp was shown in hall {n} and many people came.</p>" for n in range(30))
    facts = "".join(f"<tr><td>{label}</td><td>{value}</td></tr>" for label, value in (("Mass", "4.2 kg"), ("Tint", "ochre")))
    page = f"<html><body><h1>Lamp Aurora</h1>{filler}<table>{facts}</table><dl><dt>Maker</dt><dd>Orla Ltd</dd></dl></body></html>"
    text = select(build(page.encode()), "How heavy is the lamp Aurora?", max_tokens=1_000).text
    assert "4.2 kg" in text
    assert "Orla Ltd" in text
