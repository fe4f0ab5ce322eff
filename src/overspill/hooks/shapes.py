"""What a client's hook event holds, and how to answer it. Covers only what we have seen work with the real program.

Claude Code takes `updatedToolOutput` for Bash, Read and Grep. For a Bash output of more than 30,000 characters, the event
has only the beginning, because Claude Code stores the rest itself. A command that fails sends no event.
Gemini CLI puts the whole output in the event and shows the model `reason` in its place, as an error.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct

Client: TypeAlias = Literal["claude-code", "gemini-cli"]
MAX_EVENT_BYTES = 64 << 20
SMALL_EVENT_BYTES = 12_288
"""The default limit: the output in a smaller event passes unchanged."""


def family_of(client: str, project: str) -> str:
    """Return the name that sessions share if they share outputs: one client in one project folder."""
    return f"hook-{client}-{hashlib.sha256(project.encode('utf-8', 'surrogateescape')).hexdigest()[:32]}"


def find_project(client: str, environ: Mapping[str, str], folder: Path) -> str:
    """Return the project folder: the folder that the client names in a variable, or else the folder where it started us."""
    known = HOOKS.get(cast("Client", client))
    return environ.get(known.project_variable if known else "") or os.path.abspath(folder)


class Unusable(Exception):
    """The original output must not be changed. The message says why."""


class HookEvent(Struct, frozen=True):
    """The fields that both clients send. Paths in them are never opened."""

    hook_event_name: str
    tool_name: str = ""
    tool_response: Any = None
    source: str = ""
    """Why a conversation starts, in the event that says so."""
    tool_input: Any = None


class HookOutput(Struct, frozen=True):
    """The text in an event, and the answer that shows other text in its place."""

    text: str
    answer: Callable[[str], Mapping[str, Any]]


class Hook(Struct, frozen=True):
    """A client's hook. `event` is the event with a tool's output. The variable `project_variable` names the project's folder."""

    event: str
    project_variable: str
    find: Callable[[HookEvent], HookOutput]
    returns: frozenset[str] = frozenset()
    """The sources of a `SessionStart` after which the model no longer knows what was stored."""


def decode(data: bytes) -> HookEvent:
    try:
        return msgspec.json.decode(data, type=HookEvent)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise Unusable(f"the event cannot be read: {problem}") from None


def has_forgotten(client: Client, event: HookEvent) -> bool:
    """Whether the model has lost the names of stored outputs, because its conversation was compacted or resumed."""
    return event.hook_event_name == "SessionStart" and event.source in HOOKS[client].returns


def find_text(client: Client, event: HookEvent) -> HookOutput:
    hook = HOOKS[client]
    if event.hook_event_name != hook.event:
        raise Unusable(f"the event is {event.hook_event_name[:100]!r}, not {hook.event}")
    return hook.find(event)


def _find_in_claude_code(event: HookEvent) -> HookOutput:
    response = _mapping(event.tool_response)

    def answer(shown: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"hookSpecificOutput": {"hookEventName": "PostToolUse", "updatedToolOutput": shown}}

    match event.tool_name, response:
        case "Bash", {"stdout": str(text)}:
            if response.get("persistedOutputPath"):
                raise Unusable("Claude Code has stored this output itself, and the event has only its beginning")
            return HookOutput(text, lambda shown: answer({**response, "stdout": shown}))
        case "Read", {"type": "text", "file": {"content": str(text)} as file}:
            return HookOutput(
                text, lambda shown: answer({**response, "file": {**cast("dict[str, Any]", file), "content": shown}})
            )
        case "Grep", {"content": str(text)}:
            return HookOutput(text, lambda shown: answer({**response, "content": shown}))
        case _:
            raise Unusable(f"the output of {event.tool_name[:100]!r} has a form that cannot be replaced")


def _find_in_gemini_cli(event: HookEvent) -> HookOutput:
    text = _mapping(event.tool_response).get("llmContent")
    if not isinstance(text, str):
        raise Unusable(f"the output of {event.tool_name[:100]!r} is not text")
    # Gemini CLI passes it on as an error of the tool, so the answer says that it is not one.
    return HookOutput(text, lambda shown: {"decision": "deny", "reason": f"[Not an error: the tool has run.]\n{shown}"})


def _mapping(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


HOOKS: Mapping[Client, Hook] = {
    "claude-code": Hook("PostToolUse", "CLAUDE_PROJECT_DIR", _find_in_claude_code, frozenset({"compact", "resume"})),
    "gemini-cli": Hook("AfterTool", "GEMINI_PROJECT_DIR", _find_in_gemini_cli),
}


class Observation(Struct, frozen=True):
    """What we have tested. `program` prints its version with `--version`. `limits` are what these versions do not honour."""

    title: str
    program: str
    versions: tuple[str, ...]
    """The tested versions, in order. The tests run the last of them."""
    limits: tuple[str, ...]
    deaf_version: str = ""
    """A version that, like all earlier ones, ignores a hook's answer."""


OBSERVED: dict[Client, Observation] = {
    "claude-code": Observation(
        "Claude Code",
        "claude",
        ("2.1.120", "2.1.197", "2.1.325"),
        (
            "Bash outputs of more than 30,000 characters stay with Claude Code, which stores them itself.",
            "Outputs of commands that fail are not replaced: Claude Code sends hooks no event for them.",
        ),
        deaf_version="2.1.59",
    ),
    "gemini-cli": Observation(
        "Gemini CLI",
        "gemini",
        ("0.61.0",),
        ("What replaces an output is shown to the model as an error of the tool, so its first line says that it is not one.",),
    ),
}
