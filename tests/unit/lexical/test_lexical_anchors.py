"""The name of a link's target tells what is below it."""

from __future__ import annotations

from overspill.lexical.index import build
from overspill.lexical.select import select

SUBJECTS = ("drying_herbs", "pruning_roses", "feeding_bees", "storing_apples", "sowing_beans", "mulching_beds")
ADVICE = ("in the loft", "in late winter", "with syrup", "in straw", "after the frost", "with bark")
REMARK = "What is said here holds for most gardens, in most years, and for most of the people who have one.\n\n" * 6
DOCUMENT = "".join(f".. _{subject}:\n\n{REMARK}Do it {advice}.\n\n" for subject, advice in zip(SUBJECTS, ADVICE, strict=True))


def test_an_anchor_is_a_heading_for_everything_up_to_the_next_one() -> None:
    index = build(DOCUMENT.encode())
    assert index.kind == "prose"
    last = len(index.outline) - 1
    label = index.outline.under[last]
    assert index.text[index.outline.label_starts[label] : index.outline.label_ends[label]].strip() == b".. _mulching_beds:"
    for subject, advice in zip(SUBJECTS, ADVICE, strict=True):
        assert f"Do it {advice}." in select(index, f"When and how to do {subject.replace('_', ' ')}?", max_tokens=250).text


def test_a_heading_ends_an_anchor_and_a_link_is_none() -> None:
    text = f"{REMARK}.. _pump:\n\nThe pump\n========\n\n{REMARK}.. _site: https://pump.example\n\nIt leaks.\n"
    outline = build(text.encode()).outline
    headings = [text[start:end].split("\n")[0] for start, end in zip(outline.label_starts, outline.label_ends, strict=True)]
    assert headings == [".. _pump:", "The pump"]
    assert outline.label_parents[1] == -1


def test_a_comment_in_an_example_is_no_heading() -> None:
    examples = (
        "```sh\n# restart it afterwards\npump restart\n```\n\n",
        "  ~~~\n  # restart it afterwards\n  ~~~\n\n",
        "As in::\n\n    # restart it afterwards\n\n",
        ">>> # restart it afterwards\n>>> pump.restart()\n\n",
    )
    for example in examples:
        text = f"# Pumps\n\n{REMARK}{example}It must run dry first.\n\n## Hoses\n\n{REMARK}"
        outline = build(text.encode()).outline
        headings = [text[start:end].strip() for start, end in zip(outline.label_starts, outline.label_ends, strict=True)]
        assert headings == ["# Pumps", "## Hoses"]


def test_a_fence_that_is_not_closed_hides_no_headings() -> None:
    text = f"# Pumps\n\n{REMARK}```\n\n{REMARK * 40}# Hoses\n\n{REMARK}"
    outline = build(text.encode()).outline
    assert len(outline.label_starts) == 2
