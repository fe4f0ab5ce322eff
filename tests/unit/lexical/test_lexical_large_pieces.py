"""A large output is read in pieces, so that other threads can run, and with the same result."""

import pytest
from slow import slow

from overspill.lexical.kinds.lines import skip_blank_lines
from overspill.lexical.kinds.tree import json_tree
from overspill.text import pieces
from overspill.text.lines import iterate_lines

LONG = 3_000_000


def tree_of(text: str) -> tuple[list[tuple[bytes, bytes, int]], list[int], list[int]]:
    data = text.encode()
    tree = json_tree(data, 0, len(data))
    nodes = zip(tree.starts, tree.insides, tree.ends, tree.parents, strict=True)
    shown = [(data[start:inside][:20], data[end - 3 : end + 20], parent) for start, inside, end, parent in nodes]
    return shown, sorted(tree.arrays), sorted(tree.texts)


@pytest.mark.parametrize("escape", ["", "\\n", '\\"'])
@pytest.mark.parametrize(
    "text",
    [
        '{"before": {"a": 1}, "long": "LONG", "after": [{"b": [2]}]}',
        '{"before": [1], "LONG": 3, "after": {"c": "x, y"}}',
        '{"numbers": [1, LONG 2], "after": {"d": {}}}',
        '[{"e": "LONG"}, {"e": "LONG"}]',
        '{"gap" LONG : {"f": 1}}',
    ],
)
def test_a_long_string_or_list_changes_nothing_around_it(text: str, escape: str) -> None:
    filler = "1, " if "[1," in text else " " if "gap" in text else "x"
    many, few = (text.replace("LONG", escape + filler * count if filler == "x" else filler * count) for count in (LONG, 3_000))
    assert tree_of(many) == tree_of(few)


def test_a_long_string_that_is_never_closed_ends_with_the_output() -> None:
    nodes, arrays, texts = tree_of('{"a": [1], "b": "\\n' + "{[" * LONG)
    assert (len(nodes), arrays, texts) == (2, [1], [])


def test_long_lines_are_found_whole() -> None:
    data = b"a\n" + b"x" * (pieces.PIECE_BYTES * 2) + b"\n\nlast"
    assert [end - start for start, end in iterate_lines(data, 0, len(data))] == [2, 2 * pieces.PIECE_BYTES + 1, 1, 4]
    assert list(iterate_lines(data, 0, 2)) == [(0, 2)]


@pytest.mark.parametrize("blank", [b"\n", b" \xff\r\n", b"\xff", b""])
@pytest.mark.parametrize("times", [1, 3, pieces.PIECE_BYTES // 2 + 7, *slow(2 * pieces.PIECE_BYTES)])
def test_blank_lines_are_skipped_however_many_there_are(blank: bytes, times: int) -> None:
    data = b"one\n" + blank * times + b" two\n" + blank * times + b"\f\n" + blank * times
    lines = list(skip_blank_lines(data, 0, len(data)))
    assert [line.strip(b" \xff\r\n") for line, _, _ in lines] == [b"one", b"two", b"\f"]
    assert [data[start:end] for _, start, end in lines] == [line for line, _, _ in lines]


@pytest.mark.parametrize("at", [0, 5, pieces.PIECE_BYTES - 1, pieces.PIECE_BYTES, 2 * pieces.PIECE_BYTES + 7])
def test_bytes_are_found_wherever_the_pieces_end(at: int) -> None:
    data = bytearray(3 * pieces.PIECE_BYTES)
    data[at : at + 3] = b"\x1b[m"
    for start, end in ((0, len(data)), (at, at + 3), (at + 1, len(data)), (0, at + 2)):
        assert pieces.find(data, b"\x1b[m", start, end) == data.find(b"\x1b[m", start, end)
    assert pieces.find(bytes(data), b"\x1b[m") == at
