"""Replace old results in a conversation by their names: without loss, and seldom, because each change costs the prompt cache.

Understands the messages of OpenAI's two APIs and of Anthropic's, as dictionaries. Everything else stays as it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, cast

import anyio.to_thread
from msgspec import Struct

from overspill.budget import ContextBudget
from overspill.errors import BadRequest, require
from overspill.settings import Settings
from overspill.text import encoding, tokens
from overspill.types import Kept
from overspill.wording.replies import COMPACTED, compacted_result

MIN_RESULT_TOKENS = 200
"""Smaller results stay: the line in their place would save little."""
_MESSAGE_TOKENS = 4  # for role and separators
_NOT_TEXT = frozenset(("data", "image_url", "file_data", "signature", "encrypted_content"))  # keys of what no vocabulary counts
_ERROR_BEGINNINGS = ("error", "tool failed", "traceback")  # of results whose format cannot mark them as errors

Message: TypeAlias = Mapping[str, Any]
Keep: TypeAlias = Callable[[str, str], Awaitable[Kept]]
"""Stores a text under the name of its tool."""


class _Result(Struct, frozen=True):
    """A text of a tool's result, and where it is: in a message, in one of its blocks, in one of the block's own blocks."""

    message: int
    block: int | None
    part: int | None
    key: str
    call: str
    text: str


class Compactor:
    """Remembers what it has replaced, so that a host may pass the original messages each time and get the same prefix. What a
    session has replaced before it was opened again gets the same names.

    `find_earlier` returns the outputs with such hashes that the session had stored by then, and that can still be read.
    """

    def __init__(
        self,
        keep: Keep,
        settings: Settings,
        offered: Sequence[str],
        budget: ContextBudget | None,
        find_earlier: Callable[[Collection[str]], Iterable[Kept]],
    ) -> None:
        self._keep = keep
        self._settings = settings
        self._offered = offered
        self._budget = budget
        self._find_earlier = find_earlier
        self._lines: dict[str, str] = {}
        self._is_first = True

    async def compact(self, messages: Sequence[Message], window: int, *, threshold: float, keep_turns: int) -> list[Message]:
        require("messages", messages, Sequence, "a list of messages")
        require("window", window, int, "a number of tokens")
        if not 0 < threshold <= 1:
            raise BadRequest(f"threshold is {threshold!r}; it must be above 0 and at most 1.")
        if keep_turns < 1:
            raise BadRequest(f"keep_turns is {keep_turns!r}; it must be at least 1.")
        mark = 0 if self._budget is None else self._budget.mark()
        found = list(_find_results(messages, _find_last_turns(messages, keep_turns)))
        if self._is_first:
            earlier = await anyio.to_thread.run_sync(self._find_earlier, {_hash(result.text) for result in found})
            self._is_first = False
            self._lines |= {kept.sha256: compacted_result(kept, self._offered) for kept in earlier}
        lines = {result: self._lines[digest] for result in found if (digest := _hash(result.text)) in self._lines}
        shown = _replace(messages, lines)
        used = await anyio.to_thread.run_sync(self._count, shown)
        if used > threshold * window:
            shown = _replace(messages, lines | await self._replace_more(messages, found))
            used = await anyio.to_thread.run_sync(self._count, shown)
        if self._budget is not None:
            self._budget.recount(used, mark)
        return shown

    async def _replace_more(self, messages: Sequence[Message], found: Sequence[_Result]) -> dict[_Result, str]:
        lines: dict[_Result, str] = {}
        names = dict(_find_names(messages))
        for result in found:
            if (digest := _hash(result.text)) not in self._lines:
                if not await anyio.to_thread.run_sync(self._is_worth_it, result.text):
                    continue
                kept = await self._keep(result.text, names.get(result.call, "tool"))
                self._lines[digest] = compacted_result(kept, self._offered)
            lines[result] = self._lines[digest]
        return lines

    def _count(self, messages: Sequence[Message]) -> int:
        texts = [text for message in messages for text in _find_texts(message)]
        return sum(tokens.count(text, self._settings.model).tokens for text in texts) + _MESSAGE_TOKENS * len(messages)

    def _is_worth_it(self, text: str) -> bool:
        return tokens.count(text, self._settings.model).tokens >= MIN_RESULT_TOKENS


def _hash(text: str) -> str:
    return hashlib.sha256(encoding.encode(text)).hexdigest()


def _find_last_turns(messages: Sequence[Message], count: int) -> int:
    """The index at which the last turns begin. A turn begins with an answer of the model, so that what came before was used."""
    starts = [index for index in range(len(messages)) if _is_answer(messages, index)]
    return starts[-count] if len(starts) >= count else 0


def _is_answer(messages: Sequence[Message], index: int) -> bool:
    """Whether the model begins to speak here. OpenAI's newer API has an item for each of its calls."""
    return _is_models(messages[index]) and not (index and _is_models(messages[index - 1]))


