"""Everything in MCP that could carry a server's output to a client, and what the proxy does with it, in every protocol version.

A test walks the methods that the SDK knows and fails for one that is missing here. `docs/protocol.md` is made from this table.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from msgspec import Struct

Sender: TypeAlias = Literal["client", "server"]
Decision: TypeAlias = Literal["gated", "passed", "impossible"]
"""`gated`: content over the limits is stored and shortened, each kind in its own way. `passed`: it arrives as the server sent it.
`impossible`: it has no room for an output, or the proxy answers it. If one comes with an output anyway, or the table does not
know the method, it is `measured`: within the limits it passes; a larger one is stored and does not pass."""


class Rule(Struct, frozen=True):
    decision: Decision
    sender: Sender
    """Who sends the requests or notifications. For a client's request, the server's answer is what counts."""
    names: str
    reason: str
    extension: str = ""
    """Where the methods are defined, if not in the protocol itself."""


_TASKS, _APPS, _SKILLS, _CHANNELS = "tasks of 2025-11-25", "MCP Apps", "skills extension", "channels of Claude Code"
_LISTS = "prompts/list resources/list resources/templates/list"
_UI = "ui/initialize ui/message ui/open-link ui/download-file ui/update-model-context ui/request-display-mode"
_CHANGED = "notifications/resources/list_changed notifications/prompts/list_changed notifications/tools/list_changed"
_SIGNALS = "roots/list notifications/elicitation/complete notifications/resources/updated"
_HANDLED = "ping notifications/cancelled notifications/subscriptions/acknowledged"
_TO_SERVERS = "notifications/cancelled notifications/initialized notifications/progress notifications/roots/list_changed"

RULES: tuple[Rule, ...] = (
    Rule("gated", "client", "tools/call", "A large result is stored and answered with a card. `_meta` is for the client."),
    Rule("gated", "client", "resources/read", "A large text gets its beginning and links to its parts, a large blob a link."),
    Rule("gated", "client", "prompts/get", "What is large in a prompt becomes a link, but not its texts: they are instructions."),
    Rule("gated", "server", "notifications/claude/channel", "A model reads it, so a large text becomes a link.", _CHANNELS),
    Rule("passed", "client", "completion/complete", "A person chooses from the values, of which there are at most 100."),
    Rule("passed", "client", "tools/list", "A model needs whole definitions. Entries over 1 MiB are left out."),
    Rule("passed", "client", _LISTS, "It names what there is to choose from. Entries over 1 MiB are left out."),
    Rule("passed", "client", "initialize server/discover", "Instructions are for the model, and half of them could mislead."),
    Rule("passed", "client", "skills/list skills/get resources/directory/read", "It names what to read.", _SKILLS),
    Rule("passed", "server", "sampling/createMessage", "It is another conversation, which the client and its user may refuse."),
    Rule("passed", "server", "elicitation/create", "A person reads the question and answers it."),
    Rule("passed", "server", "notifications/message", "Clients write it to a log for people, and choose the level."),
    Rule("passed", "server", "notifications/progress", "Clients show it to people while a call runs."),
    Rule("impossible", "client", "ping logging/setLevel subscriptions/listen", "The proxy answers it."),
    Rule("impossible", "client", "resources/subscribe resources/unsubscribe", "Its answer is empty."),
    Rule("impossible", "client", _TO_SERVERS, "It goes to servers, and nothing comes back."),
    Rule("impossible", "server", _HANDLED, "The proxy handles it."),
    Rule("impossible", "server", _SIGNALS, "It has no more than an id or a URI."),
    Rule("impossible", "server", _CHANGED, "It says only that something changed."),
    Rule("gated", "client", "tasks/result", "It is the result of a tool call.", _TASKS),
    Rule("impossible", "client", "tasks/list", "It contains only the states of tasks.", _TASKS),
    Rule("impossible", "server", "tasks/get tasks/result tasks/list tasks/cancel", "The proxy refuses it.", _TASKS),
    Rule("impossible", "client", "notifications/tasks/status", "It goes to servers, and nothing comes back.", _TASKS),
    Rule("impossible", "server", "notifications/tasks/status", "It has only the state of a task.", _TASKS),
    Rule("gated", "client", "tasks/get", "The result of a task is gated when the client fetches it.", "tasks extension"),
    Rule("impossible", "client", "tasks/update tasks/cancel", "Its answer has no result.", "tasks extension"),
    Rule("impossible", "server", "notifications/tasks", "The proxy polls servers, and reports tasks itself.", "tasks extension"),
    Rule("impossible", "server", "notifications/claude/channel/permission", "It has only an id and yes or no.", _CHANNELS),
    Rule("impossible", "client", "notifications/claude/channel/permission_request", "It goes to servers.", _CHANNELS),
    Rule("impossible", "client", _UI, "An app's page sends it to its host, not to a server.", _APPS),
)

_DECISIONS: dict[tuple[str, str], Decision] = {
    (rule.sender, name): rule.decision for rule in RULES for name in rule.names.split()
}


def decide_method(sender: Sender, name: str) -> Decision | Literal["measured"]:
    """Decide what to do with a server's answer to this method, or with its parameters if a server sends it."""
    decision = _DECISIONS.get((sender, name), "impossible")
    return "measured" if decision == "impossible" else decision
