"""Models as an extraction asks them, without retries: each answer of a script is the only one."""

from __future__ import annotations

from overspill.models.base import Model
from overspill.models.targets import Targets


def once(model: Model) -> Targets:
    return Targets([model], retries=0)
