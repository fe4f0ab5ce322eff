"""element on JSON: the outline is JSON, and says what it leaves out."""

from __future__ import annotations

import json

import pytest

from overspill.truncate import Cut, Shape, truncate


def element(text: str, limit: int, **options: int) -> str:
    cut = truncate(text, limit, "element", Shape(**options))
    assert cut.strategy == "element"
    assert len(cut.text) <= limit
    return cut.text


def test_an_array_keeps_its_ends_and_counts_the_items_between() -> None:
    assert element(json.dumps(list(range(55))), 100) == '[0,1,2,3,4,"... 45 items omitted ...",50,51,52,53,54]'


def test_counts_have_thousands_separators_and_a_singular() -> None:
    text = json.dumps(list(range(2000)))
    assert element(text, 60, first_elements=1, last_elements=1) == '[0,"... 1,998 items omitted ...",1999]'
    assert element("[1,2,3" + " " * 90 + "]", 60, first_elements=1, last_elements=1) == '[1,"... 1 item omitted ...",3]'


def test_an_object_keeps_its_first_keys_and_counts_the_others() -> None:
    text = json.dumps({f"k{number}": number for number in range(40)})
    assert element(text, 80, max_keys=3) == '{"k0":0,"k1":1,"k2":2,"...":"37 keys omitted"}'


def test_the_key_of_the_omission_never_clashes() -> None:
    text = json.dumps({"...": 1, "....": 2, "c": "x" * 99})
    assert element(text, 60, max_keys=2) == '{"...":1,"....":2,".....":"1 key omitted"}'


def test_what_is_nested_deeper_than_the_depth_shows_its_count() -> None:
    text = json.dumps({"a": {"b": {"c": {"d": "x" * 200}, "list": [[], "y" * 200]}}})
    assert element(text, 150) == '{"a":{"b":{"c":{"...":"1 key omitted"},"list":["... 2 items omitted ..."]}}}'


def test_what_is_shorter_than_its_omission_is_shown_at_any_depth() -> None:
    text = '[[[[1,2],[],{},{"a":null},{"a":"long enough to be left out"}]]]' + " " * 99
    assert element(text, 150) == '[[[[1,2],[],{},{"a":null},{"...":"1 key omitted"}]]]'


def test_a_long_string_is_shortened_inside() -> None:
    assert element(json.dumps({"path": "/etc", "content": "x" * 5000}), 120) == (
        '{"path":"/etc","content":"' + "x" * 36 + "... [4,939 chars omitted] ..." + "x" * 25 + '"}'
    )


def test_a_root_string_is_shortened_to_any_limit() -> None:
    text = json.dumps("0123456789" * 100)
    assert element(text, 60) == '"012345678901234567... [969 chars omitted] ...7890123456789"'
    assert [element(text, limit) for limit in (3, 4, 12)] == ['"…"', '"0…"', '"012345678…"']


def test_many_long_strings_share_the_room_before_items_are_left_out() -> None:
    shown = json.loads(element(json.dumps([{"id": n, "body": "x" * 5000} for n in range(100)]), 4000))
    assert [item["id"] for item in shown[:5]] == [0, 1, 2, 3, 4]
    assert all(250 < len(item["body"]) < 400 for item in shown[:5])


def test_fewer_items_are_shown_where_strings_would_become_unreadable() -> None:
    shown = json.loads(element(json.dumps([{"id": n, "body": "x" * 5000} for n in range(100)]), 800))
    assert [item if isinstance(item, str) else item["id"] for item in shown] == [0, 1, "... 96 items omitted ...", 98, 99]


def test_less_depth_is_shown_where_one_item_is_too_much() -> None:
    text = json.dumps([{"a" * 50: {"b" * 50: 1, "c": 2}, "d": 3} for _ in range(9)])
    assert element(text, 110) == ('[{"...":"2 keys omitted"},"... 7 items omitted ...",{"...":"2 keys omitted"}]')


def test_in_the_end_only_the_count_is_shown() -> None:
    text = json.dumps([{"a" * 50: 1}] * 9)
    assert element(text, 40) == '["... 9 items omitted ..."]'
    assert element(json.dumps({"a" * 90: 1, "b" * 90: 1}), 30) == '{"...":"2 keys omitted"}'
    assert element(text, 20) == '"…"'


