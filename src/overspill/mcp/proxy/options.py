"""Options of the proxy besides the settings, and the settings it starts from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from overspill.mcp.client.config import ServerConfig
from overspill.record.logs import Observer
from overspill.settings import Layer
from overspill.text.lenient_json import dumps

PROXY_DEFAULTS = Layer(
    "proxy",
    {"retention": "keep", "waitMaxSecs": 45, "toolTimeout": None, "toolOutput": {"answerWithinSecs": 45}},
)
"""Outputs are kept because clients resume conversations. Calls end within 45 s because many clients give up after a minute."""
SHARED_DEFAULTS = Layer("proxy", {"repeats": "full"})
"""Also used over HTTP, where several conversations may share a session: each has seen only its own outputs."""


class ProxyOptions(Struct, frozen=True):
    servers: Mapping[str, ServerConfig]
    environ: Mapping[str, str]
    """The environment for server processes."""
    tools_always: bool = True
    """List the retrieval tools from the start, so that the list never changes and prompt caches stay valid."""
    dry_run: bool = False
    list_outputs: bool = False
    lists_folder: str = ""
    """Where the lists of servers are kept for later conversations; empty: nowhere."""
    shared_family: str = ""
    """Read what earlier sessions of this family have stored, instead of what earlier sessions of this proxy have."""
    conversation: str = ""
    """Also read what sessions of this family and conversation store while they are live."""
    offers_own_tools: bool = True
    """Whether this proxy offers the retrieval tools. If not, another proxy of the family does."""
    first_wait: float = 20.0
    """How many seconds a client waits for its servers when it connects. Servers that take longer keep starting."""
    gone_after: float = 300.0
    """How many seconds a client of the older protocol may have neither a request nor a stream open before it counts as gone."""
    stateless_gone_after: float = 1800.0
    """After how many silent seconds a client of the newer protocol counts as gone. It need not keep a stream open."""
    max_job_seconds_alone: float = 3600.0
    """How long a call without a `toolTimeout` may run after its client has gone."""
    grace_seconds: float = 0.0
    """How long calls may take to end once the proxy is stopping."""
    separates_logins: bool = False
    """Whether each principal has separate logins instead of the user's."""
    observers: tuple[Observer, ...] = ()
    """Observers of the events of every session."""

    @property
    def secrets(self) -> dict[str, str]:
        """Values that may be secrets, by name."""
        own = [{**server.env, **server.headers} for server in self.servers.values()]
        return {name: value for named in (self.environ, *own) for name, value in named.items()}

    def of(self, principal: str) -> ProxyOptions:
        """The options for one principal."""
        owner = principal if self.separates_logins else ""
        return replace(self, servers={name: replace(server, login_owner=owner) for name, server in self.servers.items()})

    def family(self, principal: str) -> str:
        """The name shared by sessions that share outputs: the same principal with the same servers, even after a restart."""
        if self.shared_family:
            return self.shared_family
        whole = dumps([principal, [(each.name, each.command, each.args, each.url) for each in self.servers.values()]])
        return f"proxy-{hashlib.sha256(whole).hexdigest()[:32]}"
