"""The tools that a worker runs, by name."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar, overload

from msgspec import Struct

from overspill.errors import BadRequest, SettingsError
from overspill.settings.modules import load_module

F = TypeVar("F", bound=Callable[..., Any])


class WorkerTool(Struct, frozen=True):
    name: str
    function: Callable[..., Any]
    is_repeatable: bool = False
    max_running: int | None = None


class WorkerTools(dict[str, WorkerTool]):
    """Register functions with it in a module, and name the module in `overspill worker --tools`."""

    @overload
    def register(self, function: F, /) -> F: ...
    @overload
    def register(self, /, *, name: str = "", repeatable: bool = False, max_running: int | None = None) -> Callable[[F], F]: ...
    def register(
        self, function: F | None = None, /, *, name: str = "", repeatable: bool = False, max_running: int | None = None
    ) -> F | Callable[[F], F]:
        """Use it as `@tools.register` or `@tools.register(…)`.

        `repeatable`: whether it is safe to run again, on another worker, if the one that runs it dies. `max_running`: how many of
        its calls run at the same time, on all workers together.
        """
        if max_running is not None and max_running < 1:
            raise BadRequest(f"max_running is {max_running}; it must be at least 1.")

        def add(given: F) -> F:
            own = name or getattr(given, "__name__", "")
            if not own or not callable(given):
                raise BadRequest(f"{given!r} cannot be a tool: it is not a function with a name. Pass name=….")
            if own in self:
                raise BadRequest(f"There are two tools named {own}. Rename one, or pass another name=….")
            parameters = inspect.signature(given).parameters.values()
            if any(each.kind in (each.POSITIONAL_ONLY, each.VAR_POSITIONAL) for each in parameters):
                raise BadRequest(f"{own} cannot be a tool: models pass arguments by name, and it has some without a name.")
            self[own] = WorkerTool(own, given, repeatable, max_running)
            return given

        return add if function is None else add(function)


def load_tools(reference: str) -> WorkerTools:
    """The only WorkerTools of a module, or of a file that ends with .py. Raises SettingsError."""
    if not reference.endswith(".py"):
        # Last, so that no file in the working directory shadows an installed package.
        sys.path.append(os.getcwd())
    module = load_module(reference)
    found = {id(value): value for value in vars(module).values() if isinstance(value, WorkerTools)}
    if len(found) != 1:
        what = "no WorkerTools" if not found else f"{len(found)} WorkerTools"
        raise SettingsError(
            f"{reference} has {what}. Write `from overspill.worker import WorkerTools` and, once, `tools = WorkerTools()` there, "
            "and `@tools.register` before each function."
        )
    (tools,) = found.values()
    if not tools:
        raise SettingsError(f"{reference} registers no tool. Write `@tools.register` before a function.")
    return tools
