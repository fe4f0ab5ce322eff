"""Who gets the result of a call: the client's model, or a program that the model wrote. A program gets it whole.

A card is for a model. A program would mistake it for data, so if it cannot have the whole result, it gets an error.
"""

from __future__ import annotations

from collections.abc import Callable

from overspill.mcp.client.connection import Raw, as_mapping
from overspill.mcp.proxy.known_clients import find_known_client
from overspill.settings import Settings
from overspill.settings.keys import Programs
from overspill.text.lenient_json import dumps
from overspill.types import Reply
from overspill.wording import replies as wording

HANDLE_KEY = "overspill/handle"
"""In `_meta` of a result that was stored and passed whole."""


class ProgramCalls:
    """What the calls of one client return. The settings are the session's; rules for this client apply here."""

    def __init__(self, settings: Settings, info: Raw, log: Callable[[str], None]) -> None:
        self._settings = settings.for_client(info.get("name"))
        self._known = find_known_client(info)
        self._log = log
        self._has_warned = False

    def choose(self, tool: str, server: str, meta: Raw) -> Programs:
        """Choose what a call returns. `auto`: it is known to come from a program, so it gets the whole result if possible."""
        chosen = self._settings.for_tool(tool, server).programs
        if chosen != "auto":
            return chosen
        return "auto" if self._known is not None and self._known.is_program(meta) else "card"

    def is_always_whole(self, tool: str, server: str) -> bool:
        """Whether no call of this tool ever gets a card."""
        return self._settings.for_tool(tool, server).programs == "whole"

    def pass_whole(self, result: Raw, reply: Reply, chosen: Programs) -> Raw:
        """Return the server's result with the handle of the stored output, or an error if the client cannot take the result."""
        limit = self._known.max_result_bytes if self._known is not None and chosen == "auto" else None
        if limit is not None and len(dumps(result)) > limit:
            text = wording.too_large_for_program(reply.kept, limit, self._settings.surface)
            others = {key: value for key, value in result.items() if key not in ("content", "structuredContent")}
            return {**others, "content": [{"type": "text", "text": text}], "isError": True}
        if reply.kept is None:
            return result
        return {**result, "_meta": {**as_mapping(result.get("_meta")), HANDLE_KEY: reply.kept.handle}}

    def warn_of_card(self, tool: str, server: str, meta: Raw) -> None:
        """Say once that a card may have reached a program, if it is not known who gets a result."""
        known, is_auto = self._known, self._settings.for_tool(tool, server).programs == "auto"
        if known is not None and not self._has_warned and is_auto and known.is_program(meta) is None:
            self._has_warned = True
            self._log(known.question)
