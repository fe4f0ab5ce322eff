"""What no kind of text is sure of is not simply read as a log."""

from __future__ import annotations

from overspill.lexical.kinds import recognise


def test_code_with_more_documentation_than_statements_is_code() -> None:
    described = "".join(f"    name{number} : int\n        Value {number} of 7\n" for number in range(12))
    code = f'def weigh(box):\n    """\n    Parameters\n    ----------\n{described}    """\n    return box\n\n\n'
    assert recognise(code.encode() * 4).name == "code"


def test_a_document_with_short_lines_is_prose() -> None:
    clause = "The seller delivers,\nat its own cost,\nwhat was ordered;\nthe buyer pays then.\n"
    assert recognise(clause.encode() * 20).name == "prose"


def test_short_messages_without_sentences_are_lines() -> None:
    assert recognise(b"".join(b"step %d went well\n" % number for number in range(100))).name == "log"
