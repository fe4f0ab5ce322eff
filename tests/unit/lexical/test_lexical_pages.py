"""Web pages: what they say about themselves in JSON, and what they say several times."""

from __future__ import annotations

import json

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import select

FACTS = json.dumps({"@type": "Recipe", "nutrition": {"sodiumContent": "776 mg", "sugarContent": "5 g"}, "author": "Ann Low"})


def page(*parts: str) -> bytes:
    filler = "".join(f"<p>Fold the dough {number} times and let it rest in a warm place.</p>\n" for number in range(200))
    return f"<!DOCTYPE html><html><body><h1>Corn cakes</h1>{filler}{''.join(parts)}</body></html>".encode()


@pytest.mark.parametrize("opening", ['<script type="application/ld+json">', "<SCRIPT class=a type='application/LD+JSON' >"])
def test_facts_that_a_page_has_for_programs_are_found(opening: str):
    data = page(f"{opening}{FACTS}</script>")
    found = select(build(data), "How much sodium do the corn cakes have?", max_tokens=200)
    assert "776 mg" in found.text
    assert all(excerpt.text.encode() == data[excerpt.start_byte : excerpt.end_byte] for excerpt in found.excerpts)


def test_facts_are_found_in_a_large_page():
    paragraphs = "<p>Nothing of interest is said in this paragraph.</p>\n" * 120_000
    data = page(paragraphs, f'<script type="application/ld+json">{FACTS}</script>', paragraphs)
    assert "776 mg" in select(build(data), "How much sodium do the corn cakes have?", max_tokens=300).text


@pytest.mark.parametrize("opening", ["<script>", '<script type="text/javascript">', '<script data-x="1">// ld+json\n'])
def test_other_scripts_stay_hidden(opening: str):
    found = select(build(page(f"{opening}{FACTS}</script>")), "How much sodium do the corn cakes have?", max_tokens=200)
    assert "776 mg" not in found.text


def test_what_repeats_a_better_record_comes_after_what_says_something_else():
    titles = [f"<h{number % 5 + 2}>Sain relay module &mdash; </h{number % 5 + 2}>\n<p>Buy it now</p>" for number in range(30)]
    data = page(*titles, "<p>Nothing else</p>" * 40, "<p>Each module: 14 ounces</p>")
    found = select(build(data), "Sain relay module", max_tokens=100)
    assert "14 ounces" in found.text


def test_repeats_are_shown_when_there_is_room():
    data = page("<h2>Sain relay</h2><p>Buy it now</p>" * 3)
    found = select(build(data), "Sain relay", max_tokens=2_000)
    assert found.text.count("Sain relay") == 3


VALUES = {
    "a term": "<dl>\n<dt class=a>\n Kudos:\n</dt>\n<dd>\n 7142\n</dd>\n<dt>Comments:</dt><dd>88</dd></dl>",
    "a term with blocks": "<dl><dt><div>Kudos</div></dt><dd><div><p>7142</p></div></dd></dl>",
    "a term without ends": "<dl><dt>Kudos<dd>7142</dd></dl>",
    "a row": "<table>\n<tr>\n<th>\n<div>Kudos</div></th>\n<td><div><span>7142</span></div>\n</td></tr></table>",
    "a cell with lines": "<table><tr><td>Kudos<br>of guests<br/></td><td>71<p>7142</p></td></tr></table>",
}


@pytest.mark.parametrize("shape", VALUES)
def test_a_value_is_shown_with_its_label(shape: str):
    found = select(build(page(VALUES[shape])), "How many kudos?", max_tokens=60)
    assert "7142" in found.text


def test_paragraphs_in_a_long_cell_stay_paragraphs():
    cell = "".join(f"<p>Knead for {number} minutes, then add {number} grams of butter.</p>" for number in range(100))
    found = select(build(page(f"<table><tr><td>{cell}<p>Glaze with saffron.</p></td></tr></table>")), "saffron", max_tokens=60)
    assert "99 grams of butter.\nGlaze with saffron.\n" in found.text
