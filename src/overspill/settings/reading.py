"""Check one layer of settings, key by key, and flatten it. Its author may be hostile and may set only some keys."""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import PurePath
from typing import Any, cast, get_origin

from msgspec import Struct, ValidationError, convert, structs

from overspill.errors import SettingsError
from overspill.settings.keys import Author, Override, ToolOutputSettings
from overspill.settings.schema import Field, Path, Values, by_spelling, describe_type, fields
from overspill.text.humanize import shorten
from overspill.text.lenient_json import ready
from overspill.text.regex import regex
from overspill.text.urls import mask_password
from overspill.truncate import STRATEGIES, StrategyName

COMMAND_LINE = "command line"
OWN_PLACES = "in your own config file, in a file given with --config or on the command line"
SOMEBODY_ELSES: Mapping[Author, str] = {
    "anyone": "A file in the working directory may be somebody else's.",
    "agent": "An agent file may be somebody else's.",
}
_NO_LONGER = {
    **dict.fromkeys(("asyncToolTTL", "asyncToolTtl", "async_tool_ttl"), "outputs live as long as the session"),
    **dict.fromkeys(("surfaceSticky", "surface_sticky"), "the retrieval tools are always offered"),
}
"""Keys that are still accepted but have no effect, and why."""
_SHOWN_CHARS = 100
_TARGET = regex(r"[^\s/,]+/\S")
_SEVERAL_TARGETS = regex(r"[,;]\s*+[\w.-]+/\S|[,;]\s*+$")
_MAX_WARNINGS = 20


class Layer(Struct, frozen=True):
    """One source of settings."""

    name: str
    values: Mapping[str, Any]
    author: Author = "owner"
    forgiving: bool = False
    """Mistakes in it become warnings, so that a file the user did not write cannot stop the program."""
    warnings: tuple[str, ...] = ()
    """Warnings from before its keys are checked."""

    @property
    def where(self) -> str:
        return f"on the {self.name}" if self.name == COMMAND_LINE else f"in {self.name}"


class _TooManyWarnings(Exception):
    pass


