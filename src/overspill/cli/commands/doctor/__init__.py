"""Checks everything that Overspill needs in order to work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from msgspec import Struct

if TYPE_CHECKING:
    from overspill.mcp.client.probe import Probe


class Finding(Struct, frozen=True):
    """What a check finds. `advice` says what you can do about it."""

    about: str
    level: Literal["ok", "note", "wrong"]
    text: str
    advice: str = ""


class DoctorReport(Struct, frozen=True):
    """A finding, and the answers of the server that it is about, if it gave any."""

    finding: Finding
    probe: Probe | None = None
