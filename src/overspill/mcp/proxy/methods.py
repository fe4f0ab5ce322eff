"""Everything in MCP that could carry a server's output to a client, and what the proxy does with each.

A decision holds in every protocol version that has the method. A test walks the methods that the SDK knows and fails for one that
is missing here.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Sender: TypeAlias = Literal["client", "server"]
Decision: TypeAlias = Literal["gated", "passed", "impossible"]
"""`gated`: what is over the limits is stored and shortened, each kind in its own way. `passed`: it arrives as the server sent it.
`impossible`: it has no room for an output, or the proxy answers it. If one comes with an output anyway, or the table does not
know the method, it is `measured`: within the limits it passes, and a larger one is stored and answered with an error."""

MEASURED = "measured"


class Method(Struct, frozen=True):
    name: str
    sender: Sender
    """Of the request or the notification. Of a client's request, it is the server's answer that counts."""
    decision: Decision
    reason: str
    extension: str = ""
    """Where it is defined, if not in the protocol itself."""


_TASKS, _TASKS_EXTENSION, _APPS, _SKILLS = "tasks of 2025-11-25", "tasks extension", "MCP Apps", "skills extension"
_CHANNELS = "channels of Claude Code"
_TO_SERVER = "It goes to a server, and nothing comes back."
_NO_TASKS = "The proxy refuses it."
_IN_A_PAGE = "An app's page and its host exchange it. It does not reach a server."
_NO_CONTENT = "It only says that something changed."

METHODS: tuple[Method, ...] = (
    Method("tools/call", "client", "gated", "A large result is stored, and the model gets a handle and a card."),
    Method("resources/read", "client", "passed", "It is not gated yet."),
    Method("prompts/get", "client", "passed", "It is not gated yet."),
    Method("completion/complete", "client", "passed", "A person chooses from the values, of which there are at most 100."),
    Method("tools/list", "client", "passed", "A model needs whole tools to call them. Entries over 1 MiB are left out."),
    Method("prompts/list", "client", "passed", "A person chooses from the list. Entries over 1 MiB are left out."),
    Method("resources/list", "client", "passed", "It names what can be read. Entries over 1 MiB are left out."),
    Method("resources/templates/list", "client", "passed", "It names what can be read. Entries over 1 MiB are left out."),
    Method("initialize", "client", "passed", "A server's instructions are for the model, and half an instruction is another."),
    Method(
        "server/discover", "client", "passed", "A server's instructions are for the model, and half an instruction is another."
    ),
    Method("ping", "client", "impossible", "The proxy answers it."),
    Method("logging/setLevel", "client", "impossible", "The proxy answers it."),
    Method("resources/subscribe", "client", "impossible", "Its answer is empty."),
    Method("resources/unsubscribe", "client", "impossible", "Its answer is empty."),
    Method("subscriptions/listen", "client", "impossible", "The proxy answers it. What it reports has its own rows."),
    Method("notifications/cancelled", "client", "impossible", _TO_SERVER),
    Method("notifications/initialized", "client", "impossible", _TO_SERVER),
    Method("notifications/progress", "client", "impossible", _TO_SERVER),
    Method("notifications/roots/list_changed", "client", "impossible", _TO_SERVER),
    Method("ping", "server", "impossible", "The proxy answers it."),
    Method("roots/list", "server", "impossible", "It asks for the client's folders and has no parameters."),
    Method("sampling/createMessage", "server", "passed", "It is another conversation, which the client and its user may refuse."),
    Method("elicitation/create", "server", "passed", "A person reads the question and answers it."),
    Method("notifications/message", "server", "passed", "Clients write it to a log for people, and choose the level."),
    Method("notifications/progress", "server", "passed", "Clients show it to people while a call runs."),
    Method("notifications/cancelled", "server", "impossible", "The proxy handles it."),
    Method("notifications/elicitation/complete", "server", "impossible", "It has only the id of a question."),
    Method("notifications/resources/updated", "server", "impossible", "It has only a URI. The client reads the resource anew."),
    Method("notifications/resources/list_changed", "server", "impossible", _NO_CONTENT),
    Method("notifications/prompts/list_changed", "server", "impossible", _NO_CONTENT),
    Method("notifications/tools/list_changed", "server", "impossible", _NO_CONTENT),
    Method("notifications/subscriptions/acknowledged", "server", "impossible", "The proxy handles it."),
    Method("tasks/get", "client", "gated", "The result of a task is gated when the client fetches it.", _TASKS_EXTENSION),
    Method("tasks/update", "client", "impossible", "Its answer is empty.", _TASKS_EXTENSION),
    Method("tasks/cancel", "client", "impossible", "Its answer is empty, or says only how the task is.", _TASKS_EXTENSION),
    *(Method(f"tasks/{name}", "client", "impossible", _NO_TASKS, _TASKS) for name in ("result", "list")),
    *(Method(f"tasks/{name}", "server", "impossible", _NO_TASKS, _TASKS) for name in ("get", "result", "list", "cancel")),
    Method("notifications/tasks/status", "client", "impossible", _TO_SERVER, _TASKS),
    Method("notifications/tasks/status", "server", "impossible", "The proxy does not pass it on.", _TASKS),
    Method("notifications/tasks", "server", "impossible", "The proxy polls servers, and reports tasks itself.", _TASKS_EXTENSION),
    Method("skills/list", "client", "passed", "It names what can be read.", _SKILLS),
    Method("skills/get", "client", "passed", "It names the files of a skill, each with its size and digest.", _SKILLS),
    Method("resources/directory/read", "client", "passed", "It names what can be read.", _SKILLS),
    Method("notifications/claude/channel", "server", "passed", "It is not gated yet.", _CHANNELS),
    Method("notifications/claude/channel/permission", "server", "impossible", "It has only an id and yes or no.", _CHANNELS),
    Method("notifications/claude/channel/permission_request", "client", "impossible", _TO_SERVER, _CHANNELS),
    *(
        Method(f"ui/{name}", "client", "impossible", _IN_A_PAGE, _APPS)
        for name in ("initialize", "message", "open-link", "download-file", "update-model-context", "request-display-mode")
    ),
    Method("ui/resource-teardown", "server", "impossible", _IN_A_PAGE, _APPS),
)

_DECISIONS = {(each.sender, each.name): each.decision for each in METHODS}


def decide_method(sender: Sender, name: str) -> Decision | Literal["measured"]:
    """What to do with a server's answer to it, or with its parameters if a server sends it."""
    decision = _DECISIONS.get((sender, name), MEASURED)
    return MEASURED if decision == "impossible" else decision