class LayerReading:
    """One layer's values, checked and flattened."""

    def __init__(self, root: type, layer: Layer) -> None:
        self.root = root
        self.layer = layer
        self.values: Values = {}
        self.warnings: list[str] = [*layer.warnings]
        try:
            self._section(root, layer.values, (), "")
        except _TooManyWarnings:
            self.values = {}
            self.warnings.append(f"Ignored: all of {layer.name}, because it has more than {_MAX_WARNINGS} mistakes.")

    @contextmanager
    def _forgiving(self) -> Generator[None]:
        try:
            yield
        except SettingsError as problem:
            if not self.layer.forgiving:
                raise
            self._warn(f"Ignored: {problem}")

    def _warn(self, text: str) -> None:
        if self.layer.forgiving and len(self.warnings) == _MAX_WARNINGS:
            raise _TooManyWarnings
        self.warnings.append(text)

    def _section(self, section: type, given: object, path: Path, prefix: str) -> None:
        seen: dict[str, str] = {}
        for spelling, value in self._entries(given, prefix):
            if why := _NO_LONGER.get(spelling):
                self._warn(f"{prefix}{spelling} {self.layer.where} has no effect: {why}.")
                continue
            with self._forgiving():
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
        # The manual for tool_output lists storeDir among its options. It means the top-level storeDir.
        if section is ToolOutputSettings and spelling in ("storeDir", "store_dir"):
            return by_spelling(self.root)[spelling], ()
        sections = [(field.spelling, field.section) for field in fields(section) if field.section and not field.named]
        inside = [f"{name}.{spelling}" for name, keys in sections if spelling in by_spelling(keys)]
        near = inside or get_close_matches(spelling, by_spelling(section), n=1)
        hint = f"Did you mean '{prefix}{near[0]}'?" if near else "`overspill config` lists all keys."
        raise SettingsError(f"Unknown key {_render_value(prefix + spelling)} {self.layer.where}. {hint}")

    def _field(self, field: Field, given: object, path: Path, spelled: str) -> None:
        if not field.key.may_be_set_by(self.layer.author, given):
            reason = SOMEBODY_ELSES[self.layer.author]
            places = OWN_PLACES.replace(" or", ", in frontmatter or") if field.key.may_be_set_by("agent") else OWN_PLACES
            raise SettingsError(f"{spelled} may not be set {self.layer.where}: {reason[0].lower()}{reason[1:]} Set it {places}.")
        if field.section is None:
            value = self._check_value(field, given, spelled)
            if path in self.values and self.values[path] != value:
                raise SettingsError(
                    f"{spelled} is {_render_value(value)} {self.layer.where}, which also sets the same key to "
                    f"{_render_value(self.values[path])}. Keep one."
                )
            self.values[path] = value
        elif field.named:
            self._read_named(field, field.section, given, path, spelled)
        else:
            self._section(field.section, given, path, f"{spelled}.")

    def _read_named(self, field: Field, section: type, given: object, path: Path, spelled: str) -> None:
        seen: set[str] = set()
        for name, entry in self._entries(given, f"{spelled}."):
            with self._forgiving():
                if not name or not name.isprintable():
                    raise SettingsError(
                        f"{spelled} has the name {_render_value(name)} {self.layer.where}; allowed: a printable name."
                    )
                known = name.lower() if field.key.any_case else name
                if known in seen:
                    raise SettingsError(f"{spelled} has {_render_value(known)} twice {self.layer.where}. Keep one.")
                seen.add(known)
                self._section(section, entry, (*path, known), f"{spelled}.{shorten(name, _SHOWN_CHARS)}.")

    def _check_value(self, field: Field, given: object, spelled: str) -> object:
        value = given
        if isinstance(value, str) and get_origin(field.type) is tuple:
            value = [value]
        elif isinstance(value, PurePath):
            value = str(value)
        try:
            checked = convert(value, ready(field.type))
        except (ValidationError, UnicodeEncodeError):  # UnicodeEncodeError for a lone surrogate
            if field.type in (StrategyName, StrategyName | None) and isinstance(given, str) and given in STRATEGIES:
                return given  # a strategy that the program added
            raise self._not_allowed(field, given, spelled) from None
        if isinstance(checked, float) and not math.isfinite(checked):
            raise self._not_allowed(field, given, spelled)
        if field.key.names_models:
            self._check_targets(checked, spelled)
        if field.key.holds_patterns:
            self._check_patterns(cast("Mapping[str, str]", checked or {}), spelled)
        return checked

    def _check_patterns(self, patterns: Mapping[str, str], spelled: str) -> None:
        from overspill.text.patterns import PatternError, compile_pattern  # noqa: PLC0415  # most settings have none

        for name, pattern in patterns.items():
            try:
                compile_pattern(pattern.encode(), utf8=True)
            except PatternError as error:
                raise SettingsError(
                    f"{spelled}.{shorten(name, _SHOWN_CHARS)} is not a regular expression of RE2 {self.layer.where}: {error}."
                ) from None

    def _check_targets(self, checked: object, spelled: str) -> None:
        names = (checked,) if isinstance(checked, str) else cast("tuple[str, ...]", checked or ())
        for name in names:
            if _SEVERAL_TARGETS.search(name):
                advice = "This is one string; give a list, with one provider/model each."
            elif not _TARGET.match(name):
                advice = "Name the provider too: provider/model, like openai/gpt-4.1-mini."
            else:
                continue
            raise SettingsError(f"{spelled} has {_render_value(name)} {self.layer.where}. {advice}")

    def _not_allowed(self, field: Field, given: object, spelled: str) -> SettingsError:
        return SettingsError(f"{spelled} is {_render_value(given)} {self.layer.where}; allowed: {describe_type(field.type)}.")

    def _entries(self, given: object, prefix: str) -> list[tuple[str, object]]:
        """The entries of a mapping. A key without a value in a file (null) has none."""
        if given is None:
            return []
        if isinstance(given, Override):
            return [(name, value) for name, value in structs.asdict(given).items() if value is not None]
        if not isinstance(given, Mapping):
            place = prefix.rstrip(".") or "The content"
            raise SettingsError(f"{place} is {_render_value(given)} {self.layer.where}; allowed: a mapping from keys to values.")
        entries: list[tuple[str, object]] = []
        for key, value in cast("Mapping[object, object]", given).items():
            with self._forgiving():
                if not isinstance(key, str):
                    raise SettingsError(
                        f"The key {prefix}{_render_value(key)} {self.layer.where} is not a string. Put it in quotes."
                    )
                entries.append((key, value))
        return entries


def _render_value(value: object) -> str:
    if value is None or isinstance(value, bool):
        text = {None: "null", True: "true", False: "false"}[value]
    else:
        text = repr(mask_password(value)) if isinstance(value, str) else mask_password(repr(value))
    return shorten(text, _SHOWN_CHARS)
