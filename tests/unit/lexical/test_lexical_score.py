"""What is above a record counts for it, however deep it is."""

from __future__ import annotations

from overspill.lexical.index import build
from overspill.lexical.outline import Outline
from overspill.lexical.rank import Scorer
from overspill.lexical.select import select


def nest(depth: int) -> Outline:
    """Labels inside each other, and a record below the innermost one."""
    outline, label = Outline(), -1
    for number in range(depth):
        label = outline.label(number, number + 1, label)
    outline.record(depth, depth + 10, label)
    outline.record(depth + 10, depth + 20)
    return outline


def test_a_word_in_the_outermost_of_thousands_of_labels_counts() -> None:
    outline = nest(50_000)
    scorer = Scorer(outline, {0: {0: 1.0}}, [2.0], {0}, 10.0)
    assert scorer.score(0, {}) == 2.0
    assert scorer.score(1, {}) == 0.0


def test_the_best_of_several_labels_counts_and_the_record_adds_to_it() -> None:
    scorer = Scorer(nest(3), {0: {0: 0.5}, 2: {0: 1.0}}, [1.0], {0}, 10.0)
    assert scorer.score(0, {}) == 1.0
    assert scorer.score(0, {0: 1.0}) > 1.0


def test_code_indented_a_thousand_times_is_searched() -> None:
    lines = [f"{' ' * number}if value_{number}:\n" for number in range(1_000)]
    text = "import os\n" + "".join(lines) + " " * 1_000 + "return 'kestrel'\n"
    assert "kestrel" in select(build(text.encode()), "kestrel of value_3", max_tokens=900).text
