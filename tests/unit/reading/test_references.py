from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest
from linear import is_linear
from readers import BytesReader

from overspill.errors import RefError, UnknownHandle
from overspill.reading.positions import View
from overspill.reading.references import ReferenceSource, ReferenceUse, resolve
from overspill.types import Kept, Media, Size, ToolCall


def stored(data: str | bytes, server: str = "", tool: str = "crawl", media: Media = "text") -> ReferenceSource:
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    size = Size(bytes=len(raw), chars=0, lines=0, tokens=0)
    kept = Kept("s", "i", tool, "size_cap", size, sha256="", created_ms=0, server=server, media=media)
    reader = BytesReader(raw)
    return ReferenceSource(reader, kept, View(reader))


OUTPUTS = {
    "text": stored("one\ntwo\r\nthree\n"),
    "json": stored('{"items": [{"id": 7, "price": 0.10}], "name": "Zoë", "huge": [1e999], "long": ' + "9" * 2000 + "}"),
    "tricky": stored("{{output:text}}"),
    "remote": stored("secret", server="mail", tool="read"),
    "picture": stored(b"\x89PNG", media="binary"),
    "broken": stored(b'{"a": "\xff", "b": 1}'),
    "surrogate": stored("a\ud800"),
    "deep": stored("[" * 90_000 + "]" * 90_000),
}


def fetch(handle: str) -> ReferenceSource:
    if handle not in OUTPUTS:
        raise UnknownHandle(handle)
    return OUTPUTS[handle]


def filled(args: Mapping[str, Any], **options: Any) -> tuple[Mapping[str, Any], list[ReferenceUse]]:
    call = ToolCall("", options.pop("tool", "write"), args, options.pop("server", ""))
    return resolve(call, fetch, **{"max_ref_bytes": 5000, **options})


def refusal(argument: Any, **options: Any) -> str:
    with pytest.raises(RefError) as raised:
        filled({"text": argument}, **options)
    return str(raised.value)


@pytest.mark.parametrize(
    ("reference", "content", "size"),
    [
        ("{{output:text}}", "one\ntwo\r\nthree\n", 15),
        ("{{output:text#L2-3}}", "two\r\nthree\n", 11),
        ("{{output:text#L1-1}}", "one\n", 4),
        ("{{output:json#/name}}", "Zoë", 4),
        ("{{output:json#/items/0}}", {"id": 7, "price": 0.1}, 21),
        ("{{output:json#/items/0/id}}", 7, 1),
        ("{{output:surrogate}}", "a\ud800", 4),
    ],
)
def test_a_reference_becomes_what_it_names(reference: str, content: Any, size: int) -> None:
    assert filled({"text": reference}) == ({"text": content}, [ReferenceUse("i", size, "/text")])


def test_references_are_found_at_any_depth() -> None:
    args = {"files": [{"a/b": "{{output:text#L1-1}}", "mode": 7}, "x"], "plain": {"k": "v"}}
    new, uses = filled(args)
    assert new == {"files": [{"a/b": "one\n", "mode": 7}, "x"], "plain": {"k": "v"}}
    assert new["plain"] is args["plain"]
    assert uses == [ReferenceUse("i", 4, "/files/0/a~1b")]
    assert args["files"][0] == {"a/b": "{{output:text#L1-1}}", "mode": 7}


def test_references_in_a_tuple_are_filled_in_like_those_in_a_list() -> None:
    assert filled({"texts": ("{{output:text#L1-1}}", "x")}) == ({"texts": ["one\n", "x"]}, [ReferenceUse("i", 4, "/texts/0")])


def test_arguments_without_references_stay_the_same_object() -> None:
    args = {"a": ["b", {"c": 1.5}], "d": None}
    new, uses = filled(args)
    assert new is args
    assert uses == []


@pytest.mark.parametrize(
    "text",
    [
        "see {{output:text}}",
        "{{output:text}} ",
        "{{output:text}} {{output:text}}",
        "{{output:text#L1-2}} {{output:text#L1-2}}",
        "{{output:}}",
        "{{output:text",
        "{{ output:text}}",
        "\\\\{{output:text}}",
    ],
)
def test_anything_else_stays_as_it_is(text: str) -> None:
    assert filled({"text": text}) == ({"text": text}, [])


def test_a_backslash_makes_a_reference_stand_for_itself() -> None:
    assert filled({"text": "\\{{output:text}} is how"}) == ({"text": "{{output:text}} is how"}, [])


def test_content_that_looks_like_a_reference_is_not_followed() -> None:
    assert filled({"text": "{{output:tricky}}"})[0] == {"text": "{{output:text}}"}


