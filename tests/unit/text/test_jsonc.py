"""JSON with comments: what is read, what is refused, and edits that leave everything else alone."""

from __future__ import annotations

import pytest

from overspill.errors import SettingsError
from overspill.text import jsonc
from overspill.text.jsonc import Edit


def scan(text: str) -> jsonc.Node:
    return jsonc.scan(text, "mcp.json")


def test_comments_and_trailing_commas_are_passed_over():
    node = scan('// first\n{ /* a */ "a" /* b */ : [1, -2.5e3, true, null, {"x": "\\u00e9\\n"},], // c\n}\n/* last */')
    assert node.value == {"a": [1, -2500.0, True, None, {"x": "é\n"}]}


def test_a_byte_order_mark_is_not_in_the_way():
    assert scan('\ufeff{"a": 1}').value == {"a": 1}


def test_a_number_of_any_length_is_read():
    assert scan("9" * 5000).value == float("inf")


def test_a_value_knows_its_own_text():
    node = scan('{"a": {"b": [ 1, "two" ]}}')
    inner = node.get("a")
    assert inner is not None
    assert inner.raw == '{"b": [ 1, "two" ]}'
    assert node.get("b") is None
    assert scan('{"a": 1, "b": 2, "a": 3}').duplicate_key == "a"
    assert node.duplicate_key == ""


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "line 1, column 2: a key in \"…\" is missing"),
        ('{"a"}', "line 1, column 5: ':' is missing"),
        ('{"a":\n  }', "line 2, column 3: a value is missing"),
        ('{"a": 1 "b": 2}', "line 1, column 9: ',' is missing"),
        ("[1, , 2]", "line 1, column 5: a value is missing"),
        ("[1", "line 1, column 3: ',' is missing"),
        ("{} {}", "line 1, column 4: there is more after the end"),
        ('{"a": "b}', "line 1, column 7: this string is not closed or has an invalid character"),
        ('["a\nb"]', "line 1, column 2: this string is not closed or has an invalid character"),
        ("{'a': 1}", "line 1, column 2: a key in \"…\" is missing"),
        ("/* {} ", "line 1, column 1: a value is missing"),
        ("[01]", "line 1, column 2: a value is missing"),
        ("[nullish]", "line 1, column 2: a value is missing"),
        ("[" * 300, "line 1, column 202: nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_not_json_is_refused_with_its_place(text: str, problem: str):
    with pytest.raises(SettingsError) as error:
        scan(text)
    assert str(error.value) == f"mcp.json is not usable JSON, {problem}."


def test_edits_at_one_place_come_in_their_order():
    assert jsonc.apply_edits("abc", [Edit(1, 2, "X"), Edit(1, 1, "1"), Edit(1, 1, "2"), Edit(3, 3, "!")]) == "a12Xc!"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("[]", '["x", "y"]'),
        ("[ /* none */ ]", '["x", "y" /* none */ ]'),
        ('["a"]', '["x", "y", "a"]'),
        ('[ // why\n\t"a"]', '[ // why\n\t"x",\n\t"y",\n\t"a"]'),
        ('[\r\n  "a"\r\n]', '[\r\n  "x",\r\n  "y",\r\n  "a"\r\n]'),
        ('[\n\n  "a"]', '[\n\n  "x",\n  "y",\n  "a"]'),
        ('["a",]', '["x", "y", "a",]'),
    ],
)
def test_what_is_inserted_is_laid_out_like_the_rest_and_can_be_removed_again(text: str, after: str):
    node = scan(text)
    done = jsonc.apply_edits(text, [jsonc.insert(node, ['"x"', '"y"'])])
    assert done == after
    assert jsonc.apply_edits(done, jsonc.remove(scan(done), [0, 1])) == text


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"a": 1}', '{"a": 1, "b": 2}'),
        ('{"a": 1 /* one */, "c": 3}', '{"a": 1, "b": 2 /* one */, "c": 3}'),
        ('{\n  "a": 1,\n  "c": 3\n}', '{\n  "a": 1,\n  "b": 2,\n  "c": 3\n}'),
    ],
)
def test_a_member_is_added_after_another_and_can_be_removed_again(text: str, after: str):
    done = jsonc.apply_edits(text, [jsonc.append(scan(text), "a", '"b": 2')])
    assert done == after
    assert jsonc.apply_edits(done, jsonc.remove(scan(done), [1])) == text


@pytest.mark.parametrize(
    ("text", "indexes", "after"),
    [
        ('["a" /* 1 */, /* 2 */ "b", "c"]', [1], '["a" /* 1 */ /* 2 */ , "c"]'),
        ('["a", /* of b */ "b"]', [0], '[ /* of b */ "b"]'),
        ('["a", ]', [0], "[ ]"),
        ('["a", "b", ]', [0, 1], "[ ]"),
        ('["a", "b", "c", "d"]', [0, 2], '["b", "d"]'),
        ('{"a": 1, "b": 2, "c": 3}', [1, 2], '{"a": 1}'),
    ],
)
def test_comments_beside_what_is_removed_stay(text: str, indexes: list[int], after: str):
    done = jsonc.apply_edits(text, jsonc.remove(scan(text), indexes))
    assert done == after
    scan(done)


def test_nothing_is_removed_when_nothing_is_named():
    assert jsonc.remove(scan("[1]"), []) == []
