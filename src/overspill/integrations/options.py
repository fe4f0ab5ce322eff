"""What every adapter takes, and what follows from it for a run."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Set
from typing import Any, TypeAlias, TypedDict

from msgspec import Struct

from overspill.budget import ContextBudget
from overspill.errors import BadRequest, require
from overspill.gate.intent import LOOKING_FOR, add_argument, asks, take_off
from overspill.session.session import Session
from overspill.session.sync import SyncSession
from overspill.settings import Settings

GivenSession: TypeAlias = Session | SyncSession | str
"""A session that the program opens and closes itself, or the name of one."""
GivenBudget: TypeAlias = ContextBudget | int
"""A budget for each run to start with, or the size of the model's window in tokens."""


class GivenOptions(TypedDict, total=False):
    """The arguments of every adapter."""

    settings: Settings | None
    session: GivenSession | None
    budget: GivenBudget | None


class AdapterOptions(GivenOptions, total=False):
    """The arguments of adapters that see the conversation."""

    compact: float | None
    tool_search: bool


class Options(Struct, frozen=True):
    """`compact`: once the conversation fills this share of the window, old results are replaced by their names, in adapters
    that see the conversation. `notice`: whether the adapter shows the model a notice with each request."""

    framework: str
    settings: Settings | None = None
    session: GivenSession | None = None
    budget: GivenBudget | None = None
    compact: float | None = None
    notice: bool = True
    tool_prefix: str = ""
    tool_search: bool = False
    """Whether the model searches for tools, if the setting `toolSearch` says so."""

    def __post_init__(self) -> None:
        require("settings", self.settings, (Settings, type(None)), "Settings(…)")
        require("session", self.session, (Session, SyncSession, str, type(None)), "a Session, a SyncSession or a name")
        require("budget", self.budget, (ContextBudget, int, type(None)), "ContextBudget(window=…) or a number of tokens")
        require("compact", self.compact, (float, int, type(None)), "a share of the model's window, such as 0.7")
        if self.compact is not None and (isinstance(self.compact, bool) or not 0 < self.compact <= 1):
            raise BadRequest(f"compact is {self.compact!r}; it must be above 0 and at most 1.")
        if isinstance(self.session, Session | SyncSession) and (self.settings is not None or self.budget is not None):
            raise BadRequest("The session has its own settings and budget. Give `settings` and `budget` to the session instead.")

    @property
    def session_settings(self) -> Settings:
        """The settings of the sessions, whether the program opens them or the adapter does."""
        return self.session.settings if isinstance(self.session, Session | SyncSession) else self.settings or Settings()

    def find_key(self, conversation: str) -> str:
        """Return the key that all runs with the same session share: a hash, because a framework's ids may have any form."""
        if isinstance(self.session, str):
            return self.session
        digest = hashlib.sha256(conversation.encode("utf-8", "surrogatepass")).hexdigest()
        return f"{self.framework}-{digest[:32]}" if conversation else ""

    def find_name(self, key: str) -> str:
        """Return the name under which the session is kept; empty if the settings say that it keeps nothing."""
        is_kept = isinstance(self.session, str) or self.settings is None or self.settings.retention != "session"
        return key if is_kept else ""

    def new_budget(self, window: int | None) -> ContextBudget | None:
        given = window if self.budget is None else self.budget
        if isinstance(given, ContextBudget):
            return ContextBudget(given.window, given.used, given.reserve_output, given.buffer)
        return None if given is None else ContextBudget(given)


class MissingFramework(ImportError):
    """The framework is not installed. `needs`: what to install, as `pip` takes it."""

    def __init__(self, adapter: str, needs: str) -> None:
        super().__init__(f"overspill.integrations.{adapter} needs the package {needs}. Install it: `pip install '{needs}'`.")


class Asking:
    """`own` are the names of our own tools, which take no `looking_for`."""

    def __init__(self, settings: Settings, own: Set[str] = frozenset()) -> None:
        self._settings, self._own = settings, own
        self._asked: dict[str, bool] = {}

    def widen(self, name: str, schema: Mapping[str, Any], *, strict: object = None) -> Mapping[str, Any]:
        """Return the schema to show to the model. If two tools have the same name, both get the argument or none does."""
        if name in self._own:
            return schema
        is_asked = asks(self._settings.for_tool(name), schema, strict=strict) and self._asked.get(name, True)
        self._asked[name] = is_asked
        return add_argument(schema) if is_asked else schema

    def knows(self, name: str) -> bool:
        return name in self._asked

    def put_back(self, name: str, args: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Put what the model is looking for back into arguments that the framework has checked."""
        _, said = self.take_off(name, given)
        return {**args, LOOKING_FOR: said} if said else args

    def take_off(self, name: str, args: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
        """Return the tool's own arguments, and what the model is looking for. Without our argument, all of them are its own."""
        return take_off(args) if LOOKING_FOR in args and self._asked.get(name) else (args, "")
