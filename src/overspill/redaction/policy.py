"""Which secrets are hidden where: by the settings of the tool that returned them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from overspill.errors import RemoteFailure, SettingsError
from overspill.redaction.known import pick_secrets
from overspill.redaction.redactor import Redactor
from overspill.settings import Settings
from overspill.text.patterns import PatternError


class Redactors(Struct, frozen=True):
    """For what a model is shown of an output, and for what a model gets that extracts from it."""

    shown: Redactor | None = None
    sent: Redactor | None = None


NO_REDACTORS = Redactors()


class Redaction:
    """`named`: values by name, such as environment variables. Those whose names look like secrets are hidden."""

    def __init__(self, settings: Settings, named: Mapping[str, str]) -> None:
        rules = (*settings.servers.values(), *settings.truncation.overrides.values())
        section, self._settings = settings.redact, settings
        by_tool = [mode for rule in rules for mode in (rule.redact_shown, rule.redact_sent)]
        self._redactor: Redactor | None = None
        self.is_on = bool({section.shown, section.sent, *by_tool} & {"warn", "on"})
        """Whether anything is hidden or counted at all. Small calls look at nothing else."""
        if self.is_on:
            try:
                self._redactor = Redactor(pick_secrets(named), section.patterns or {})
            except PatternError as error:
                raise SettingsError(f"A pattern in redact.patterns is not one that RE2 takes: {error}.") from None

    def shown(self, tool: str, server: str = "") -> Redactor | None:
        """For what a model reads of this tool's output."""
        return self._redactor if self._redactor and self._of(tool, server).redact.shown == "on" else None

    def redact(self, text: str, tool: str, server: str) -> str:
        redactor = self.shown(tool, server)
        return text if redactor is None else redactor.redact(text)

    def redact_error(self, error: BaseException, tool: str, server: str) -> BaseException:
        """The same error if there is nothing to hide in what it says."""
        shown = self.redact(str(error), tool, server)
        return error if shown == str(error) else RemoteFailure(shown)

    def for_reading(self, tool: str, server: str) -> Redactors:
        """What a model answers that extracts is shown, so that both settings hide from it."""
        if self._redactor is None:
            return NO_REDACTORS
        shown, is_sent = self.shown(tool, server), self._of(tool, server).redact.sent == "on"
        return Redactors(shown, self._redactor if is_sent else shown)

    def warned(self, tool: str, server: str = "") -> Redactor | None:
        """For counting what is not hidden."""
        section = self._of(tool, server).redact
        return self._redactor if self._redactor and "warn" in (section.shown, section.sent) else None

    def _of(self, tool: str, server: str) -> Settings:
        return self._settings.for_tool(tool, server)
