"""Python functions as tools, described by signature and docstring."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias, Union, get_type_hints

import msgspec
from msgspec import UNSET, Struct, UnsetType

from overspill.agent import wording
from overspill.agent.tools.offers import OfferedTool, failure
from overspill.errors import SettingsError
from overspill.settings.modules import load_module

Files: TypeAlias = dict[Path, ModuleType]
"""The modules imported so far."""
_UNNAMED_KINDS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


FunctionReference: TypeAlias = str | Callable[..., Any]
"""`module:function`, `file.py:function`, or the function itself."""


def load_function(name: str, reference: FunctionReference, files: Files | None = None) -> OfferedTool:
    """Make a tool of a function. Raises SettingsError if it cannot be one."""
    function = reference if callable(reference) else _import_function(name, reference, {} if files is None else files)
    arguments = _build_arguments(name, function)
    return OfferedTool(
        name, inspect.getdoc(function) or name, _build_schema(name, arguments), partial(_call, name, function, arguments)
    )


def _import_function(name: str, reference: str, files: Files) -> Callable[..., Any]:
    """A file is imported once, so that its functions share state."""
    source, _, attribute = reference.rpartition(":") if isinstance(reference, str) else ("", "", "")  # pyright: ignore[reportUnnecessaryIsInstance]
    if not source or not attribute:
        raise SettingsError(f"The function {name} is {reference!r}. Write it as module:function or file.py:function.")
    if (known := Path(source).expanduser().resolve()) not in files:
        files[known] = load_module(source, f" for the function {name}")
    function: Any = files[known]
    for part in attribute.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise SettingsError(f"The function {name} is {reference!r}, but {source} has no function {attribute!r}.")
    return function


def _build_arguments(name: str, function: Callable[..., Any]) -> type[Struct]:
    """The parameters as a struct, which describes and checks them. Optional ones default to UNSET."""
    try:
        parameters = inspect.signature(function).parameters.values()
        hints = get_type_hints(function)
    except (ValueError, TypeError, NameError) as error:
        raise SettingsError(f"Cannot read the parameters of the function {name}: {error}.") from None
    fields: list[Any] = []
    for each in parameters:
        if each.kind in _UNNAMED_KINDS:
            raise SettingsError(
                f"The function {name} cannot be a tool: models pass arguments by name, and {each} cannot be passed by name."
            )
        type_: Any = hints.get(each.name, Any)
        type_ = Any if type_ is object else type_
        optional = each.default is not inspect.Parameter.empty
        fields.append((each.name, Union[type_, UnsetType], UNSET) if optional else (each.name, type_))  # noqa: UP007
    return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)


def _build_schema(name: str, arguments: type[Struct]) -> dict[str, Any]:
    try:
        _, parts = msgspec.json.schema_components((arguments,), ref_template="#/$defs/{name}")
    except TypeError as error:
        raise SettingsError(
            f"The function {name} has a parameter that JSON cannot represent: {str(error).splitlines()[-1]}."
        ) from None
    schema = dict(parts.pop("Arguments"))
    del schema["title"]
    return {**schema, "additionalProperties": False, **({"$defs": parts} if parts else {})}


def _call(name: str, function: Callable[..., Any], arguments: type[Struct], /, **args: Any) -> Any:
    try:
        checked = msgspec.convert(args, arguments, strict=False)
    except msgspec.ValidationError as error:
        return failure(wording.bad_arguments(name, str(error)))
    return function(**{key: value for key, value in msgspec.structs.asdict(checked).items() if value is not UNSET})
