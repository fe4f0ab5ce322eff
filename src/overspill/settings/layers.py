"""Layers of settings: the stronger overwrites the weaker, value by value, and a preset sets what its layer may set."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from overspill.settings.presets import PRESETS
from overspill.settings.reading import OWN_PLACES, SOMEBODY_ELSES, Layer, Reading
from overspill.settings.schema import Path, Values, dotted_path, fields, flatten, keys_along

_PRESET: Path = ("preset",)


class Resolved(Struct, frozen=True):
    """All layers merged, still laid flat: every value, and the name of the layer it comes from."""

    values: Values
    origins: dict[Path, str]
    warnings: tuple[str, ...]


def resolve(root: type, layers: Sequence[Layer]) -> Resolved:
    """The layers, strongest first, over the presets they choose, over the defaults."""
    readings = [Reading(root, layer) for layer in layers]
    defaults = dict(flatten(root, root))
    values, origins = dict(defaults), dict.fromkeys(defaults, "default")
    warnings = [warning for reading in readings for warning in reading.warnings]
    for reading in reversed(_choosing_a_preset(readings)):
        preset = reading.values[_PRESET]
        named = Reading(root, Layer(f"preset {preset}", PRESETS[preset])).values
        usual = defaults | named
        permitted = {path for path in usual if all(key.may_be_set_by(reading.layer.author) for key in keys_along(root, path))}
        # Also what this preset does not name: there it means the default, whatever the preset of a weaker layer says.
        values |= {path: usual[path] for path in permitted}
        origins |= {path: f"preset {preset}" if path in named else "default" for path in permitted}
        if left_out := [dotted_path(root, path) for path in named if path not in permitted]:
            warnings.append(_partly(preset, reading.layer, left_out))
    for reading in reversed(readings):
        values |= reading.values
        origins |= dict.fromkeys(reading.values, reading.layer.name)
    return Resolved(values, origins, tuple(warnings))


def nest(section: type, values: Mapping[Path, Any]) -> dict[str, Any]:
    """Flat values as the arguments that make a section."""
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


def _by_first_step(values: Mapping[Path, Any]) -> dict[str, dict[Path, Any]]:
    """In one pass, because a file that somebody else wrote may have thousands of names."""
    found: defaultdict[str, dict[Path, Any]] = defaultdict(dict)
    for path, value in values.items():
        found[path[0]][path[1:]] = value
    return found


def _choosing_a_preset(readings: Sequence[Reading]) -> list[Reading]:
    """Strongest first, down to the first that may set every key."""
    found: list[Reading] = []
    for reading in readings:
        if _PRESET in reading.values:
            found.append(reading)
            if reading.layer.author == "owner":
                break
    return found


def _partly(preset: str, layer: Layer, left_out: Sequence[str]) -> str:
    return (
        f"preset: {preset} {layer.where} leaves these keys alone: {', '.join(left_out)}. {SOMEBODY_ELSES[layer.author]} "
        f"For the whole preset, choose it {OWN_PLACES}."
    )
