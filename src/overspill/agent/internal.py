"""The agent's own three tools. Their answers are short and do not pass the gate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

PREFIX = "agent__"
STATUS = "agent__task_status"
REPORT = "agent__final_report"
BATCH = "agent__batch"
NAMES = frozenset({STATUS, REPORT, BATCH})


def describe_object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "additionalProperties": False, "required": required, "properties": properties}


def _tool(name: str, description: str, required: list[str], **properties: Any) -> dict[str, Any]:
    return {"name": name, "description": description, "parameters": describe_object(required, **properties)}


def _string(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


TASK_STATUS = _tool(
    STATUS,
    "Tell the user what you are doing. Call it together with other tools, not by itself",
    ["now"],
    now=_string("What you are doing now, in one sentence"),
    done=_string("What is done"),
    pending=_string("What is left to do"),
)


def final_report(format: str, json_schema: Mapping[str, Any] | None) -> dict[str, Any]:
    content: dict[str, Any] = _string(f"The whole report, as {format}")
    shared: dict[str, Any] = {}
    if format == "json":
        content = {**(json_schema or {}), "description": "The whole report"}
        shared = {name: content.pop(name) for name in ("$defs", "definitions") if name in content}
    tool = _tool(
        REPORT, "Submit your final report. This ends your task. Call it without other tools", ["content"], content=content
    )
    tool["parameters"] |= shared  # references in a schema start at its root
    return tool


def batch(tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Define the batch tool for the tools of a turn. Does not repeat their parameters, which would use twice the context."""
    names = [tool["name"] for tool in tools]
    entry = describe_object(
        ["id", "tool", "parameters"],
        id=_string("A number or name that you choose for this call"),
        tool={"type": "string", "enum": names},
        parameters={"type": "object", "description": "The arguments of that tool"},
    )
    calls = {"type": "array", "minItems": 1, "items": entry}
    return _tool(BATCH, "Run several tools in parallel. Returns all their results as JSON", ["calls"], calls=calls)
