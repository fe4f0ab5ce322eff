"""The keys that only an agent file has. Every other key of its frontmatter is one of `Settings`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from msgspec import Struct

from overspill.settings.keys import Key, Name

ReportFormat: TypeAlias = Literal["text", "markdown", "json"]


class OutputKeys(Struct, frozen=True, forbid_unknown_fields=True, rename={"json_schema": "schema"}):
    """The form of the final report."""

    format: ReportFormat = "markdown"
    json_schema: Mapping[str, Any] | None = None


class FileKeys(Struct, frozen=True, kw_only=True):
    description: Annotated[Name | None, Key("What the agent does. Agents that can call it see this.", "agent")] = None
    tools: Annotated[
        tuple[Name | Mapping[str, tuple[Name, ...]], ...],
        Key(
            "The tools it can use: names from `mcpServers` and `functions`; `server: [tool, tool]` for some tools of a server.",
            "agent",
        ),
    ] = ()
    agents: Annotated[
        tuple[Name, ...],
        Key("The agent files it can call as tools, relative to its folder and inside the folder of the agent you run.", "agent"),
    ] = ()
    output: Annotated[OutputKeys, Key("The form of its report: `format` and, for the format json, a JSON `schema`.", "agent")] = (
        OutputKeys()
    )


ALLOWED = {
    "description": "a string that is not empty",
    "tools": "a list of names, or of `server: [tool, tool]`",
    "agents": "a list of agent files",
    "output": "a mapping with format (text, markdown or json) and schema",
}