def test_only_whole_numbers_and_floats_come_out_of_json() -> None:
    price = filled({"text": "{{output:json#/items/0/price}}"})[0]["text"]
    assert type(price) is float
    assert json.dumps(price) == "0.1"


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        (
            "{{output:nope}}",
            "No stored output has the handle 'nope', or none that may be read from here. "
            "It may have expired; use handles exactly as they were given.",
        ),
        ("{{output:json#/items/3}}", "/items/3: the array has 1 element."),
        ("{{output:text#/a}}", "The output is not JSON (line 1, column 1: Expecting value). Use grep, lines or a slice."),
        ("{{output:text#L2-9}}", "it asks for the lines 2 to 9, and the output has 3."),
        ("{{output:text#L3-2}}", "it asks for the lines 3 to 2, and the output has 3."),
        (
            "{{output:text#L0-2}}",
            "a reference is {{output:HANDLE}}, {{output:HANDLE#/json/pointer}} or {{output:HANDLE#L10-20}}.",
        ),
        ("{{output:text#}}", "a reference is {{output:HANDLE}}, {{output:HANDLE#/json/pointer}} or {{output:HANDLE#L10-20}}."),
        ("{{output:picture}}", "the output is not text."),
        ("{{output:broken}}", "the output is not text."),
        ("{{output:broken#/a}}", "the output is not text."),
        ("{{output:json#/huge}}", "the number 1e999 is too large to be passed on."),
        ("{{output:json#/long}}", "the number there is too large to be passed on."),
        ("{{output:deep#/0}}", "The JSON is nested too deeply to be queried. Use grep, lines or a slice."),
    ],
)
def test_a_reference_that_cannot_be_resolved_stops_the_call(reference: str, reason: str) -> None:
    assert refusal(reference) == f"The argument /text cannot be filled in: {reason} The tool write was not called."


def test_a_value_beside_invalid_bytes_can_be_used() -> None:
    assert filled({"text": "{{output:broken#/b}}"})[0] == {"text": 1}


def test_content_stays_with_its_server() -> None:
    assert refusal("{{output:remote}}") == (
        "The argument /text cannot be filled in: outputs of mail/read may not be given to write; "
        "the setting refs.allow can permit it. The tool write was not called."
    )
    assert filled({"text": "{{output:remote}}"}, server="mail")[0] == {"text": "secret"}
    assert "outputs of crawl may not be given to mail/write" in refusal("{{output:text}}", server="mail")


@pytest.mark.parametrize(
    ("allow", "permitted"),
    [
        (("mail", ""), True),
        (("*", "*"), True),
        (("ma*", "/write"), True),
        (("mail/read", "*/wr*"), True),
        (("mail/*", "/*"), True),
        (("read", "*"), False),
        (("mail", "write"), False),
        (("mail/send", "*"), False),
        (("", "mail"), False),
        (("m.il", "*"), False),
    ],
)
def test_an_allowed_pair_permits_more(allow: tuple[str, str], permitted: bool) -> None:
    if permitted:
        assert filled({"text": "{{output:remote}}"}, allow=[allow])[0] == {"text": "secret"}
    else:
        assert "may not be given to" in refusal("{{output:remote}}", allow=[allow])


@pytest.mark.parametrize(
    ("allow", "permitted"),
    [(("depot/log", "shop/sell"), True), (("depot/depot__log", "shop/shop__sell"), True), (("depot/lo", "*"), False)],
)
def test_a_servers_tools_are_allowed_by_either_of_their_names(allow: tuple[str, str], permitted: bool) -> None:
    source = stored("secret", server="depot", tool="depot__log")
    call = ToolCall("", "shop__sell", {"text": "{{output:x}}"}, "shop")
    if permitted:
        assert resolve(call, lambda _: source, allow=[allow], max_ref_bytes=100)[0] == {"text": "secret"}
    else:
        with pytest.raises(RefError) as refused:
            resolve(call, lambda _: source, allow=[allow], max_ref_bytes=100)
        assert str(refused.value) == (
            "The argument /text cannot be filled in: outputs of depot/log may not be given to shop/sell; "
            "the setting refs.allow can permit it. The tool shop__sell was not called."
        )


@pytest.mark.parametrize("reference", ["{{output:text}}", "{{output:json#/items}}", "{{output:json#/name}}"])
def test_too_much_content_stops_the_call(reference: str) -> None:
    assert refusal(reference, max_ref_bytes=3) == (
        "The argument /text cannot be filled in: the references of one call may have 3 bytes together, "
        "and with it there are more. The tool write was not called."
    )


def test_the_references_of_a_call_count_together() -> None:
    line = "{{output:text#L1-1}}"
    assert len(filled({"a": line, "b": line}, max_ref_bytes=8)[1]) == 2
    assert "may have 7 bytes together" in refusal([line, line], max_ref_bytes=7)


def test_filled_arguments_are_checked_against_the_tool() -> None:
    def check(args: Mapping[str, Any]) -> str | None:
        return None if isinstance(args["text"], str) else "text has to be a string."

    assert filled({"text": "{{output:text}}"}, check=check)[1]
    assert filled({"text": 7}, check=check) == ({"text": 7}, [])
    assert refusal("{{output:json#/items}}", check=check) == (
        "With the references filled in, the arguments do not suit the tool write: text has to be a string. It was not called."
    )


def test_arguments_nested_too_deeply_are_refused() -> None:
    nested: Any = "x"
    for _ in range(20_000):
        nested = [nested]
    assert refusal(nested) == "The argument / cannot be filled in: it is nested too deeply. The tool write was not called."


@pytest.mark.parametrize("reference", ["{{output:text}}", "{{output:text#L2-3}}"])
@pytest.mark.slow
def test_many_references_take_time_in_proportion(reference: str) -> None:
    def work(count: int) -> Callable[[], object]:
        return partial(filled, {"texts": [reference] * count}, max_ref_bytes=10**9)

    assert is_linear(work, 2_000, quick=0.0, hopeless=20.0)
