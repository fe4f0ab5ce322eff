"""Every setting: its default, its presets, how layers merge and what each layer may set."""

from __future__ import annotations

from overspill.settings.keys import Allow, Override, PriceSettings
from overspill.settings.load import Loaded, load, merge
from overspill.settings.presets import PRESETS
from overspill.settings.reading import Layer
from overspill.settings.settings import Settings

__all__ = ["PRESETS", "Allow", "Layer", "Loaded", "Override", "PriceSettings", "Settings", "load", "merge"]
