"""Layers of settings: each is checked key by key, then the stronger overwrites the weaker, value by value."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, cast, get_origin

from msgspec import Struct, ValidationError, convert, structs

from overspill.errors import SettingsError
from overspill.settings.keys import Override, Strategy, ToolOutputSettings
from overspill.settings.presets import PRESETS
from overspill.settings.schema import Field, Path, Values, allowed, by_spelling, fields, flatten
from overspill.truncate import STRATEGIES

COMMAND_LINE = "command line"
_PRESET: Path = ("preset",)
_NO_LONGER = {"asyncToolTTL", "asyncToolTtl", "async_tool_ttl"}
_SHOWN_CHARS = 100


class Layer(Struct, frozen=True):
    """One source of settings. An untrusted one may set limits and strategies, nothing that sends or places data."""

    name: str
    values: Mapping[str, Any]
    trusted: bool = True
    agent_file: bool = False
    """Chosen by the user, but maybe written by somebody else: it may name models, not what runs or where keys are sent."""

    @property
    def where(self) -> str:
        return f"on the {self.name}" if self.name == COMMAND_LINE else f"in {self.name}"


class Resolved(Struct, frozen=True):
    """All layers merged, still laid flat: every value, and the name of the layer it comes from."""

    values: Values
    origins: dict[Path, str]
    warnings: tuple[str, ...]


def resolve(root: type, layers: Sequence[Layer]) -> Resolved:
    """The layers, strongest first, over the preset they choose, over the defaults."""
    readings = [_Reading(root, layer) for layer in layers]
    defaults = dict(flatten(root, root))
    preset = next((reading.values[_PRESET] for reading in readings if _PRESET in reading.values), defaults[_PRESET])
    usual = _Reading(root, Layer(f"preset {preset}", PRESETS[preset]))
    values, origins = defaults, dict.fromkeys(defaults, "default")
    for reading in (usual, *reversed(readings)):
        values |= reading.values
        origins |= dict.fromkeys(reading.values, reading.layer.name)
    return Resolved(values, origins, tuple(warning for reading in readings for warning in reading.warnings))


def nest(section: type, values: Mapping[Path, Any]) -> dict[str, Any]:
    """Flat values as the arguments that make a section."""
    arguments: dict[str, Any] = {}
    for field in fields(section):
        below = {path[1:]: value for path, value in values.items() if path[0] == field.name}
        if field.section is None:
            arguments |= {field.name: below[()]} if below else {}
        elif field.named:
            names = dict.fromkeys(path[0] for path in below)
            entries = {name: {path[1:]: value for path, value in below.items() if path[0] == name} for name in names}
            arguments[field.name] = MappingProxyType({n: field.section(**nest(field.section, e)) for n, e in entries.items()})
        else:
            arguments[field.name] = field.section(**nest(field.section, below))
    return arguments


class _Reading:
    """One layer's values, checked and laid flat."""

    def __init__(self, root: type, layer: Layer) -> None:
        self.root = root
        self.layer = layer
        self.values: Values = {}
        self.warnings: list[str] = []
        self._section(root, layer.values, (), "")

    def _section(self, section: type, given: object, path: Path, prefix: str) -> None:
        seen: dict[str, str] = {}
        for spelling, value in self._entries(given, prefix):
            if spelling in _NO_LONGER:
                self.warnings.append(f"{prefix}{spelling} {self.layer.where} has no effect: outputs live as long as the session.")
                continue
            field, parent = self._find(section, spelling, path, prefix)
            if earlier := seen.get(field.name):
                raise SettingsError(
                    f"{prefix}{earlier} and {prefix}{spelling} are the same key, both {self.layer.where}. Keep one."
                )
            seen[field.name] = spelling
            self._field(field, value, (*parent, field.name), prefix + spelling)

    def _find(self, section: type, spelling: str, path: Path, prefix: str) -> tuple[Field, Path]:
        if found := by_spelling(section).get(spelling):
            return found, path
        # The manual of tool_output has storeDir among its options; it is the one storeDir.
        if section is ToolOutputSettings and spelling in ("storeDir", "store_dir"):
            return by_spelling(self.root)[spelling], ()
        raise SettingsError(f"Unknown key {_shown(prefix + spelling)} {self.layer.where}. {_hint(section, spelling, prefix)}")

    def _field(self, field: Field, given: object, path: Path, spelled: str) -> None:
        if field.key.owner_only and not self.layer.trusted:
            others = "" if field.key.not_in_agents else ", in frontmatter"
            raise SettingsError(
                f"{spelled} may not be set {self.layer.where}: a file in the working directory may be somebody else's. "
                f"Set it in your own config file, in a file given with --config{others} or on the command line."
            )
        if field.key.not_in_agents and self.layer.agent_file:
            raise SettingsError(
                f"{spelled} may not be set {self.layer.where}: an agent file may be somebody else's. "
                "Set it in your own config file, in a file given with --config or on the command line."
            )
        if field.section is None:
            self._put(path, self._checked(field, given, spelled), spelled)
        elif field.named:
            self._named(field, field.section, given, path, spelled)
        else:
            self._section(field.section, given, path, f"{spelled}.")

    def _named(self, field: Field, section: type, given: object, path: Path, spelled: str) -> None:
        seen: set[str] = set()
        for name, entry in self._entries(given, f"{spelled}."):
            if not name or not name.isprintable():
                raise SettingsError(f"{spelled} has the name {_shown(name)} {self.layer.where}; allowed: a printable name.")
            known = name.lower() if field.key.any_case else name
            if known in seen:
                raise SettingsError(f"{spelled} has {_shown(known)} twice {self.layer.where}. Keep one.")
            seen.add(known)
            self._section(section, entry, (*path, known), f"{spelled}.{name}.")

    def _put(self, path: Path, value: object, spelled: str) -> None:
        if path in self.values and self.values[path] != value:
            raise SettingsError(
                f"{spelled} is {_shown(value)} and the same key stands elsewhere {self.layer.where} as "
                f"{_shown(self.values[path])}. Keep one."
            )
        self.values[path] = value

    def _checked(self, field: Field, given: object, spelled: str) -> object:
        value = given
        if isinstance(value, str) and get_origin(field.type) is tuple:
            value = [value]
        elif isinstance(value, PurePath):
            value = str(value)
        try:
            checked = convert(value, field.type)
        except ValidationError:
            if field.type in (Strategy, Strategy | None) and isinstance(given, str) and given in STRATEGIES:
                return given  # one that the program added
            raise self._not_allowed(field, given, spelled) from None
        if isinstance(checked, float) and not math.isfinite(checked):
            raise self._not_allowed(field, given, spelled)
        return checked

    def _not_allowed(self, field: Field, given: object, spelled: str) -> SettingsError:
        return SettingsError(f"{spelled} is {_shown(given)} {self.layer.where}; allowed: {allowed(field.type)}.")

    def _entries(self, given: object, prefix: str) -> list[tuple[str, object]]:
        """The entries of a mapping; an empty place in a file (null) has none."""
        if given is None:
            return []
        if isinstance(given, Override):
            return [(name, value) for name, value in structs.asdict(given).items() if value is not None]
        if not isinstance(given, Mapping):
            place = prefix.rstrip(".") or "The whole"
            raise SettingsError(f"{place} is {_shown(given)} {self.layer.where}; allowed: a mapping from keys to values.")
        entries = cast("Mapping[object, object]", given)
        for key in entries:
            if not isinstance(key, str):
                raise SettingsError(f"The key {prefix}{_shown(key)} {self.layer.where} is not a text. Put it in quotes.")
        return [(str(key), value) for key, value in entries.items()]


def _hint(section: type, spelling: str, prefix: str) -> str:
    known = by_spelling(section)
    sections = [(field.spelling, field.section) for field in fields(section) if field.section and not field.named]
    inside = [f"{name}.{spelling}" for name, keys in sections if spelling in by_spelling(keys)]
    near = inside or get_close_matches(spelling, known, n=1)
    return f"Did you mean '{prefix}{near[0]}'?" if near else "`overspill config` lists the keys there are."


def _shown(value: object) -> str:
    text = {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 3] + "..."
