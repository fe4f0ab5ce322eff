"""What a caller is looking for, as its call and its conversation show it."""

from __future__ import annotations

import gc
import weakref
from contextvars import copy_context
from typing import Any

import pytest
from msgspec import Struct

from overspill import Settings, ToolCall
from overspill.errors import BadRequest
from overspill.gate.intent import MAX_INTENT_CHARS, Intent, find_intent, read_arguments, read_last_words, remember_said


class Message(Struct, weakref=True):
    role: str
    text: str


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"q": "failed payments in May"}, "failed payments in May"),
        ({"city": "Paris"}, "Paris"),
        ({"query": "timeouts of v2.3", "format": "json", "limit": 5}, "timeouts of v2.3"),
        ({"query": "slow requests", "team": "billing"}, "slow requests"),
        ({"filters": [{"about": "refund requests"}, {"about": "open invoices"}]}, "refund requests open invoices"),
        ({"q": "Welche Zahlungen sind fehlgeschlagen?"}, "Welche Zahlungen sind fehlgeschlagen?"),
        ({"q": "支払いの失敗"}, "支払いの失敗"),
        ({"path": "/var/log/app.log"}, ""),
        ({"target": "/var/log/app.log"}, ""),
        ({"page": "https://example.com/a-b"}, ""),
        ({"thing": "art_1794717193124_30de8211e5e402e61f9"}, ""),
        ({"apiKey": "correct horse battery staple", "user_password": "let me in please"}, ""),
        ({"command": "npm test", "sql": "select name from users"}, ""),
        ({"q": "show all of the results"}, ""),
        ({"q": "x" * 600}, ""),
        ({"n": 5, "flag": True, "none": None}, ""),
        ({}, ""),
        ("no object", "no object"),
        (None, ""),
    ],
)
def test_the_words_of_a_call_are_what_reads_as_words_in_its_arguments(args: Any, words: str) -> None:
    assert read_arguments(args) == words


def test_deep_and_wide_arguments_are_read_only_so_far() -> None:
    deep: Any = "hidden question words"
    for _ in range(2000):
        deep = [deep]
    assert read_arguments({"a": deep}) == ""
    assert len(read_arguments({"a": ["two words"] * 100_000}).split()) == 200


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        (
            [
                {"role": "user", "content": "Which payments failed?"},
                {"role": "assistant", "content": "Searching failed ones."},
            ],
            ("Searching failed ones.", "Which payments failed?"),
        ),
        (
            [{"role": "user", "content": "Which payments failed?"}, {"role": "assistant", "content": ""}],
            ("Which payments failed?",),
        ),
        ([Message("user", "Which payments failed?"), Message("assistant", "Let me check.")], ("Which payments failed?",)),
        (
            [
                {"role": "user", "content": [{"type": "text", "text": "Which payments failed?"}, {"type": "image"}]},
                {"role": "assistant", "content": None, "tool_calls": []},
                {"role": "tool", "content": "thousands of payments failed"},
                {"role": "user", "content": [{"type": "tool_result", "content": "thousands of payments failed"}]},
            ],
            ("Which payments failed?",),
        ),
        ([{"role": "system", "content": "You know payments well"}, "a string", 5, None], ()),
        ([], ()),
    ],
)
def test_the_last_words_of_the_user_and_the_model_are_found_in_any_shape(messages: list[Any], said: tuple[str, ...]) -> None:
    assert read_last_words(messages) == said


def test_of_a_long_message_the_end_counts() -> None:
    (said,) = read_last_words([{"role": "user", "content": "old " * 100_000 + "which payments failed"}])
    assert said.endswith("which payments failed")
    assert len(said) <= 500


def test_what_a_caller_says_itself_comes_before_everything_else() -> None:
    gate, call = object(), ToolCall("1", "t", {"q": "failed payments"}, intent="their ids and dates")
    with remember_said(gate, [{"role": "user", "content": "Which payments failed?"}]):
        assert find_intent(gate, call, Settings()) == Intent(("their ids and dates",), is_explicit=True)
        assert find_intent(gate, ToolCall("1", "t", {"q": "failed payments"}), Settings()) == Intent(
            ("failed payments", "Which payments failed?")
        )


@pytest.mark.parametrize("blank", ["", " \n\t"])
def test_an_empty_intent_is_none(blank: str) -> None:
    assert find_intent(None, ToolCall("1", "t", {}, intent=blank), Settings()) is None


def test_a_conversation_is_read_only_when_somebody_wants_to_know() -> None:
    asked: list[str] = []

    def read() -> list[dict[str, str]]:
        asked.append("read")
        return [{"role": "user", "content": "Which payments failed?"}]

    with remember_said("gate", read):
        assert asked == []
        for _ in range(2):
            assert find_intent("gate", ToolCall("1", "t"), Settings()) == Intent(("Which payments failed?",))
    assert asked == ["read"]


def test_what_is_said_after_the_call_was_made_does_not_count() -> None:
    messages = [{"role": "user", "content": "Which payments failed?"}]
    with remember_said("gate", messages):
        messages.append({"role": "user", "content": "How is the weather in Paris?"})
        assert find_intent("gate", ToolCall("1", "t"), Settings()) == Intent(("Which payments failed?",))


def test_a_context_that_lives_on_does_not_hold_the_conversation() -> None:
    """A worker thread keeps the context in which it was started."""
    message = Message("user", "Which payments failed?")
    gone = weakref.ref(message)
    with remember_said("gate", [message]):
        kept = copy_context()
    del message
    gc.collect()
    assert gone() is None
    assert kept.run(find_intent, "gate", ToolCall("1", "t"), Settings()) is None


def test_what_was_said_in_one_session_says_nothing_about_another() -> None:
    with remember_said("one", [{"role": "user", "content": "Which payments failed?"}]):
        assert find_intent("another", ToolCall("1", "t"), Settings()) is None


@pytest.mark.parametrize("settings", [Settings(intent="off"), Settings("tool_output"), Settings("artifacts"), Settings("slow")])
def test_settings_and_the_presets_that_follow_documents_turn_it_off(settings: Settings) -> None:
    assert find_intent(None, ToolCall("1", "t", {"q": "failed payments"}, intent="x"), settings) is None


def test_one_tool_can_be_an_exception() -> None:
    rules = {"search": {"intent": "implicit"}}
    settings = Settings(intent="off", truncation={"overrides": rules}, servers={"hub": {"intent": "ask"}})
    assert settings.for_tool("search").intent == "implicit"
    assert settings.for_tool("anything", "hub").intent == "ask"
    assert settings.for_tool("other").intent == "off"


def test_a_very_long_intent_is_cut() -> None:
    found = find_intent(None, ToolCall("1", "t", intent="word " * 10_000), Settings())
    assert found is not None
    assert len(found.questions[0]) == MAX_INTENT_CHARS


def test_an_intent_that_is_no_string_is_a_clear_error() -> None:
    wrong: Any = ["ids"]
    with pytest.raises(BadRequest, match="`intent` of a call must be a string"):
        ToolCall("1", "t", intent=wrong)
