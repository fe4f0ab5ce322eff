"""Keep the output in a hook's event, in the family of its client and project."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from overspill.hooks.shapes import Client, HookEvent, HookOutput, Unusable, family_of
from overspill.retrieval.definitions import TOOLS
from overspill.retrieval.group import SessionGroup
from overspill.session.session import Session
from overspill.settings import Layer, Settings
from overspill.settings.opening import open_configured_store
from overspill.text import humanize, tokens

HOOK_DEFAULTS = Layer("hook", {"repeats": "full", "toolTimeout": None})
ASSIGNMENTS = ("refs.enabled=false",)
"""A model's command may contain what looks like a reference to a stored output."""
_MAX_NOTE_TOKENS = 150


async def keep(
    client: Client, project: str, event: HookEvent, found: HookOutput, settings: Settings, secrets: Mapping[str, str]
) -> Mapping[str, Any] | None:
    """Return the answer; None if the output fits and has nothing to hide. Raises Unusable if it could not be stored whole."""
    if event.tool_name.rpartition("__")[2] in TOOLS:
        return None

    async def return_text(**_: object) -> str:
        return found.text

    args = cast("dict[str, Any]", event.tool_input) if isinstance(event.tool_input, dict) else {}
    async with Session(settings, family=family_of(client, project), preload=False, secrets=secrets) as session:
        reply = await session.call(event.tool_name, args, return_text, background=False)
    if reply.kept is None and reply.truncation is not None:
        raise Unusable("it could not be stored")
    if reply.kept is None:
        return None if reply.value == found.text else found.answer(reply.text)
    if reply.kept.missing:
        raise Unusable(f"it could not be stored whole: {reply.kept.missing}")
    return found.answer(reply.text)


def remind(client: Client, project: str, settings: Settings) -> Mapping[str, Any] | None:
    """Return a note that reminds a model of its stored outputs, of as many as fit; None if nothing is stored."""
    group = SessionGroup(open_configured_store(settings), family_of(client, project))
    lines = [
        "Outputs stored earlier in this project, newest and most used first. "
        "Read one with get_tool_output(id=...) or `overspill get NAME`:"
    ]
    for kept in group.list_most_useful():
        source = humanize.one_line(kept.source or kept.tool, 60)
        lines.append(f"- {kept.name}: {source}, {humanize.format_size(kept.size.bytes)}")
        if tokens.count("\n".join(lines)).tokens > _MAX_NOTE_TOKENS:
            lines.pop()
            break
    if len(lines) == 1:
        return None
    return {"hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "\n".join(lines)}}
