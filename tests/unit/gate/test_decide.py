"""Deciding is pure: figures in, a verdict out. Every "exceeds" is strict."""

import pytest

from overspill.gate.decide import Keep, Pass, Room, Shorten, Verdict, decide, passes_for_sure
from overspill.settings import Settings
from overspill.types import Size


def size(bytes_: int = 100, *, chars: int | None = None, tokens: int = 25) -> Size:
    return Size(bytes_, bytes_ if chars is None else chars, 1, tokens)


@pytest.mark.parametrize(
    ("settings", "measured", "room", "verdict"),
    [
        (Settings(), size(12_288), None, Pass()),
        (Settings(), size(12_289), None, Keep("size_cap")),
        (Settings(), size(12_000, tokens=10_001), None, Keep("token_threshold")),
        (Settings(), size(12_000, tokens=10_000), None, Pass()),
        (Settings(), size(tokens=25), Room(now=25, alone=25), Pass()),
        (Settings(), size(tokens=26), Room(now=25, alone=25), Keep("token_budget")),
        (Settings(), size(tokens=26), Room(now=25, alone=26), Keep("reserve_failed")),
        (Settings(), size(20_000, tokens=5000), Room(now=10, alone=10), Keep("size_cap")),
        (Settings(), size(20_000, tokens=5000), Room(now=10, alone=6000), Keep("reserve_failed")),
        (Settings(toolResponseMaxBytes=0), size(10**6, tokens=9_999), None, Pass()),
        (Settings(toolResponseMaxBytes=0), size(10**6, tokens=9_999), Room(now=9, alone=9), Keep("token_budget")),
        (Settings(preset="tool_output"), size(12_000, tokens=11_000), None, Pass()),
        (Settings(preset="artifacts"), size(8_001), None, Keep("char_limit")),
        (Settings(preset="artifacts"), size(16_000, chars=8_000), None, Pass()),
        (Settings(preset="slow"), size(10**6, tokens=10_000), None, Pass()),
        (Settings(preset="slow"), size(10**6, tokens=10_001), None, Keep("token_threshold")),
        (Settings(toolResponseMaxBytes=50_000), size(50_000, tokens=20_000), None, Pass()),
        (Settings(toolResponseMaxBytes=50_000), size(50_001, tokens=20_000), None, Keep("size_cap")),
        (Settings(**{"async": False}), size(12_000, tokens=11_000), None, Pass()),
        (Settings(toolOutput={"enabled": False}), size(12_289), None, Shorten()),
        (Settings(toolOutput={"enabled": False}), size(12_288, tokens=99_999), Room(now=1, alone=1), Pass()),
        (Settings(toolOutput={"enabled": False}, toolResponseMaxBytes=0), size(10**6), None, Pass()),
    ],
)
def test_a_verdict(settings: Settings, measured: Size, room: Room | None, verdict: Verdict):
    assert decide(measured, settings, room) == verdict


def test_an_overrides_limit_applies_in_every_preset():
    settings = Settings(truncation={"overrides": {"execute_command": {"inline_limit": 5000}}})
    assert decide(size(5001), settings.for_tool("execute_command")) == Keep("char_limit")
    assert decide(size(5001), settings.for_tool("other")) == Pass()


@pytest.mark.parametrize(
    ("text", "settings", "sure"),
    [
        ("a" * 10_000, Settings(), True),
        ("a" * 10_001, Settings(), False),
        ("é" * 2_500, Settings(), True),
        ("é" * 2_501, Settings(), False),
        ("a" * 8_000, Settings(preset="artifacts"), True),
        ("a" * 8_001, Settings(preset="artifacts"), False),
        ("a" * 100_000, Settings(preset="slow", asyncTokenThreshold=100_000), True),
    ],
)
def test_an_output_that_certainly_passes_is_not_counted(text: str, settings: Settings, sure: bool):
    assert passes_for_sure([text], settings) is sure
