"""API lists to filter: which objects have these attributes? All of them are asked for, and no single condition is enough.

`picks/lists.jsonl` has a template for each list and the attributes it filters by; the values are those of the list itself, and
the hash of a combination decides whether it is taken.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import Any, TypeAlias

from benchmarks.questions.picks import read_picks
from benchmarks.questions.question import Entry, Question
from benchmarks.questions.sources import Package, Repository, Sources
from benchmarks.questions.tables import MINECRAFT

Values: TypeAlias = tuple[str, ...]

VEGA = Package("vega-datasets", "2.11.0", "BSD-3-Clause")
EMOJI = Package("emoji-datasource", "16.0.0", "MIT")
SRD = Repository("5e-bits/5e-database", "bfd3db4bcc31699cce703b46feb9af3f0ff08999", "MIT")
EXERCISES = Repository("yuhonas/free-exercise-db", "acd61f751fe15d618862ee3084f27e839222a28f", "Unlicense")
MIN_MATCHES, MAX_MATCHES = 2, 5


@dataclass(frozen=True)
class Listing:
    source: Repository | Package
    path: str
    is_compact: bool = False


LISTINGS = {
    "movies": Listing(VEGA, "data/movies.json"),
    "cars": Listing(VEGA, "data/cars.json", is_compact=True),
    "emoji": Listing(EMOJI, "emoji.json", is_compact=True),
    "blocks": Listing(MINECRAFT, "minecraft-data/data/pc/1.20/blocks.json"),
    "monsters": Listing(SRD, "src/2014/en/5e-SRD-Monsters.json"),
    "spells": Listing(SRD, "src/2014/en/5e-SRD-Spells.json"),
    "equipment": Listing(SRD, "src/2014/en/5e-SRD-Equipment.json"),
    "exercises": Listing(EXERCISES, "dist/exercises.json"),
}


def build(sources: Sources) -> list[Entry]:
    entries: list[Entry] = []
    picks = read_picks("lists")
    for name, listing in LISTINGS.items():
        objects = read_listing(listing, sources)
        text = json.dumps(objects, ensure_ascii=False, indent=None if listing.is_compact else 2)
        for number, pick in enumerate(pick for pick in picks if pick["list"] == name):
            entries += [Entry(question, text) for question in ask(name, listing, pick, number, objects)]
    return entries


def read_listing(listing: Listing, sources: Sources) -> list[dict[str, Any]]:
    if isinstance(listing.source, Package):
        return json.loads(sources.read_package(listing.source, listing.path))
    return json.loads(sources.git(listing.source).read(listing.path))


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
