"""How often the first request of a real Claude Code has a server's tools: from the server itself, and wrapped.

Claude Code starts its servers beside its own start, and asks its API without those that are not ready. A stand-in for the API
notes the tools of the first request. Each round has a run of each kind, in a random order; each kind has a home of its own, and
two servers: `plain` imports nothing but the standard library, `sdk` is written with the Python SDK.

    python benchmarks/proxy/first_request.py [--rounds 20]
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "conformance"))

from hubs import ENVIRON, HubHome, hub_home
from model_apis import AnthropicApi, Call, serving
from official import Node
from packages import CODING_AGENTS, npm_home

KINDS: dict[str, dict[str, str]] = {"bare": {}, "warm hub": {}, "cold hub": {}, "without a hub": {"OVERSPILL_HUB": "off"}}
THINKING_SECONDS = 2
"""How long the model takes for its answer. Without it, a conversation would be over before a slow server has started."""
SDK_SERVER = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("sdk")
@server.tool()
def echo(text: str) -> str:
    return text
server.run()
"""
COMMANDS = {"plain": [sys.executable, "-S", "-c", ENVIRON], "sdk": [sys.executable, "-c", SDK_SERVER]}
SERVERS = {name: {"type": "stdio", "command": command[0], "args": command[1:]} for name, command in COMMANDS.items()}


class NotingApi(AnthropicApi):
    first: Sequence[str] | None = None

    def note(self, results: Sequence[str], tools: Sequence[str]) -> Call | None:
        if self.first is None:
            self.first = tools
            time.sleep(THINKING_SECONDS)
        return super().note(results, tools)


def servers_in_first_request(claude: Node, home: HubHome, api: NotingApi, variables: Mapping[str, str]) -> set[str]:
    api.first = None
    quiet = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1", "NO_PROXY": "127.0.0.1"}
    env = {**home.env, **quiet, "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": api.url, "ENABLE_TOOL_SEARCH": "false"}
    given = {"env": {**env, **variables}, "cwd": home.folder, "stdin": subprocess.DEVNULL}
    subprocess.run(  # noqa: S603
        claude.program("claude", "-p", "go"), capture_output=True, timeout=120, check=True, **given
    )
    assert api.first is not None, "Claude Code asked nothing"
    return {server for server in SERVERS if any(name.startswith(f"mcp__{server}__") for name in api.first)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    claude = Node(npm_home("coding-agents", CODING_AGENTS))
    found = {kind: list[set[str]]() for kind in KINDS}
    with ExitStack() as opened:
        # One API for all: what a hub keeps for its next start is for the same environment, and so for the same address.
        opened.enter_context(serving(api := NotingApi([])))
        homes = {kind: opened.enter_context(hub_home()) for kind in KINDS}
        for kind, home in homes.items():
            file = home.folder / ".claude.json"
            file.write_text(json.dumps({"hasCompletedOnboarding": True, "mcpServers": SERVERS}))
            if kind != "bare":
                home.overspill("wrap", "claude-code")
            servers_in_first_request(claude, home, api, KINDS[kind])  # not counted: fills caches of both programs
        for _ in range(rounds):
            for kind in random.sample(list(KINDS), len(KINDS)):
                if kind == "cold hub":
                    homes[kind].overspill("hub", "stop")
                found[kind].append(servers_in_first_request(claude, homes[kind], api, KINDS[kind]))
    for kind, runs in found.items():
        counts = ", ".join(f"{server} in {sum(server in run for run in runs)}" for server in SERVERS)
        print(f"{kind}: of {len(runs)} first requests, the tools of {counts}")


if __name__ == "__main__":
    main()
