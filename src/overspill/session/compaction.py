"""Replace old results in a conversation by their names: losslessly, and seldom, because each change costs the prompt cache.

Understands the messages of OpenAI's two APIs and of Anthropic's, as dictionaries. Everything else stays unchanged.
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
"""Smaller results stay, because replacing them with a line would save little."""
_MESSAGE_TOKENS = 4  # added to each message for its role and separators
_NOT_TEXT = frozenset(("data", "image_url", "file_data", "signature", "encrypted_content"))  # keys that no vocabulary counts
_ERROR_BEGINNINGS = ("error", "tool failed", "traceback")  # how errors begin in formats that cannot mark them as errors

Message: TypeAlias = Mapping[str, Any]
Keep: TypeAlias = Callable[[str, str], Awaitable[Kept]]
"""Takes the name of a tool and the text of its result, and stores the text."""


class Compactor(Struct, eq=False):
    """Remembers what it has replaced, so a host may pass the original messages each time and get the same beginning. Names also
    stay the same after a session is opened again.

    `find_earlier` returns the outputs with these hashes that the session had stored by then and that can still be read.
    """

    keep: Keep
    settings: Settings
    offered: Sequence[str]
    budget: ContextBudget | None
    find_earlier: Callable[[Collection[str]], Iterable[Kept]]
    _lines: dict[str, str] = {}
    _is_first: bool = True

    async def compact(self, messages: Sequence[Message], window: int, *, threshold: float, keep_turns: int) -> list[Message]:
        require("messages", messages, Sequence, "a list of messages")
        require("window", window, int, "a number of tokens")
        if not 0 < threshold <= 1:
            raise BadRequest(f"threshold is {threshold!r}; it must be above 0 and at most 1.")
        if keep_turns < 1:
            raise BadRequest(f"keep_turns is {keep_turns!r}; it must be at least 1.")
        mark = 0 if self.budget is None else self.budget.mark()
        end = _find_last_turns(messages, keep_turns)
        calls: dict[str, str] = {}
        _reword(messages, end, calls.setdefault)
        hashes = {text: hashlib.sha256(encoding.encode(text)).hexdigest() for text in calls}
        if self._is_first:
            earlier = await anyio.to_thread.run_sync(self.find_earlier, set(hashes.values()))
            self._is_first = False
            self._lines |= {kept.sha256: compacted_result(kept, self.offered) for kept in earlier}
        shown = self._shorten(messages, end, hashes)
        used = await anyio.to_thread.run_sync(self._count, shown)
        if used > threshold * window:
            names = dict(_find_names(messages))
            for text, digest in hashes.items():
                if digest in self._lines:
                    continue
                if (await anyio.to_thread.run_sync(tokens.count, text, self.settings.model)).tokens >= MIN_RESULT_TOKENS:
                    kept = await self.keep(text, names.get(calls[text], "tool"))
                    self._lines[digest] = compacted_result(kept, self.offered)
            shown = self._shorten(messages, end, hashes)
            used = await anyio.to_thread.run_sync(self._count, shown)
        if self.budget is not None:
            self.budget.recount(used, mark)
        return shown

    def _shorten(self, messages: Sequence[Message], end: int, hashes: Mapping[str, str]) -> list[Message]:
        return _reword(messages, end, lambda text, _: self._lines.get(hashes[text], text))

    def _count(self, messages: Sequence[Message]) -> int:
        texts = [text for message in messages for text in _find_texts(message)]
        return sum(tokens.count(text, self.settings.model).tokens for text in texts) + _MESSAGE_TOKENS * len(messages)


def _find_last_turns(messages: Sequence[Message], count: int) -> int:
    """The index at which the last turns begin. A turn begins with an answer of the model, so everything before it was used.
    OpenAI's newer API has an item for each of its calls."""
    spoken = [each.get("role") == "assistant" or each.get("type") in ("function_call", "reasoning") for each in messages]
    starts = [index for index, is_spoken in enumerate(spoken) if is_spoken and not (index and spoken[index - 1])]
    return starts[-count] if len(starts) >= count else 0


def _reword(messages: Sequence[Message], end: int, change: Callable[[str, str], str]) -> list[Message]:
    """The messages, with what `change` makes of the text of each tool result before `end`: it gets the text and the id of its
    call. Messages that change are copies; the host's own stay unchanged."""
    changed = list(messages)
    for index, message in enumerate(messages[:end]):
        if message.get("role") == "tool":
            changed[index] = _reword_result(message, "content", "tool_call_id", change)
        elif message.get("type") == "function_call_output":
            changed[index] = _reword_result(message, "output", "call_id", change)
        elif isinstance(content := message.get("content"), list):
            blocks = [_reword_block(block, change) for block in cast("list[Any]", content)]
            changed[index] = message if blocks == content else {**message, "content": blocks}
    return changed


def _reword_block(block: object, change: Callable[[str, str], str]) -> object:
    given: object = block
    known: Message = cast("Message", given) if isinstance(given, Mapping) else {}
    is_result = known.get("type") == "tool_result" and not known.get("is_error")
    return _reword_result(known, "content", "tool_use_id", change) if is_result else block


def _reword_result(holder: Message, key: str, id_key: str, change: Callable[[str, str], str]) -> Message:
    def put(text: Any) -> Any:
        if not isinstance(text, str) or text.startswith(COMPACTED) or text[:20].lower().startswith(_ERROR_BEGINNINGS):
            return text
        return change(text, str(holder.get(id_key)))

    content = holder.get(key)
    if not isinstance(content, list):
        return {**holder, key: put(content)} if isinstance(content, str) else holder
    parts: list[Any] = []
    for each in cast("list[Any]", content):
        has_text = isinstance(each, Mapping) and isinstance(cast("Message", each).get("text"), str)
        parts.append({**each, "text": put(each["text"])} if has_text else each)
    return {**holder, key: parts}


def _find_names(messages: Sequence[Message]) -> Iterator[tuple[str, str]]:
    """The ids of the calls in the messages, each with the name of its tool."""
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
    """The strings in a message. Leaves out images and files, which are counted in another way."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, Mapping):
            waiting.extend(below for key, below in cast("Mapping[str, object]", each).items() if key not in _NOT_TEXT)
        elif isinstance(each, list | tuple):
            waiting.extend(cast("Sequence[object]", each))
