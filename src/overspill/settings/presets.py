"""Presets: the values that differ from the defaults, which are the preset `overspill`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import structs

from overspill.settings.keys import Override, PresetName

_TEN_MEBIBYTES = 10_485_760
_DOCUMENTED_SHAPE = {
    "head_lines": 300,
    "tail_lines": 200,
    "depth": 3,
    "first_elements": 5,
    "last_elements": 5,
    "max_keys": 50,
}
"""The most that the strategies keep."""

PRESETS: Mapping[PresetName, Mapping[str, Any]] = {
    "overspill": {},
    "tool_output": {
        "async_": False,
        "async_token_threshold": None,
        "preview_chars": 0,
        "intent": "off",
        "repeats": "full",
        "surface": ["tool_output"],
        "extraction_fallback": ["truncate"],
        "truncation": {"max_artifact_size": None, **_DOCUMENTED_SHAPE},
    },
    "artifacts": {
        "tool_response_max_bytes": 0,
        "async_": False,
        "async_token_threshold": None,
        "answer_form": "artifact",
        "preview_chars": 0,
        "intent": "off",
        "repeats": "full",
        "answer_max_bytes": None,
        "answer_max_chars": 50_000,
        "surface": ["get_artifact"],
        "extraction_fallback": ["truncate"],
        "store_dir": ".overspill/artifacts",
        "retention": "session",
        "truncation": {"inline_limit": 8_000, "max_artifact_size": _TEN_MEBIBYTES, **_DOCUMENTED_SHAPE},
    },
    "slow": {
        "tool_response_max_bytes": None,
        "async_token_threshold": 10_000,
        "answer_form": "ready",
        "preview_chars": 0,
        "intent": "off",
        "repeats": "full",
        "surface": ["get_tool_output", "wait_for_tool_output"],
        "extraction_fallback": ["truncate"],
        "retention": "session",
        "truncation": {"max_artifact_size": _TEN_MEBIBYTES, **_DOCUMENTED_SHAPE},
    },
}

TOOL_STRATEGIES = {
    "read_file": "head_tail",
    "execute_command": "tail",
    "execute_script": "tail",
    "list_directory": "element",
    "search_files": "element",
    "git_diff": "head_tail",
    "git_log": "tail",
    "git_status": "head_tail",
}
"""How the outputs of well-known tools are shortened, unless a server's or a tool's override says otherwise."""


def merge_rules(tool: str, overrides: Iterable[Override | None]) -> dict[str, Any]:
    """The keys they change. The tool's built-in strategy is weakest, the last override strongest."""
    renamed = {"strategy": "default_strategy", "background": "async_"}
    changes: dict[str, Any] = {"default_strategy": TOOL_STRATEGIES[tool]} if tool in TOOL_STRATEGIES else {}
    for rule in filter(None, overrides):
        changes |= {renamed.get(name, name): value for name, value in structs.asdict(rule).items() if value is not None}
    return changes
