"""The argument `looking_for` in frameworks: on the schemas that a model sees, and off again before the call."""

from __future__ import annotations

from typing import Any

from overspill import Settings
from overspill.integrations.options import Asking

PLAIN: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
OWN: dict[str, Any] = {"type": "object", "properties": {"looking_for": {"type": "string"}}}


def test_it_is_added_and_taken_off():
    asking = Asking(Settings(intent="ask"))
    assert list(asking.widen("t", PLAIN)["properties"]) == ["a", "looking_for"]
    assert asking.take_off("t", {"a": "b", "looking_for": "c"}) == ({"a": "b"}, "c")
    assert list(PLAIN["properties"]) == ["a"]


def test_a_tool_keeps_its_own_argument_of_this_name():
    asking = Asking(Settings(intent="ask"))
    assert asking.widen("t", OWN) is OWN
    assert asking.take_off("t", {"looking_for": "c"}) == ({"looking_for": "c"}, "")


def test_of_two_tools_with_one_name_none_loses_its_argument():
    for schemas in ([PLAIN, OWN], [OWN, PLAIN]):
        asking = Asking(Settings(intent="ask"))
        for schema in schemas:
            asking.widen("t", schema)
        assert asking.take_off("t", {"looking_for": "c"}) == ({"looking_for": "c"}, "")


def test_a_tool_that_was_never_shown_keeps_all_arguments():
    assert Asking(Settings(intent="ask")).take_off("t", {"looking_for": "c"}) == ({"looking_for": "c"}, "")


def test_unless_asked_for_nothing_changes():
    asking = Asking(Settings())
    assert asking.widen("t", PLAIN) is PLAIN
    assert asking.take_off("t", {"looking_for": "c"}) == ({"looking_for": "c"}, "")


def test_one_tool_can_be_left_out():
    asking = Asking(Settings(intent="ask", truncation={"overrides": {"t": {"intent": "off"}}}))  # pyright: ignore[reportArgumentType]
    assert asking.widen("t", PLAIN) is PLAIN
    assert asking.widen("u", PLAIN) is not PLAIN


def test_what_a_framework_has_checked_gets_back_what_the_model_is_looking_for():
    asking = Asking(Settings(intent="ask"))
    asking.widen("t", PLAIN)
    assert asking.put_back("t", {"a": 1}, {"a": "1", "looking_for": "c"}) == {"a": 1, "looking_for": "c"}
    assert asking.put_back("t", {"a": 1}, {"a": "1"}) == {"a": 1}
