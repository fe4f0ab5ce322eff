"""Merges layers of settings: a stronger layer overrides a weaker one key by key. A preset may set what its layer may set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

from msgspec import Struct

from overspill.errors import SettingsError
from overspill.settings.presets import PRESETS
from overspill.settings.reading import OWN_PLACES, SOMEBODY_ELSES, Layer, LayerReading
from overspill.settings.schema import Path, Values, dotted_path, fields, flatten, keys_along
from overspill.text.humanize import shorten

_SHOWN_DIGITS = 30
_PRESET: Path = ("preset",)
_INLINE, _REFERENCE = "inline_limit", "artifact_threshold"
_GENERAL: tuple[Path, Path] = ("truncation", _INLINE), ("truncation", _REFERENCE)


class Resolved(Struct, frozen=True):
    """All layers merged, still flat: every value, and the name of the layer it comes from."""

    values: Values
    origins: dict[Path, str]
    warnings: tuple[str, ...]


Contradiction: TypeAlias = tuple[Path, Path]
"""The path of an `inlineLimit`, and that of the `artifactThreshold` which is below it."""


def resolve(root: type, layers: Sequence[Layer]) -> Resolved:
    """The layers, strongest first, over the presets they choose, over the defaults."""
    readings = [LayerReading(root, layer) for layer in layers]
    warnings = [warning for reading in readings for warning in reading.warnings]
    merged = _merge(root, readings)
    while wrong := list(_find_contradictions(merged.values)):
        if not (ignored := _take_back(readings, wrong)):
            raise SettingsError(_describe(root, merged, wrong[0]))
        more = f" and {len(ignored) - 1} other keys" if len(ignored) > 1 else ""
        warnings.append(f"Ignored: {dotted_path(root, min(ignored))}{more}. {_describe(root, merged, wrong[0])}")
        merged = _merge(root, readings)
    return Resolved(merged.values, merged.origins, (*warnings, *merged.warnings))


def _merge(root: type, readings: Sequence[LayerReading]) -> Resolved:
    defaults = dict(flatten(root, root))
    values, origins = dict(defaults), dict.fromkeys(defaults, "default")
    warnings: list[str] = []
    choosing = [reading for reading in readings if _PRESET in reading.values]
    # Weakest first, from the strongest that may set every key.
    last = next((at for at, reading in enumerate(choosing) if reading.layer.author == "owner"), len(choosing))
    for reading in reversed(choosing[: last + 1]):
        preset = reading.values[_PRESET]
        named = LayerReading(root, Layer(f"preset {preset}", PRESETS[preset])).values
        usual = defaults | named
        permitted = {path for path in usual if all(key.may_be_set_by(reading.layer.author) for key in keys_along(root, path))}
        # Keys that this preset does not name count too: they mean the default, not the value in a weaker layer's preset.
        values |= {path: usual[path] for path in permitted}
        origins |= {path: f"preset {preset}" if path in named else "default" for path in permitted}
        if left_out := [dotted_path(root, path) for path in named if path not in permitted]:
            warnings.append(
                f"preset: {preset} {reading.layer.where} leaves these keys alone: {', '.join(left_out)}. "
                f"{SOMEBODY_ELSES[reading.layer.author]} For the whole preset, choose it {OWN_PLACES}."
            )
    for reading in reversed(readings):
        values |= reading.values
        origins |= dict.fromkeys(reading.values, reading.layer.name)
    return Resolved(values, origins, tuple(warnings))


def nest(section: type, values: Mapping[Path, Any]) -> dict[str, Any]:
    """Flat values as nested arguments, with which to make a section."""
    below = _by_first_step(values)
    arguments: dict[str, Any] = {}
    for field in fields(section):
        own = below.get(field.name, {})
        if field.section is None:
            arguments |= {field.name: own[()]} if own else {}
        elif field.named:
            entries = {name: field.section(**nest(field.section, entry)) for name, entry in _by_first_step(own).items()}
            arguments[field.name] = MappingProxyType(entries)
        else:
            arguments[field.name] = field.section(**nest(field.section, own))
    return arguments


def _find_contradictions(values: Values) -> Iterator[Contradiction]:
    """Checks the general limits, and each rule for a tool or server together with them."""
    for section in {path[:-1]: None for path in values if path[-1] in (_INLINE, _REFERENCE)}:
        inline, reference = (own if (own := (*section, usual[-1])) in values else usual for usual in _GENERAL)
        limit, threshold = values[inline], values[reference]
        if limit is not None and threshold is not None and limit > threshold:
            yield inline, reference


def _take_back(readings: Sequence[LayerReading], wrong: Sequence[Contradiction]) -> list[Path]:
    """Drop and return values of an untrusted file that contribute to contradictions; its preset only as a last resort."""
    theirs = [reading.values for reading in readings if reading.layer.forgiving]
    paths = {path for pair in wrong for path in pair}
    for candidates in (paths, {_PRESET}):
        if dropped := [path for values in theirs for path in candidates if values.pop(path, None) is not None]:
            return dropped
    return []


def _describe(root: type, merged: Resolved, wrong: Contradiction) -> str:
    inline, reference = (
        f"{dotted_path(root, path)} is {shorten(str(merged.values[path]), _SHOWN_DIGITS)} ({merged.origins[path]})"
        for path in wrong
    )
    return (
        f"{inline}, but {reference}. An output that passes whole cannot be too long to be shown: "
        "set inlineLimit to at most artifactThreshold."
    )


def _by_first_step(values: Mapping[Path, Any]) -> dict[str, dict[Path, Any]]:
    """The values grouped by the first step of their paths, in one pass: a hostile file may have thousands of names."""
    found: defaultdict[str, dict[Path, Any]] = defaultdict(dict)
    for path, value in values.items():
        found[path[0]][path[1:]] = value
    return found