def _is_models(message: Message) -> bool:
    return message.get("role") == "assistant" or message.get("type") in ("function_call", "reasoning")


def _find_results(messages: Sequence[Message], end: int) -> Iterator[_Result]:
    for index, message in enumerate(messages[:end]):
        if message.get("role") == "tool":
            yield from _find_in(message, "content", str(message.get("tool_call_id")), index, None)
        elif message.get("type") == "function_call_output":
            yield from _find_in(message, "output", str(message.get("call_id")), index, None)
        elif isinstance(content := message.get("content"), list):
            for number, block in enumerate(cast("list[Any]", content)):
                if isinstance(block, Mapping) and cast("Message", block).get("type") == "tool_result":
                    known = cast("Message", block)
                    if not known.get("is_error"):
                        yield from _find_in(known, "content", str(known.get("tool_use_id")), index, number)


def _find_in(holder: Message, key: str, call: str, message: int, block: int | None) -> Iterator[_Result]:
    content = holder.get(key)
    parts = [(None, content)] if isinstance(content, str) else []
    if isinstance(content, list):
        blocks = cast("list[Any]", content)
        parts = [(number, cast("Message", each).get("text")) for number, each in enumerate(blocks) if isinstance(each, Mapping)]
    for part, text in parts:
        if isinstance(text, str) and not text.startswith(COMPACTED) and not text[:20].lower().startswith(_ERROR_BEGINNINGS):
            yield _Result(message, block, part, key, call, text)


def _find_names(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """The name of the tool of each call."""
    for message in messages:
        if message.get("type") == "function_call":
            yield str(message.get("call_id")), str(message.get("name"))
        calls: Any = message.get("tool_calls") or ()
        for call in calls:
            yield str(call.get("id")), str(cast("Message", call.get("function") or {}).get("name"))
        for block in cast("list[Any]", content) if isinstance(content := message.get("content"), list) else ():
            if isinstance(block, Mapping) and cast("Message", block).get("type") == "tool_use":
                yield str(cast("Message", block).get("id")), str(cast("Message", block).get("name"))


def _find_texts(value: object) -> Iterator[str]:
    """The strings in a message, without those of images and files, which count otherwise."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, Mapping):
            waiting.extend(below for key, below in cast("Mapping[str, object]", each).items() if key not in _NOT_TEXT)
        elif isinstance(each, list | tuple):
            waiting.extend(cast("Sequence[object]", each))


def _replace(messages: Sequence[Message], lines: Mapping[_Result, str]) -> list[Message]:
    """Copies of the messages that change. The host's own stay as they are."""
    changed: list[Message] = list(messages)
    for result, line in lines.items():
        message = dict(changed[result.message])
        if result.block is None:
            message[result.key] = _put(message[result.key], result.part, line)
        else:
            blocks = list(message["content"])
            block = blocks[result.block]
            blocks[result.block] = {**block, result.key: _put(block[result.key], result.part, line)}
            message["content"] = blocks
        changed[result.message] = message
    return changed


def _put(content: Any, part: int | None, line: str) -> Any:
    if part is None:
        return line
    return [{**each, "text": line} if number == part else each for number, each in enumerate(content)]