@pytest.mark.parametrize("limit", [1, 2])
def test_room_for_no_honest_json_gets_an_ellipsis_and_another_name(limit: int) -> None:
    cut = truncate("[1, 2, 3, 4]", limit, "element")
    assert cut.strategy == "head_tail"
    assert "…" in cut.text


def test_numbers_keep_their_spelling() -> None:
    numbers = "[1.10,1e5,-0,123456789012345678901234567890,0.1000000000000000055,1E+2]"
    assert element(numbers + " " * 99, 120, first_elements=6) == numbers


def test_a_number_too_long_to_show_becomes_a_string_that_says_so() -> None:
    assert element("9" * 9000, 60) == '"' + "9" * 16 + "... [8,972 chars omitted] ..." + "9" * 12 + '"'


def test_a_key_that_occurs_twice_is_shown_twice() -> None:
    assert element('{"a": 1, "a": 2}' + " " * 99, 50) == '{"a":1,"a":2}'


def test_other_scalars_stay() -> None:
    assert element('[true, false, null, "", {}, []]' + " " * 99, 50) == '[true,false,null,"",{},[]]'
    assert element(" " * 99 + "true", 50) == "true"


def test_lone_surrogates_stay_escaped_and_other_characters_as_they_are() -> None:
    assert element(r'["\ud800", "\u00e9", "\n", "😀"]' + " " * 99, 50) == r'["\ud800","é","\n","😀"]'


def test_an_indented_source_stays_indented_where_that_fits() -> None:
    text = json.dumps({"items": [{"n": n} for n in range(9)], "total": 9, "none": []}, indent=2)
    expected = """{
  "items": [
    {
      "n": 0
    },
    "... 7 items omitted ...",
    {
      "n": 8
    }
  ],
  "total": 9,
  "none": []
}"""
    assert element(text, 170, first_elements=1, last_elements=1) == expected
    assert (
        element(text, 90, first_elements=1, last_elements=1)
        == '{"items":[{"n":0},"... 7 items omitted ...",{"n":8}],"total":9,"none":[]}'
    )


def test_the_counts_are_how_much_shorter_the_outline_is() -> None:
    text = json.dumps(list(range(100)), indent=1)
    cut = truncate(text, 200, "element")
    assert cut == Cut(cut.text, "element", 102 - 13, len(text) - len(cut.text))


def test_json_lines_keep_whole_lines_with_a_json_string_between() -> None:
    text = "".join(f'{{"id": {n}}}\r\n' for n in range(100))
    assert element(text, 100, first_elements=2, last_elements=1) == (
        '{"id": 0}\n{"id": 1}\n"... 97 items omitted ..."\n{"id": 99}'
    )


def test_json_lines_are_fewer_before_they_are_shortened() -> None:
    text = "\n\n".join(json.dumps({"id": n, "text": "x" * 100}) for n in range(100))
    shown = [json.loads(line) for line in element(text, 400).split("\n")]
    assert [shown[0]["id"], shown[1], shown[2]["id"]] == [0, "... 98 items omitted ...", 99]
    assert shown[0]["text"] == "x" * 100


def test_json_lines_too_long_to_keep_whole_are_outlined() -> None:
    text = "\n".join(json.dumps({"id": n, "text": "x" * 5000}) for n in range(100))
    shown = [json.loads(line) for line in element(text, 600).split("\n")]
    assert [shown[0]["id"], shown[-1]["id"]] == [0, 99]
    assert " chars omitted] ..." in shown[0]["text"]
    assert element(text, 30) == '"... 100 items omitted ..."'
    assert element(text, 20) == '"…"'


@pytest.mark.parametrize(
    "text",
    [
        "plain words\n" * 50,
        '{"a": 1}\nnot JSON\n' * 20,
        '{"a": 1' * 50,
        "[NaN, 1" + ", 2" * 50 + "]",
        "[" * 100_000 + "]" * 100_000,
        '{"a":' * 100_000,
        "17\n42\n" * 50,
        " " * 500,
        "\n" * 500,
        "'single'" * 50,
    ],
)
def test_what_is_not_json_falls_back_to_head_tail(text: str) -> None:
    assert truncate(text, 90, "element") == truncate(text, 90, "head_tail")
