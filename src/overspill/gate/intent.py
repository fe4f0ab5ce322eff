"""What a caller is looking for in a result, in its own words, or judging by its call and its conversation.

A model says it in `looking_for`, an argument that we add to the schemas of tools and remove before calling the tool.
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
"""The longest intent that a caller may give. The engine searches for no more words either, and says so."""
MAX_SAID_CHARS = 500
"""How much to use of the last words of the user and the model."""
_MAX_ARGUMENT_CHARS = 500  # longer arguments are content to work on, not a question
_MAX_VALUES = 100  # how many to check in the arguments of a call
_MAX_DEPTH = 3
_MAX_MESSAGES = 1_000  # how many to check, from the last one
_MIN_SHARE_OF_WORDS = 2 / 3  # in a string that reads as words
_MIN_TELLING_WORDS = 2  # in a message: "let me check" asks for nothing

_NOT_QUESTIONS = word_set(
    """auth body cmd code command content contents credential credentials cursor cwd data dir directory encoding file filename
    files folder format handle host id ids input key lang language locale method mode model order output passphrase password
    path paths payload regex script secret secrets shell sort sql token type unit units uri url urls user username version"""
)
"""Words in the names of arguments that say where, how or as whom to look, but not for what."""
_USER_ROLES = ("user", "human")
_MODEL_ROLES = ("assistant", "model", "ai")


class Intent(Struct, frozen=True):
    """The questions about an output, the best first. Only one of them is answered."""

    questions: tuple[str, ...]
    is_explicit: bool = False
    """Whether the caller gave it explicitly. Otherwise it is a guess, and only an answer that is likely right is shown."""


Messages: TypeAlias = Sequence[Any] | Callable[[], Sequence[Any]]
"""A conversation, or a function that returns it and is called only when needed."""


class _Said:
    """The last words of a conversation. Read only when needed, because most results are small and pass."""

    def __init__(self, owner: object, messages: Messages) -> None:
        self.owner = owner
        self.messages: Messages | None = messages
        """None once they are read or the turn ends, because a context lives as long as the threads and tasks started in it."""
        self._count = None if callable(messages) else len(messages)
        self._words: tuple[str, ...] = ()

    def read(self) -> tuple[str, ...]:
        if self.messages is not None:
            messages, self.messages = self.messages, None
            self._words = read_last_words(messages() if callable(messages) else messages, self._count)
        return self._words


_said: ContextVar[_Said | None] = ContextVar("overspill_said", default=None)
"""The last words of the turn. Every task of the turn inherits them."""


@contextmanager
def remember_said(owner: object, messages: Messages) -> Generator[None]:
    """For calls made inside the block, the last messages say what to look for. Without messages, nothing changes."""
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
    """The intent behind a call; None if nothing is known or the settings turn intents off. `settings` are the tool's."""
    if settings.intent == "off":
        return None
    if call.intent.strip():
        return Intent((call.intent[:MAX_INTENT_CHARS],), is_explicit=True)
    said = _said.get()
    asked = read_arguments(call.args)
    questions = tuple(filter(None, (asked, *(said.read() if said is not None and said.owner is owner else ()))))
    return Intent(questions) if questions else None


def read_arguments(args: object) -> str:
    """The words in the arguments of a call. If some strings have several words, single words are left out as options."""
    found = [value.strip() for value in islice(_walk(args, _MAX_DEPTH), _MAX_VALUES) if value and _reads_as_words(value)]
    phrases = [value for value in found if len(value.split()) > 1]
    return " ".join(phrases or found)


def read_last_words(messages: Sequence[Any], count: int | None = None) -> tuple[str, ...]:
    """The last words of the model, then of the user, from messages with a role and content in any provider's format.

    `count`: the number of messages at the time of the call. The host may have added more since.
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
    """Whether it is mostly words, and not an id, a path, an address, a number or code."""
    if len(text) > _MAX_ARGUMENT_CHARS:
        return False
    parts = text.split()
    words = [part for part in parts if (bare := part.strip("\"'“”‘’`.,;:!?()")).replace("-", "").isalpha() and len(bare) > 1]
    return bool(parts) and len(words) >= _MIN_SHARE_OF_WORDS * len(parts) and bool(_find_telling(words))


def _find_telling(words: Iterable[str]) -> set[str]:
    return {word for word in words if word.lower() not in read_lexicon("stop") and word.lower() not in read_lexicon("wording")}


def _message_text(message: object) -> str:
    """The end of a message's text. Leaves out tool results, which some providers send in user messages."""
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
"""With only these keywords, another argument cannot violate a schema. Other keywords may count, name or exclude arguments."""


def asks(settings: Settings, schema: object, *, strict: object = None) -> bool:
    """Whether to add the argument to this schema: the settings ask for it, and a client that checks arguments would accept it.

    `strict`: whether the definition is for a provider's strict mode, which does not allow optional arguments.
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
    """The arguments without it, and its value, or an empty string if that is not a string."""
    rest = {name: value for name, value in args.items() if name != LOOKING_FOR}
    said = args.get(LOOKING_FOR)
    return rest, said if isinstance(said, str) else ""
