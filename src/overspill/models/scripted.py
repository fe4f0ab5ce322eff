"""A model that answers from a file, for examples that run anywhere: `scripted/FILE`.

The file is a list in YAML or JSON. Each entry is one answer: `text`, `calls` (each a `tool` and its `args`), or both. Texts may
hold <HANDLE> for the last handle or name, <ID> for the last background id, and <ANSWER> for the last tool's answer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from msgspec import Struct, ValidationError, convert, to_builtins

from overspill.errors import SettingsError
from overspill.models.facts import ModelFacts
from overspill.models.protocol import ModelError, Request, Response
from overspill.settings.files import parse_yaml, read_text
from overspill.text.humanize import count_noun
from overspill.text.lenient_json import ready
from overspill.text.regex import regex
from overspill.types import ToolCall

PROVIDER = "scripted"
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_HANDLE = regex(rf"session-{_UUID}/{_UUID}|\bout_[0-9a-z]{{6,12}}\b")
_ID = regex(r"Tool Output ID: (\S+)")


class _Call(Struct, frozen=True, forbid_unknown_fields=True):
    tool: str
    args: dict[str, Any] = {}


class _Reply(Struct, frozen=True, forbid_unknown_fields=True):
    text: str = ""
    calls: tuple[_Call, ...] = ()


class ScriptFile:
    """Gives the answers of a file, in order."""

    def __init__(self, path: Path, facts: ModelFacts) -> None:
        self.name = f"{PROVIDER}/{path}"
        self.context_window = facts.context_window
        self.max_output_tokens = facts.max_output_tokens
        self._asked = 0
        try:
            self._replies = convert(parse_yaml(read_text(path, str(path)), str(path)), tuple[_Reply, ...])
        except ValidationError as error:
            what = "It is a list of answers, each with text, calls or both."
            raise SettingsError(f"{path} is not a script: {error}. {what}") from None

    async def ask(self, request: Request) -> Response:
        if self._asked == len(self._replies):
            raise ModelError(f"{self.name} has {count_noun(self._asked, 'answer')} and was asked once more.", is_transient=False)
        written = json.dumps(to_builtins(self._replies[self._asked]))
        self._asked += 1
        answers = [message.text for message in request.messages if message.role == "tool"]
        words = {
            "<HANDLE>": (_HANDLE.findall("\n".join(answers)) or ["none"])[-1],
            "<ID>": (_ID.findall("\n".join(answers)) or ["none"])[-1],
            "<ANSWER>": answers[-1] if answers else "",
        }
        for word, meant in words.items():
            written = written.replace(word, json.dumps(meant)[1:-1])
        reply = convert(json.loads(written), ready(_Reply))
        calls = (ToolCall(f"call_{self._asked}_{place}", call.tool, call.args) for place, call in enumerate(reply.calls, 1))
        return Response(reply.text, tuple(calls), model=self.name)
