"""A model that makes the first moves of a story by script and leaves the rest, extraction too, to a real one.

A small model seldom finds its way into a story by itself. What it does in the middle of one is its own affair.
"""

from __future__ import annotations

from agents import Say, Seen, scripted

from overspill.models.protocol import Model, Request, Response


class Opening:
    """Each step answers one request; the real model answers all that follow. `asked` is what it was asked."""

    def __init__(self, model: Model, *steps: Say) -> None:
        self.name = model.name
        self.context_window = model.context_window
        self.max_output_tokens = model.max_output_tokens
        self.asked: list[Seen] = []
        self._model = model
        self._script = scripted(*steps, name=model.name)
        self._left = len(steps)

    async def ask(self, request: Request) -> Response:
        if self._left:
            self._left -= 1
            return await self._script.ask(request)
        self.asked.append(Seen(request))
        return await self._model.ask(request)
