"""Secrets in the surroundings where tools show them, and what only looks like one. Written before the rules were read.

`places.txt` and `harmless.txt` are blocks under a title. `{kind:count}` becomes that many random characters, what is between « »
is secret. Half of each is seen: rules may be tuned on it. The other half is only scored.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from forms import fill

Half = Literal["seen", "unseen"]
SPLIT_SEED = 40
DRAWS = 5
SECRET = re.compile("«(.*?)»", re.DOTALL)


class Place(NamedTuple):
    """`secrets` are spans of the text's bytes. Where there are none, nothing may be found."""

    name: str
    text: bytes
    secrets: list[tuple[int, int]]


def make_places(half: Half, seed: int) -> Iterator[Place]:
    """Each block of this half a few times, every time with other characters."""
    source = random.Random(seed)  # noqa: S311
    for file in ("places.txt", "harmless.txt"):
        blocks = Path(__file__).with_name(file).read_text().split("§ ")[1:]
        random.Random(SPLIT_SEED).shuffle(blocks)  # noqa: S311
        for block in blocks[::2] if half == "seen" else blocks[1::2]:
            name, template = block.split("\n", 1)
            for _ in range(DRAWS):
                yield mark(name, fill(template, source))


def mark(name: str, text: str) -> Place:
    """The text without its marks, and where they were."""
    plain, spans, at = b"", list[tuple[int, int]](), 0
    for found in SECRET.finditer(text):
        plain += text[at : found.start()].encode()
        spans.append((len(plain), len(plain) + len(found[1].encode())))
        plain, at = plain + found[1].encode(), found.end()
    return Place(name, plain + text[at:].encode(), spans)
