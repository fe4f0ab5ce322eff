"""Old results in a framework's conversation: what `Session.compact` replaces, for adapters that see the messages of a request.

An adapter says what was said, called and answered, in order, and gets the lines to show in place of some results. It puts them
into copies of its messages, so that the framework's own history stays whole and every call keeps its result.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Literal, TypeAlias

from msgspec import Struct

from overspill.errors import BadRequest
from overspill.integrations.sessions import AgentRun


class Said(Struct, frozen=True):
    """A message that is never replaced, such as a result with an image in it."""

    role: Literal["user", "assistant"]
    text: str


class Called(Struct, frozen=True):
    id: str
    name: str
    args: object


class OldResult(Struct, frozen=True):
    """The text of a tool's result. `place`: where the adapter finds it again; ids may repeat in a conversation."""

    place: Hashable
    id: str
    text: str
    is_error: bool = False


Entry: TypeAlias = Said | Called | OldResult
Entries: TypeAlias = Callable[[], Iterable[Entry]]
"""Reads the conversation. It is called only if old results are to be replaced at all."""
Lines: TypeAlias = dict[Hashable, str]
"""What to show in place of results, by their places."""


async def compact(run: AgentRun, read: Entries) -> Lines:
    entries, messages, options = _prepare(run, read)
    return _find_changes(entries, messages, await (await run.open()).compact(messages, **options)) if messages else {}


def compact_sync(run: AgentRun, read: Entries) -> Lines:
    entries, messages, options = _prepare(run, read)
    return _find_changes(entries, messages, run.open_sync().compact(messages, **options)) if messages else {}


def _prepare(run: AgentRun, read: Entries) -> tuple[list[Entry], list[dict[str, Any]], dict[str, Any]]:
    """Return the conversation, as entries and as messages, and arguments of `Session.compact`. Empty if it has no results."""
    if run.options.compact is None:
        return [], [], {}
    if (window := run.window) is None:
        raise BadRequest(
            "compact is a share of the model's window, and the framework does not say how large that is. Give `budget` as well."
        )
    entries = list(read())
    messages = [_to_message(entry) for entry in entries] if any(isinstance(each, OldResult) for each in entries) else []
    return entries, messages, {"window": window, "threshold": run.options.compact}


def _to_message(entry: Entry) -> dict[str, Any]:
    match entry:
        case Said(role, text):
            return {"role": role, "content": text}
        case Called(id, name, args):
            written = args if isinstance(args, str) else json.dumps(args, ensure_ascii=False, default=str)
            return {"role": "assistant", "content": [{"type": "tool_use", "id": id, "name": name, "input": written}]}
        case OldResult(_, id, text, is_error):
            answer = {"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error}
            return {"role": "user", "content": [answer]}


def _find_changes(entries: list[Entry], before: list[dict[str, Any]], after: list[Any]) -> Lines:
    changed = [(entry, now) for entry, was, now in zip(entries, before, after, strict=True) if now is not was]
    return {entry.place: now["content"][0]["content"] for entry, now in changed if isinstance(entry, OldResult)}
