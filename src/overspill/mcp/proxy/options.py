"""What the user of a proxy can choose besides the settings, and which settings a proxy starts from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from msgspec import Struct

from overspill.mcp.client import ServerConfig
from overspill.settings import Layer
from overspill.text.lenient_json import dumps

PROXY_DEFAULTS = Layer("proxy", {"retention": "keep", "waitMaxSecs": 45, "toolOutput": {"answerWithinSecs": 45}})
"""Clients resume conversations, so what was kept stays; and many give a call up after a minute."""


class ProxyOptions(Struct, frozen=True):
    servers: Mapping[str, ServerConfig]
    environ: Mapping[str, str]
    """What servers that are started get of our own environment."""
    tools_always: bool = False
    """Retrieval tools are listed from the beginning, for clients that do not hear when a list changes."""
    dry_run: bool = False
    list_outputs: bool = False
    first_wait: float = 20.0
    """Seconds a client waits for servers when it says hello; they go on starting after that."""

    @property
    def has_several_servers(self) -> bool:
        return len(self.servers) > 1

    def family(self, principal: str) -> str:
        """Whose outputs are whose: the same caller of the same servers, today and tomorrow."""
        whole = dumps([principal, [(each.name, each.command, each.args, each.url) for each in self.servers.values()]])
        return f"proxy-{hashlib.sha256(whole).hexdigest()[:32]}"
