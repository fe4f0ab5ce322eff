"""Answers a question with text for a model, and with excerpts that you can check against the stored bytes."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache

from msgspec import Struct
from msgspec.structs import replace

from overspill.lexical.boost import Signal
from overspill.lexical.confidence import estimate_confidence
from overspill.lexical.failures import find_sign_places, read_signs
from overspill.lexical.index import Index, Work
from overspill.lexical.plan import plan
from overspill.lexical.query import parse
from overspill.lexical.rank import rank
from overspill.lexical.reply.drafts import Draft, Drafts, Found
from overspill.lexical.reply.fill import BudgetFill, Costs
from overspill.lexical.reply.render import describe_none_fits, describe_nothing_found
from overspill.lexical.reply.repeats import leave_out_noise
from overspill.lexical.signals import SIGNALS, compares_rows

_AIMS = (1.25, 2.0, 4.0)
"""Multiples of the budget to plan for, because estimated costs may be too high. The next one is tried while room is left."""


class Selection(Struct, frozen=True):
    """`text` is for a model, without colours, tags and escapes; `excerpts` are the stored bytes it comes from."""

    excerpts: tuple[Found, ...]
    text: str
    confidence: float
    matched: int
    kind: str
    searched_bytes: int
    total_bytes: int


def select(
    index: Index,
    query: str,
    *,
    max_tokens: int = 2000,
    count_tokens: Callable[[str], int] | None = None,
    bound_tokens: Callable[[str], int] | None = None,
    signals: Sequence[Signal] = SIGNALS,
    work: Work | None = None,
) -> Selection:
    """Selects the records that answer `query`. `text` never exceeds `max_tokens`; by default, four characters count as a token.
    If everything fits by `bound_tokens`, which never counts fewer, `count_tokens` is not called.

    With limited work, it reads only the parts of a large output that have words of the question.
    """
    exact: Callable[[str], int] = count_tokens or (lambda text: math.ceil(len(text) / 4))
    asked = parse(query)
    find_places = find_sign_places if asked.failure and index.traits.is_program_output else None
    index = index.focus(asked.terms, find_places=find_places, compares_rows=compares_rows(index, asked), work=work)
    found = rank(index, asked)
    way = plan(index, asked, found, signals)
    telling = index.remember(read_signs).failing if asked.failure and way.evidence else way.matches
    ranking, steps = way.ranking, leave_out_noise(index, way.steps, way.matches, telling)
    brief = way.matches if asked.listing and not way.ordered and index.traits.has_telling_lines else set(way.brief)
    # A page without any word of the question still shows its facts. A log shows only matches.
    has_any = bool(way.matches or way.evidence) or (index.traits.is_markup and any(step.order for step in steps))
    drafts = Drafts(index, way, has_noise=steps is not way.steps)
    draft = _NOTHING
    for count in filter(None, (bound_tokens, exact)):
        if has_any:
            filling = BudgetFill(index, ranking, steps, brief, Costs(index, ranking, count))
            draft = _fit(filling, drafts, max_tokens, count)
        if not draft.pieces:
            says = describe_none_fits(found, max_tokens) if way.matches else describe_nothing_found(index, query, cut=ranking.cut)
            text = next((line for line in says if count(line) <= max_tokens), "")
            draft = Draft((), text, not way.matches and not way.evidence and text == says[0])
        if draft.is_complete:
            break
    trust = estimate_confidence(index, asked, found, way.evidence) if draft.pieces else 0.0
    size, excerpts = index.total_bytes, tuple(map(drafts.write_excerpt, draft.pieces))
    return Selection(excerpts, draft.text, trust, len(way.matches), index.kind, size, size)


_NOTHING = Draft((), "")


def _fit(filling: BudgetFill, drafts: Drafts, max_tokens: int, count: Callable[[str], int]) -> Draft:
    """The longest prefix of the additions that fits, and as much as possible of the next addition."""
    additions = filling.additions

    @cache
    def write(taken: int) -> tuple[Draft, int]:
        draft = drafts.write(additions[:taken])
        return draft, count(draft.text)

    for aim in _AIMS:
        filling.climb(aim * max_tokens)
        if filling.is_complete or write(len(additions))[1] > max_tokens:
            break
    taken = over = len(additions)
    while taken and (excess := write(taken)[1] - max_tokens) > 0:
        over = taken
        least = additions[taken - 1].spent - excess
        taken = min(taken - 1, bisect_right(additions, least, key=lambda addition: addition.spent))
    while taken + 1 < over and write(taken + 1)[1] <= max_tokens:
        taken += 1
    draft = write(taken)[0] if taken else _NOTHING
    if taken == len(additions):
        return replace(draft, is_complete=filling.is_complete)
    for shorter in reversed(filling.shorten(taken)):
        longer = drafts.write([*additions[:taken], shorter])
        if count(longer.text) <= max_tokens:
            return longer
    return draft
