"""Python functions as tools: `module:function` or `file.py:function`, described by their signature and docstring."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
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

Files: TypeAlias = dict[Path, ModuleType]
"""What was imported from files."""
_NAMELESS = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def load_function(name: str, reference: str, files: Files | None = None) -> OfferedTool:
    """Imports it; from a file only once, so that its functions share what is in it. SettingsError for whatever keeps it from
    being a tool."""
    place, colon, attribute = reference.rpartition(":")
    if not colon or not place or not attribute:
        raise SettingsError(f"The function {name} is {reference!r}. Write it as module:function or file.py:function.")
    function: Any = _module(name, place, {} if files is None else files)
    for part in attribute.split("."):
        function = getattr(function, part, None)
    if not callable(function):
        raise SettingsError(f"The function {name} is {reference!r}, and {place} has no function {attribute!r}.")
    arguments = _arguments(name, function)
    return OfferedTool(
        name, inspect.getdoc(function) or name, _schema(name, arguments), partial(_call, name, function, arguments)
    )


def _module(name: str, place: str, files: Files) -> ModuleType:
    try:
        if not place.endswith(".py"):
            return importlib.import_module(place)
        path = Path(place).expanduser().resolve()
        if path in files:
            return files[path]
        found = importlib.util.spec_from_file_location(f"overspill_functions.{path.stem}", path)
        assert found is not None
        assert found.loader is not None
        module = sys.modules[found.name] = importlib.util.module_from_spec(found)  # dataclasses look themselves up there
        found.loader.exec_module(module)
    except Exception as error:  # the user's own code runs here
        raise SettingsError(f"The function {name}: {place} cannot be imported ({type(error).__name__}: {error}).") from error
    files[path] = module
    return module


def _arguments(name: str, function: Callable[..., Any]) -> type[Struct]:
    """The parameters as a struct, which describes and checks them. One that may be left out is unset then."""
    try:
        parameters = inspect.signature(function).parameters.values()
        hints = get_type_hints(function)
    except (ValueError, TypeError, NameError) as error:
        raise SettingsError(f"The function {name} does not say what it takes: {error}.") from None
    fields: list[Any] = []
    for each in parameters:
        if each.kind in _NAMELESS:
            raise SettingsError(f"The function {name} cannot be a tool: a model names its arguments, and {each} has no name.")
        type_: Any = hints.get(each.name, Any)
        type_ = Any if type_ is object else type_
        optional = each.default is not inspect.Parameter.empty
        fields.append((each.name, Union[type_, UnsetType], UNSET) if optional else (each.name, type_))  # noqa: UP007
    return msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)


def _schema(name: str, arguments: type[Struct]) -> dict[str, Any]:
    try:
        _, parts = msgspec.json.schema_components((arguments,), ref_template="#/$defs/{name}")
    except TypeError as error:
        raise SettingsError(f"The function {name} takes something JSON has no type for: {str(error).splitlines()[-1]}.") from None
    schema = dict(parts.pop("Arguments"))
    del schema["title"]
    return {**schema, "additionalProperties": False, **({"$defs": parts} if parts else {})}


def _call(name: str, function: Callable[..., Any], arguments: type[Struct], /, **args: Any) -> Any:
    try:
        checked = msgspec.convert(args, arguments, strict=False)
    except msgspec.ValidationError as error:
        return failure(wording.bad_arguments(name, str(error)))
    return function(**{key: value for key, value in msgspec.structs.asdict(checked).items() if value is not UNSET})
