"""The three tools of the agent itself. They do not pass the gate: what they answer is short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from overspill.agent.file.keys import OutputKeys

PREFIX = "agent__"
STATUS = "agent__task_status"
REPORT = "agent__final_report"
BATCH = "agent__batch"
NAMES = frozenset({STATUS, REPORT, BATCH})


def _tool(name: str, description: str, required: list[str], **properties: Any) -> dict[str, Any]:
    parameters = {"type": "object", "additionalProperties": False, "required": required, "properties": properties}
    return {"name": name, "description": description, "parameters": parameters}


def _text(description: str) -> dict[str, Any]:
    return {"type": "string", "description": description}


TASK_STATUS = _tool(
    STATUS,
    "Tell whoever waits what you are doing. Call it together with other tools, not by itself",
    ["now"],
    now=_text("What you do now, in one sentence"),
    done=_text("What is done"),
    pending=_text("What is still to do"),
)


def final_report(output: OutputKeys) -> dict[str, Any]:
    content: dict[str, Any] = _text(f"The whole report, as {output.format}")
    shared: dict[str, Any] = {}
    if output.format == "json":
        content = {**(output.json_schema or {}), "description": "The whole report"}
        shared = {name: content.pop(name) for name in ("$defs", "definitions") if name in content}
    tool = _tool(REPORT, "Hand in your final report; this ends your task. Call it alone", ["content"], content=content)
    tool["parameters"] |= shared  # references in a schema are read from its top
    return tool


def batch(tools: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Made afresh from the tools of the turn. Their parameters are not repeated: they would fill the context twice."""
    named = [tool["name"] for tool in tools]
    entry = {
        "type": "object",
        "additionalProperties": False,
        "required": ["id", "tool", "parameters"],
        "properties": {
            "id": _text("Your own number or name for this call"),
            "tool": {"type": "string", "enum": named},
            "parameters": {"type": "object", "description": "As that tool takes them"},
        },
    }
    calls = {"type": "array", "minItems": 1, "items": entry}
    return _tool(BATCH, "Run several tools at the same time; answers with all their results as JSON", ["calls"], calls=calls)
