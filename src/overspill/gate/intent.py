"""What a caller is looking for in a result, in words: as it says itself, or as its call and its conversation show.

A model says it in `looking_for`, an argument that is added to the schemas of tools, and taken off again before a tool is called.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any, TypeAlias, cast

from msgspec import Struct

from overspill.gate.collect import block_text, field
from overspill.lexical.words import read_lexicon, split_words, word_set
from overspill.settings import Settings
from overspill.types import ToolCall

MAX_INTENT_CHARS = 20_000
"""Of an intent that a caller gives. The engine would not look for more words either, and says so."""
MAX_SAID_CHARS = 500
"""Of what the user and the model said last."""
_MAX_ARGUMENT_CHARS = 500  # longer ones are content to work on, not a question
_MAX_VALUES = 100  # looked at in the arguments of a call
_MAX_DEPTH = 3
_MAX_MESSAGES = 1_000  # looked at, from the last one
_MIN_SHARE_OF_WORDS = 2 / 3  # in a string that reads as words
_MIN_TELLING_WORDS = 2  # in what somebody said: "let me check" asks for nothing

_NOT_QUESTIONS = word_set(
    """auth body cmd code command content contents credential credentials cursor cwd data dir directory encoding file filename
    files folder format handle host id ids input key lang language locale method mode model order output passphrase password
    path paths payload regex script secret secrets shell sort sql token type unit units uri url urls user username version"""
)
"""Words in the names of arguments that say where, how or as whom to look, and not what for."""
_USER_ROLES = ("user", "human")
_MODEL_ROLES = ("assistant", "model", "ai")


class Intent(Struct, frozen=True):
    """The questions to put to an output, the best first. Only the answer to one of them is shown."""

    questions: tuple[str, ...]
    is_explicit: bool = False
    """Whether the caller gave it as such. If not, it is a guess, and only an answer that is likely right is worth showing."""


Messages: TypeAlias = Sequence[Any] | Callable[[], Sequence[Any]]
"""A conversation, or a function that returns it, which is called only if somebody wants to know."""


class _Said:
    """What was said last in a conversation. Most results are small and pass, so it is read only when it is needed."""

    def __init__(self, owner: object, messages: Messages) -> None:
        self.owner = owner
        self.messages: Messages | None = messages
        """None once they were read, or when the turn ends: a context lives as long as the threads and tasks started in it."""
        self._count = None if callable(messages) else len(messages)
        self._words: tuple[str, ...] = ()

    def read(self) -> tuple[str, ...]:
        if self.messages is not None:
            messages, self.messages = self.messages, None
            self._words = read_last_words(messages() if callable(messages) else messages, self._count)
        return self._words


_said: ContextVar[_Said | None] = ContextVar("overspill_said", default=None)
"""What was said in the turn. It travels with every task of the turn."""


@contextmanager
def remember_said(owner: object, messages: Messages) -> Generator[None]:
    """Calls that are made inside look for what the last messages say. Without messages, for what they did before."""
    if not messages:
        yield
        return
    said = _Said(owner, messages)
    before = _said.set(said)
    try:
        yield
    finally:
        said.messages = None
        _said.reset(before)


def find_intent(owner: object, call: ToolCall, settings: Settings) -> Intent | None:
    """None: nothing is known, or the settings turn it off. `settings` are the tool's."""
    if settings.intent == "off":
        return None
    if call.intent.strip():
        return Intent((call.intent[:MAX_INTENT_CHARS],), is_explicit=True)
    said = _said.get()
    asked = read_arguments(call.args)
    questions = tuple(filter(None, (asked, *(said.read() if said is not None and said.owner is owner else ()))))
    return Intent(questions) if questions else None


def read_arguments(args: object) -> str:
    """The words in the arguments of a call, if they have any. Where some strings have several words, single words are options."""
    found = [value.strip() for value in islice(_walk(args, _MAX_DEPTH), _MAX_VALUES) if value and _reads_as_words(value)]
    phrases = [value for value in found if len(value.split()) > 1]
    return " ".join(phrases or found)


