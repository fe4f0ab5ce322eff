"""API lists to filter: which objects have these attributes? An answer needs all of them, and no single condition is enough.

The picks have a template for each list and the attributes it filters by; the values are those of the list itself, and
the hash of a combination decides whether it is taken.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from typing import Any, TypeAlias

from benchmarks.questions.material import Listing, QuestionSet
from benchmarks.questions.picks import read_picks
from benchmarks.questions.question import Entry, Question
from benchmarks.questions.sources import Package, Sources

Values: TypeAlias = tuple[str, ...]

MIN_MATCHES, MAX_MATCHES = 2, 5


def build(sources: Sources, chosen: QuestionSet) -> list[Entry]:
    entries: list[Entry] = []
    picks = read_picks(chosen.name, "lists")
    for name, listing in chosen.listings.items():
        objects = read_listing(listing, sources)
        text = render(listing, objects)
        for number, pick in enumerate(pick for pick in picks if pick["list"] == name):
            entries += [Entry(question, text) for question in ask(name, listing, pick, number, objects)]
    return entries


def read_listing(listing: Listing, sources: Sources) -> list[dict[str, Any]]:
    """The objects, without the keys of an object that has them all."""
    if isinstance(listing.source, Package):
        packed = sources.read_package(listing.source, listing.path)
    else:
        packed = sources.git(listing.source).read_bytes(listing.path)
    if listing.is_lines:
        return [json.loads(line) for line in packed.splitlines() if line.strip()]
    whole = json.loads(packed)
    found: dict[str, dict[str, Any]] | list[dict[str, Any]] = whole[listing.inside] if listing.inside else whole
    return list(found.values()) if isinstance(found, dict) else found


def render(listing: Listing, objects: list[dict[str, Any]]) -> str:
    if listing.is_lines:
        return "".join(json.dumps(thing, ensure_ascii=False) + "\n" for thing in objects)
    return json.dumps(objects, ensure_ascii=False, indent=None if listing.is_compact else 2)


def get(thing: Any, path: str) -> str | None:
    """The value at a dotted path as text; None where the object has no simple value there."""
    for step in path.split("."):
        try:
            thing = thing[int(step) if isinstance(thing, list) else step]
        except (KeyError, IndexError, TypeError, ValueError):
            return None
    return str(thing) if isinstance(thing, str | int | float) else None


def combine(objects: list[dict[str, Any]], where: list[str], answer: str) -> dict[Values, list[str]]:
    """The answers for each combination of values that only together leave a few objects."""
    groups: dict[Values, list[str]] = defaultdict(list)
    alone: Counter[tuple[int, str]] = Counter()
    for thing in objects:
        values, name = [get(thing, path) for path in where], get(thing, answer)
        known = tuple(value for value in values if value)
        alone.update(enumerate(known))
        if name and len(known) == len(where):
            groups[known].append(name)
    return {
        values: names
        for values, names in groups.items()
        if MIN_MATCHES <= len(names) <= MAX_MATCHES and all(alone[pair] > len(names) for pair in enumerate(values))
    }


def ask(name: str, listing: Listing, pick: dict[str, Any], number: int, objects: list[dict[str, Any]]) -> list[Question]:
    groups = combine(objects, pick["where"], pick["answer"])
    if pick.get("distinct"):  # objects of one name would make one answer of two
        groups = {values: names for values, names in groups.items() if len(set(names)) == len(names)}
    chosen = sorted(groups, key=lambda values: hashlib.sha256(f"{name}{number}{values}".encode()).digest())[: pick["take"]]
    return [
        Question(
            id=f"lists-{name}-{number}-{hashlib.sha256(repr(values).encode()).hexdigest()[:8]}",
            kind="lists",
            source=listing.source.name,
            licence=listing.source.licence,
            doc=f"docs/lists-{name}.json",
            question=pick["question"].format(*values),
            answers=tuple(groups[values]),
            all_of=tuple(groups[values]),
            tool_name="http_get",
            obtained="derived",
            note=f"{', '.join(pick['where'])} of {listing.path}",
        )
        for values in chosen
    ]
