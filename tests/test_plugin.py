"""The plugin for Claude Code names commands that exist, and the version of the package."""

import json
import shlex
from pathlib import Path

from overspill import __version__
from overspill.cli import COMMANDS
from overspill.hooks.shapes import HOOKS

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "plugins" / "claude-code"


def load(path: Path) -> dict[str, object]:
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_plugin_has_the_packages_version():
    assert load(PLUGIN / ".claude-plugin" / "plugin.json")["version"] == __version__


def test_the_plugin_calls_commands_that_exist():
    events = json.loads((PLUGIN / "hooks" / "hooks.json").read_text())["hooks"]
    hooks = [hook for groups in events.values() for hook in groups]
    server = json.loads((PLUGIN / ".mcp.json").read_text())["mcpServers"]["overspill"]
    lines = [shlex.split(each["command"]) for entry in hooks for each in entry["hooks"]]
    for program, command, client in [*lines, [server["command"], *server["args"]]]:
        assert program == "overspill"
        assert command in COMMANDS
        assert client in HOOKS


def test_the_marketplace_names_the_plugins_folder():
    (plugin,) = json.loads((ROOT / ".claude-plugin" / "marketplace.json").read_text())["plugins"]
    assert (ROOT / plugin["source"]).resolve() == PLUGIN
