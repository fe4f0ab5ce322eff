"""The argument `looking_for`, where the setting `intent` is `ask`: adapters add it to the schemas that a model sees, and a run
takes it off again before the tool is called."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from overspill.gate.intent import LOOKING_FOR, add_argument, asks, take_off
from overspill.settings import Settings


class Asking:
    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._asked: dict[str, bool] = {}

    def widen(self, name: str, schema: Mapping[str, Any], *, strict: object = None) -> Mapping[str, Any]:
        """The schema to show to the model. Of two tools with the same name, either both are asked about or none."""
        is_asked = asks(self._settings.for_tool(name), schema, strict=strict) and self._asked.get(name, True)
        self._asked[name] = is_asked
        return add_argument(schema) if is_asked else schema

    def knows(self, name: str) -> bool:
        return name in self._asked

    def put_back(self, name: str, args: Mapping[str, Any], given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Arguments that the framework has checked, with what the model is looking for again."""
        _, said = self.take_off(name, given)
        return {**args, LOOKING_FOR: said} if said else args

    def take_off(self, name: str, args: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
        """The tool's own arguments, and what the model is looking for. A tool that is not known to be asked gets all of them."""
        return take_off(args) if LOOKING_FOR in args and self._asked.get(name) else (args, "")
