"""Labels and values of a page, which a question may call something else."""

from __future__ import annotations

import string

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import select

FILLER = "".join(f"<p>The lamp was shown in hall {number} and many people came.</p>" for number in range(30))
FACTS = "".join(f"<tr><td>{label}</td><td>{value}</td></tr>" for label, value in (("Mass", "4.2 kg"), ("Tint", "ochre")))
PAGE = f"<html><body><h1>Lamp Aurora</h1><dl><dt>Maker</dt><dd>Orla Ltd</dd></dl>{FILLER}<table>{FACTS}</table></body></html>"


def test_values_are_shown_after_all_that_matches() -> None:
    text = select(build(PAGE.encode()), "In which hall was the lamp shown?", max_tokens=1_000).text
    assert "4.2 kg" in text
    assert "Orla Ltd" in text
    assert "4.2 kg" not in select(build(PAGE.encode()), "In which hall was the lamp shown?", max_tokens=150).text


def test_a_value_whose_label_the_question_does_not_have_is_shown_soon() -> None:
    assert "4.2 kg" in select(build(PAGE.encode()), "How heavy is the lamp Aurora?", max_tokens=150).text


def test_facts_are_shown_if_no_word_of_the_question_is_on_the_page() -> None:
    found = select(build(PAGE.encode()), "Which colour has it got?", max_tokens=150)
    assert "ochre" in found.text
    assert "no record matched by its words" in found.text
    assert found.confidence < 0.3


SPECIFICATIONS = "".join(
    f"<li>{label}: {value}</li>"
    for label, value in (("Hue", "ochre"), ("Maker", "Orla"), ("Stem", "1.40 m"), ("Launch", "3 May 2019"), ("Home", "Bergen"))
)
REVIEWS = "".join(
    f"<p>I like the Orchid Tern, says reader {number}, and so does my cat, every evening.</p>" for number in range(40)
)
PRODUCT = f"<html><title>Orchid Tern - shop</title><body>{REVIEWS}<ul>{SPECIFICATIONS}</ul></body></html>"


@pytest.mark.parametrize(
    ("question", "value"),
    [
        ("How tall is the Orchid Tern?", "1.40 m"),
        ("Wie hoch ist die Orchid Tern?", "1.40 m"),
        ("Since when can one buy the Orchid Tern?", "3 May 2019"),
        ("什么时候 Orchid Tern", "3 May 2019"),
    ],
)
def test_a_value_of_the_sort_that_is_asked_for_comes_before_others(question: str, value: str) -> None:
    traits = "".join(f"<li>Trait {letter}: as it was made {letter}</li>" for letter in string.ascii_letters)
    page = PRODUCT.replace("<ul>", f"<p>The Orchid Tern has a stem, and one can buy it anywhere.</p><ul>{traits}")
    assert value in select(build(page.encode()), question, max_tokens=200).text


def test_words_of_the_title_find_less_than_others() -> None:
    page = PRODUCT.replace("</ul>", "</ul><p>Its shade was woven by the shepherd Odd.</p>")
    assert "shepherd Odd" in select(build(page.encode()), "Who wove the shade of the Orchid Tern?", max_tokens=100).text


def test_if_only_words_of_the_title_are_found_facts_come_first() -> None:
    text = select(build(PRODUCT.encode()), "Orchid Tern colour?", max_tokens=100).text
    assert "Hue: ochre" in text


def test_a_question_about_the_title_alone_is_answered_by_what_has_it() -> None:
    page = "<html><title>Orchid Tern</title><body><p>Orchid Tern is a lamp.</p><p>Hue: ochre</p></body></html>"
    assert "is a lamp" in select(build(page.encode()), "Orchid Tern", max_tokens=60).text


def test_the_label_of_a_field_is_kept_apart_from_its_value() -> None:
    row = "<tr><td><label>Gross</label><span>12.50</span></td><td><label>Levy</label><span>0.75</span></td></tr>"
    page = PRODUCT.replace("<ul>", f"<table>{row}</table><ul>")
    assert "Levy 0.75" in select(build(page.encode()), "How much of the Orchid Tern is tax?", max_tokens=200).text


_REPORT = "".join(f"<p>The barge lay at pier {number} while its crew waited for the tide.</p>" for number in range(40))


@pytest.mark.parametrize(
    "form",
    [
        "<tr><td>{}</td><td>{}</td></tr>",
        '<div class="row"><div class="field__label">{}</div>\n <div class="field__item">{}</div></div>',
        "<div class='dataTitle'>{}</div><div>{}</div>",
        '<p class="spec-name"><b>{}</b></p> <p>{}</p>',
        '<div class="key">{}</div>\n{}<br>',
    ],
)
def test_facts_that_stand_together_are_shown_beside_long_text_in_the_words_of_the_question(form: str) -> None:
    facts = (("Proprietor", "Holm Brothers"), ("Yard", "Kelso Docks"), ("Tonnage", "120 t"), ("Flag", "Norway"))
    sheet = "".join(form.format(label, value) for label, value in facts)
    page = f"<html><body><h1>Inquiry</h1>{_REPORT}{sheet}</body></html>"
    shown = select(build(page.encode()), "Whom did the barge belong to?", max_tokens=250).text
    assert "Holm Brothers" in shown
    assert "pier" in shown


def test_a_list_of_times_is_no_sheet() -> None:
    times = "".join(f"<p>18:{minute} The bell rings</p>" for minute in range(10, 50))
    page = f"<html><body>{_REPORT}{times}</body></html>"
    shown = select(build(page.encode()), "Whom did the barge belong to?", max_tokens=250).text
    assert "bell" not in shown


def test_an_option_of_a_form_is_no_fact() -> None:
    options = "".join(f"<div><input type=checkbox><label>Shelf {year}</label></div>" for year in range(2000, 2030))
    page = f"<html><body>{_REPORT}<form>{options}</form><p>Launched: 1957</p></body></html>"
    shown = select(build(page.encode()), "When did the barge come to the pier?", max_tokens=150).text
    assert "Shelf" not in shown
