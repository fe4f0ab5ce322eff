"""Decides which secrets to hide where, by the settings of the tool that returned them."""

from __future__ import annotations

import json
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from overspill.errors import RefError, RemoteFailure
from overspill.reading.references import matches
from overspill.redaction.inlet import Inlet
from overspill.redaction.known import pick_secrets
from overspill.redaction.redactor import Redactor
from overspill.settings import Settings
from overspill.text.regex import regex
from overspill.types import ToolCall

_SECRET = regex(r"\{\{secret:([a-z2-7]{8})\}\}")
_OPENING = b"{{secret:"


class Redactors(Struct, frozen=True):
    """The redactors for what a model reads of an output, and for what an extracting model gets."""

    shown: Redactor | None = None
    sent: Redactor | None = None


NO_REDACTORS = Redactors()


class Redaction:
    """`named`: values by name, such as environment variables. Hides those with names like secrets."""

    def __init__(self, settings: Settings, named: Mapping[str, str]) -> None:
        section, self._settings = settings.redact, settings
        rules = (*settings.servers.values(), *settings.truncation.overrides.values())
        by_tool = {mode for rule in rules for mode in (rule.redact_shown, rule.redact_sent, rule.redact_stored)}
        self.is_on = not {section.shown, section.sent, section.stored, *by_tool}.isdisjoint({"warn", "on"})
        """Whether anything is hidden or counted. Small calls check only this."""
        self._is_stored_without = "on" in (section.stored, *(rule.redact_stored for rule in rules))
        self._redactor: Redactor | None = None
        if self.is_on:
            self._redactor = Redactor(pick_secrets(named), section.patterns or {}, remembers=bool(section.fill))

    def shown(self, tool: str, server: str = "") -> Redactor | None:
        """The redactor for what a model reads of this tool's output."""
        return self._redactor if self._redactor and self._of(tool, server).redact.shown == "on" else None

    def open_inlet(self, settings: Settings) -> Inlet | None:
        """An inlet for output that is stored. `settings` are the tool's."""
        return Inlet(self._redactor) if self._redactor and settings.redact.stored == "on" else None

    def redact(self, text: str, tool: str, server: str) -> str:
        """Redacts text that is both shown and recorded: errors, and the subject of a call."""
        section = self._of(tool, server).redact if self._redactor and text else None
        return self._redactor.redact(text) if self._redactor and section and "on" in (section.shown, section.stored) else text

    def redact_recorded(self, text: str) -> str:
        """Redacts recorded replies, which are in the store as well."""
        return self._redactor.redact(text) if self._redactor and self._is_stored_without else text

    def redact_error(self, error: BaseException, tool: str, server: str) -> BaseException:
        """Redacts an error. Returns the same error if its message has no secrets."""
        shown = self.redact(str(error), tool, server)
        return error if shown == str(error) else RemoteFailure(shown)

    def for_reading(self, tool: str, server: str) -> Redactors:
        """The redactors for reading. An extracting model's answer is shown, so both settings apply to it."""
        if self._redactor is None:
            return NO_REDACTORS
        shown, is_sent = self.shown(tool, server), self._of(tool, server).redact.sent == "on"
        return Redactors(shown, self._redactor if is_sent else shown)

    def warned(self, tool: str, server: str = "") -> Redactor | None:
        """The redactor for counting secrets that are not hidden."""
        section = self._of(tool, server).redact
        return self._redactor if self._redactor and "warn" in (section.shown, section.sent, section.stored) else None

    def fill(self, call: ToolCall, written: bytes | None, *, is_elsewhere: bool) -> ToolCall:
        """The call as its tool gets it, with `{{secret:…}}` filled in. `written`: the arguments as JSON. Raises RefError."""
        allowed, redactor = self._settings.redact.fill, self.shown(call.name, call.server)
        if not allowed or written is None or _OPENING not in written:
            return call
        if not any(each == call.name or matches(each, call.server, call.name) for each in allowed):
            raise RefError(f"The tool {call.name} may not get secrets; the setting redact.fill can permit it. It was not called.")
        if redactor is None or is_elsewhere:
            why = "its worker gets its arguments through a queue" if is_elsewhere else "redact.shown is not on for it"
            raise RefError(f"The tool {call.name} cannot get secrets, because {why}. It was not called.")
        try:
            filled = _SECRET.sub(lambda found: json.dumps(redactor.get_value(found[1]))[1:-1], written.decode())
        except KeyError as error:
            raise RefError(f"No mark in this session has the name {error.args[0]}. The tool was not called.") from None
        return replace(call, args=json.loads(filled))

    def _of(self, tool: str, server: str) -> Settings:
        return self._settings.for_tool(tool, server)
