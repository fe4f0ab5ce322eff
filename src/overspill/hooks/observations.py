"""What versions of coding agents were seen to do with hooks. tests/conformance/test_coding_agents.py sees it again."""

from __future__ import annotations

from msgspec import Struct

from overspill.hooks.shapes import Client


class Observation(Struct, frozen=True):
    """`program` prints its version with `--version`. `limits` are what the versions that were tried do not honour."""

    title: str
    program: str
    versions: tuple[str, ...]
    """In order. The last one is tried by the tests."""
    limits: tuple[str, ...]
    deaf_version: str = ""
    """One that ignores what a hook answers, as earlier ones do."""


OBSERVED: dict[Client, Observation] = {
    "claude-code": Observation(
        "Claude Code",
        "claude",
        ("2.1.120", "2.1.197", "2.1.325"),
        (
            "Bash outputs of more than 30,000 characters stay with Claude Code, which stores them itself.",
            "Outputs of commands that fail stay as they are: Claude Code tells hooks nothing about them.",
        ),
        deaf_version="2.1.59",
    ),
    "gemini-cli": Observation(
        "Gemini CLI",
        "gemini",
        ("0.61.0",),
        ("What replaces an output is shown to the model as an error of the tool; it says itself that it is none.",),
    ),
}
