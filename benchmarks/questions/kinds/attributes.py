"""Attribute pages as HTML: a label asks, its value answers. The pages are fixtures of scrapers, saved from real sites.

Where the scraper's own tests have the expected values as JSON beside the page, a key of it names the attribute.
"""

from __future__ import annotations

import json
import re
from functools import reduce
from typing import Any

from benchmarks.questions.labels import find_labels
from benchmarks.questions.material import QuestionSet
from benchmarks.questions.picks import read_picks
from benchmarks.questions.question import Entry, Question
from benchmarks.questions.sources import Git, Repository, Sources

MIN_NUMBER_DIGITS = 3  # shorter numbers are everywhere in a page


def build(sources: Sources, chosen: QuestionSet) -> list[Entry]:
    return [as_entry(pick, sources, chosen.pages[pick["repo"]]) for pick in read_picks(chosen.name, "attributes")]


def as_entry(pick: dict[str, Any], sources: Sources, repository: Repository) -> Entry:
    path = pick["path"]
    git = sources.git(repository)
    page = git.read(path)
    name = re.sub(r"\W+", "-", path.removeprefix("tests/").removeprefix("packages/")).strip("-")
    attribute = pick.get("label") or pick["key"]
    question = Question(
        id=f"attributes-{name}-{re.sub(r'[^a-z]+', '-', attribute.casefold()).strip('-')}",
        kind="attributes",
        source=repository.name,
        licence=repository.licence,
        doc=f"docs/attributes-{name}.html",
        question=pick["question"],
        answers=find_values(pick, git, page),
        tool_name="fetch_url",
        note=f"{attribute} in {path}",
    )
    return Entry(question, page)


def find_values(pick: dict[str, Any], git: Git, page: str) -> tuple[str, ...]:
    if "quotes" in pick:  # this page has an unusual layout for the label
        return tuple(quote for quote in pick["quotes"] if quote in page)
    return values_of_label(page, pick["label"]) if "label" in pick else values_of_key(git, pick["path"], pick["key"], page)


def values_of_label(page: str, label: str) -> tuple[str, ...]:
    values = (pair.value for pair in find_labels(page) if pair.label == label)
    return tuple(dict.fromkeys(value for value in values if value in page))[:1]


def values_of_key(git: Git, path: str, key: str, page: str) -> tuple[str, ...]:
    """The expected value and, for a quantity, also its bare number, because pages often have the unit in another element."""
    expected: dict[str, Any] = json.loads(git.read(re.sub(r"\.\w+$", ".json", path)))
    value = str(reduce(lambda part, step: part[step], key.split("."), expected))
    quantity = re.fullmatch(r"([\d.]+) (kcal|calories|m?g)", value)
    is_telling = quantity and sum(map(str.isdigit, quantity[1])) >= MIN_NUMBER_DIGITS
    forms = [value, *([quantity[1]] if quantity and is_telling else [])]
    return tuple(dict.fromkeys(form for form in forms if form in page))
