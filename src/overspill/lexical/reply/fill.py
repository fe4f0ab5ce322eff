"""Fills the budget: best records first, long ones trimmed, the header of a table once for all its rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from overspill.lexical.boost import Order, Step
from overspill.lexical.index import Index
from overspill.lexical.rank import Ranking
from overspill.lexical.reply.render import make_locator, render
from overspill.lexical.reply.trim import Trimmer, intersect_spans
from overspill.lexical.rows.cells import find_header
from overspill.tables.table import Span
from overspill.text.lines import join_spans

_MIN_ADDITION_TOKENS = 4
"""With less room, adding a record is not worth a try."""
_MAX_RECORD_SHARE = 0.6
"""Share of the budget that one record may take before it is trimmed."""
_MIN_TRIMMED_TOKENS = 20
"""Trimming a record to less is not worth it."""
_MAX_BYTES_PER_TOKEN = 32
"""A record with more bytes for each token of the budget is trimmed without counting its tokens."""
_MAX_HEADER_CHARS = 400
_FIRST_RUNG_TOKENS = 12.0
_RUNG_RATIO = 1.25
"""Smaller steps give better answers between two rungs, but take more time."""
_SAMPLED_RECORDS = 8
_MAX_SAMPLE_BYTES = 2_000
_TEXT_RATIO = 0.25
"""The assumed tokens per byte, without records to count."""
_ROUNDING = 0.5
_ELLIPSIS_TOKENS = 2
"""The cost of the mark between two pieces of a record."""


class Costs:
    """Counts the tokens of a few of the best records, and estimates others by their length."""

    def __init__(self, index: Index, ranking: Ranking, count: Callable[[str], int]) -> None:
        self._index = index
        starts, ends = index.outline.starts, index.outline.ends
        records = ranking.best(_SAMPLED_RECORDS) or range(min(_SAMPLED_RECORDS, len(index.outline)))
        spans = [(starts[record], min(ends[record], starts[record] + _MAX_SAMPLE_BYTES)) for record in records]
        size = sum(self._measure(*span) for span in spans)
        self._counted: dict[Span, float] = {}
        self._per_byte = count("\n".join(render(index, *span) for span in spans)) / size if size else _TEXT_RATIO

    def cost_span(self, span: Span) -> float:
        if span not in self._counted:
            self._counted[span] = self._per_byte * self._measure(*span) + _ROUNDING
        return self._counted[span]

    def cost_spans(self, spans: list[Span]) -> float:
        """The cost of spans, including the marks between them."""
        return sum(map(self.cost_span, spans)) + _ELLIPSIS_TOKENS * (len(spans) - 1)

    def cost_text(self, text: str) -> float:
        return self._per_byte * len(text.encode("utf-8", "replace")) + _ROUNDING

    def _measure(self, start: int, end: int) -> int:
        """How many bytes of this span a reader sees."""
        part, fill = self._index.text[start:end], self._index.fill
        return len(part) - (part.count(fill) if fill else 0)


class Piece(Struct, frozen=True, order=True):
    """A span to show; `record` is -1 for the header of a table."""

    start: int
    end: int
    record: int
    score: float
    trimmed: bool = False


class Addition(Struct, frozen=True):
    """A record, or a larger part of it than before: all of its pieces, and the header to show with it."""

    record: int
    pieces: tuple[Piece, ...]
    header: Piece | None
    spent: float
    """The approximate cost of everything up to and including this addition."""

    @property
    def spans(self) -> list[Span]:
        return [(piece.start, piece.end) for piece in self.pieces]


class BudgetFill:
    """Adds records in an order that does not depend on the budget. A larger budget shows everything that a smaller one shows.

    It climbs a ladder of fixed budgets, called rungs, and each rung keeps everything from the one below. An answer is the longest
    prefix of `additions` that fits. The relevant lines of records in `brief` come first: nothing is added until all of them fit.
    """

    def __init__(self, index: Index, ranking: Ranking, steps: Sequence[Step], brief: set[int], costs: Costs) -> None:
        self.index = index
        self.steps = steps
        self.additions: list[Addition] = []
        # The last step has all remaining records, most of them because of their position.
        self._brief_orders = [*(step.order for step in steps[:-1]), [pair for pair in steps[-1].order if pair[0] in brief]]
        self._brief = brief.intersection(record for order in self._brief_orders for record, _ in order)
        # A record's score comes from the first step that contains it, even if a later step has room for it.
        self._scores = {record: score for step in reversed(steps[:-1]) for record, score in step.order}
        self._estimate = costs
        self._trimmer = Trimmer(index, ranking, costs.cost_span)
        self._spent = 0.0
        self._used = [0.0] * len(steps)
        self._shown: dict[int, list[Span]] = {}
        self._costs: dict[int, float] = {}
        self._locators: dict[int, float] = {}
        self._headers: set[int] = set()
        self._told: set[int] = set()
        self._whole: set[int] = set()

    @property
    def is_complete(self) -> bool:
        """Whether every record was added in full."""
        return all(record in self._whole for step in self.steps for record, _ in step.order)

    def climb(self, max_tokens: float) -> None:
        """Fills one rung after the other, up to one of at least `max_tokens`."""
        rung = _FIRST_RUNG_TOKENS
        while True:
            if not self._brief <= self._told:
                self._fill(self._brief_orders, rung, brief=True)
            if self._brief <= self._told:
                self._fill([step.order for step in self.steps], rung)
            if rung >= max_tokens:
                return
            rung *= _RUNG_RATIO

    def _fill(self, orders: list[Order], rung: float, *, brief: bool = False) -> None:
        """Fills one rung. If a record fits its step but not the rung, it waits for the next rung with everything after it."""
        done = self._told if brief else self._whole
        for number, order in enumerate(orders):
            most = self._spent + self.steps[number].room(rung) - self._used[number]
            for record, score in order:
                if record in done:
                    continue
                if self._spent + _MIN_ADDITION_TOKENS > most:
                    break
                spans, cost, is_all = self._cut(record, rung, brief=brief)
                header, extra = self._cost_around(record, score)
                reached = self._spent + max(0.0, cost + extra - self._costs.get(record, 0.0))
                if reached > most and most < rung:
                    break
                if reached > rung:
                    return
                if is_all:
                    done.add(record)
                if spans != self._shown.get(record, []):
                    self._used[number] += reached - self._spent
                    self._spent = reached
                    self._shown[record], self._costs[record] = spans, cost
                    score = self._scores.get(record, score)
                    if header:
                        self._headers.add(self.index.outline.under[record])
                    self.additions.append(Addition(record, self._make_pieces(record, spans, score), header, reached))

    def _cut(self, record: int, rung: float, *, brief: bool) -> tuple[list[Span], float, bool]:
        """The spans of a record that a rung shows, their cost, and whether that is everything. Includes all of the rung below."""
        whole, shown = self._extent(record), self._shown.get(record, [])
        if brief and self.index.traits.has_members:
            spans = join_spans([*shown, *self._trimmer.list_telling_lines(record)])
            return spans, self._estimate.cost_spans(spans), True
        allowed = max(_MIN_TRIMMED_TOKENS, _MAX_RECORD_SHARE * rung)
        if whole[1] - whole[0] <= _MAX_BYTES_PER_TOKEN * rung:
            spans = join_spans([*shown, *self._trimmer.list_telling_lines(record)]) if brief else [whole]
            if (cost := self._estimate.cost_spans(spans)) <= allowed:
                return spans, cost, True
        spans = join_spans([*shown, *self._trimmer.trim(record, allowed)])
        return spans, self._estimate.cost_spans(spans), False

    def shorten(self, number: int) -> list[Addition]:
        """Larger and larger parts of an addition, starting from what earlier additions show of its record."""
        addition, before = self.additions[number], reversed(self.additions[:number])
        spans = next((each.spans for each in before if each.record == addition.record), list[Span]())
        shorter: list[Addition] = []
        allowed = float(_MIN_TRIMMED_TOKENS)
        while allowed < addition.spent:
            more = self._trimmer.trim(addition.record, allowed)
            grown = join_spans([*spans, *intersect_spans(more, addition.spans)])
            if grown == addition.spans:
                break
            if self._count_visible(grown) > self._count_visible(spans):
                spans = grown
                pieces = self._make_pieces(addition.record, spans, addition.pieces[0].score)
                shorter.append(Addition(addition.record, pieces, addition.header, addition.spent))
            allowed *= _RUNG_RATIO
        return shorter

    def _count_visible(self, spans: list[Span]) -> int:
        return sum(len(bytes(self.index.text[start:end]).strip()) for start, end in spans)

    def _extent(self, record: int) -> Span:
        return self.index.outline.starts[record], self.index.outline.ends[record]

    def _make_pieces(self, record: int, spans: list[Span], score: float) -> tuple[Piece, ...]:
        is_trimmed = spans != [self._extent(record)]
        return tuple([Piece(*span, record, score, is_trimmed) for span in spans])

    def _cost_around(self, record: int, score: float) -> tuple[Piece | None, float]:
        """The header to show with a record, and the cost of the header and locator."""
        if record in self._shown:
            return None, 0.0
        outline = self.index.outline
        locator = 1.0 if record - 1 in self._whole or record + 1 in self._whole else self._locators.get(record)
        if locator is None:
            place = make_locator(self.index, record, outline.starts[record])
            locator = self._locators[record] = self._estimate.cost_text(f"[{place}]") + 1
        label = outline.under[record]
        table = outline.table_of(record)
        if (
            table is None
            or table.header < 0
            or table.header != label
            or label in self._headers
            or outline.record_at(outline.label_starts[label]) in self._shown
        ):
            return None, locator
        start, end = find_header(self.index, table)
        text = render(self.index, start, end) if end - start <= _MAX_HEADER_CHARS * 8 else ""
        if not 0 < len(text) <= _MAX_HEADER_CHARS:
            return None, locator
        return Piece(start, end, -1, self._scores.get(record, score)), locator + self._estimate.cost_text(text) + 1
