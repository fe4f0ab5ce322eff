"""Keep MCP tasks out. The result of a task would come with a later answer or a notification, and not pass the gate."""

from __future__ import annotations

import mcp_types
from mcp.shared.exceptions import MCPError

from overspill.mcp.client.connection import Raw, as_mapping

_EXTENSION = "io.modelcontextprotocol/tasks"
_NO_TASK = "forbidden"
_METHODS, _NOTIFICATIONS = "tasks/", "notifications/tasks"


def drop_tasks(capabilities: Raw) -> Raw:
    """What a client or a server can do, except tasks: a capability of the older protocol, an extension of the newer one."""
    rest = {name: value for name, value in capabilities.items() if name != "tasks"}
    for kind in ("extensions", "experimental"):  # some SDKs have had tasks among the experimental ones
        if known := as_mapping(rest.get(kind)):
            rest[kind] = {name: value for name, value in known.items() if name not in ("tasks", _EXTENSION)}
    return rest


def drop_from_request(method: str, params: Raw) -> Raw:
    """The request of a client that says in it what it can do, as if it knew no tasks."""
    if method == "initialize":
        return {**params, "capabilities": drop_tasks(as_mapping(params.get("capabilities")))}
    meta, key = as_mapping(params.get("_meta")), mcp_types.CLIENT_CAPABILITIES_META_KEY
    return {**params, "_meta": {**meta, key: drop_tasks(as_mapping(meta[key]))}} if key in meta else params


def drop_task_support(tool: Raw) -> Raw:
    """A tool as one that cannot be a task, which is what a tool is that does not say."""
    if (execution := as_mapping(tool.get("execution"))).get("taskSupport", _NO_TASK) == _NO_TASK:
        return tool
    rest = {name: value for name, value in execution.items() if name != "taskSupport"}
    return {**{name: value for name, value in tool.items() if name != "execution"}, **({"execution": rest} if rest else {})}


def refuse_task(method: str, params: Raw) -> None:
    """Raise MCPError if a client asks for a task, or about one. The code is the one for tools that cannot be tasks."""
    if method.startswith(_METHODS) or (method == "tools/call" and params.get("task") is not None):
        raise MCPError(mcp_types.METHOD_NOT_FOUND, "Overspill does not support MCP tasks yet. Call the tool without a task.")


def is_about_task(notification: str) -> bool:
    return notification == _NOTIFICATIONS or notification.startswith(f"{_NOTIFICATIONS}/")