def read_last_words(messages: Sequence[Any], count: int | None = None) -> tuple[str, ...]:
    """What the model said last, then what the user did: from messages with a role and content, in any provider's format.

    `count`: how many messages there were when the call was made. A host may have added others since.
    """
    found: dict[tuple[str, ...], str] = {}
    later = 0 if count is None else max(0, len(messages) - count)
    for message in islice(reversed(messages), later, later + _MAX_MESSAGES):
        role = field(message, "role")
        for roles in (_MODEL_ROLES, _USER_ROLES):
            if role in roles and roles not in found and (text := _message_text(message)):
                found[roles] = text
        if len(found) == 2:
            break
    texts = [found.get(roles, "") for roles in (_MODEL_ROLES, _USER_ROLES)]
    return tuple(text for text in texts if len(_find_telling(split_words(text))) >= _MIN_TELLING_WORDS)


def _walk(value: object, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif depth and isinstance(value, Mapping):
        for name, below in cast("Mapping[object, object]", value).items():
            spaced = "".join(f" {char}" if char.isupper() else char for char in name[:100]) if isinstance(name, str) else ""
            if not _NOT_QUESTIONS.intersection(split_words(spaced)):
                yield from _walk(below, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for below in cast("Sequence[object]", value):
            yield from _walk(below, depth - 1)


def _reads_as_words(text: str) -> bool:
    """Whether most of it is words and not an id, a path, an address, a number or code."""
    if len(text) > _MAX_ARGUMENT_CHARS:
        return False
    parts = text.split()
    words = [part for part in parts if (bare := part.strip("\"'“”‘’`.,;:!?()")).replace("-", "").isalpha() and len(bare) > 1]
    return bool(parts) and len(words) >= _MIN_SHARE_OF_WORDS * len(parts) and bool(_find_telling(words))


def _find_telling(words: Iterable[str]) -> set[str]:
    return {word for word in words if word.lower() not in read_lexicon("stop") and word.lower() not in read_lexicon("wording")}


def _message_text(message: object) -> str:
    """The end of a message's text. Results of tools, which some providers send as the user's, are no text of the user's."""
    content = field(message, "content")
    if content is None:
        content = field(message, "text")
    if isinstance(content, list | tuple):
        texts = (block_text(block) for block in cast("Sequence[object]", content) if field(block, "type") == "text")
        content = " ".join(text[-MAX_SAID_CHARS:] for text in texts if text)
    return content[-MAX_SAID_CHARS:].strip() if isinstance(content, str) else ""


LOOKING_FOR = "looking_for"
_DESCRIPTION = "What you need from the result, then in parentheses other words for it; used only if the result is too large."
_PLAIN_KEYWORDS = word_set(
    """$schema $id $defs $comment additionalProperties default definitions deprecated description examples properties readOnly
    required title type writeOnly"""
)
"""Beside these, an argument more can never contradict a schema. Other keywords may count, name or exclude arguments."""


def asks(settings: Settings, schema: object, *, strict: object = None) -> bool:
    """Whether the argument is added to this schema: the settings want it, and no client that checks arguments would refuse it.

    `strict`: whether the definition is for a provider's strict mode, which has no optional arguments.
    """
    if settings.intent != "ask" or settings.off or strict or not isinstance(schema, Mapping):
        return False
    known = cast("Mapping[str, Any]", schema)
    properties, required = known.get("properties", {}), known.get("required", [])
    return (
        known.get("type") == "object"
        and isinstance(properties, Mapping)
        and isinstance(required, list)
        and LOOKING_FOR not in properties
        and LOOKING_FOR not in required
        and isinstance(known.get("additionalProperties", True), bool)
        and _PLAIN_KEYWORDS.issuperset(known)
    )


def add_argument(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with the argument, after all others."""
    own = {LOOKING_FOR: {"type": "string", "description": _DESCRIPTION}}
    return {**schema, "properties": {**schema.get("properties", {}), **own}}


def take_off(args: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
    """The arguments without it, and what it says. Only a string says something."""
    rest = {name: value for name, value in args.items() if name != LOOKING_FOR}
    said = args.get(LOOKING_FOR)
    return rest, said if isinstance(said, str) else ""
