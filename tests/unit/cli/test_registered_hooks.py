"""Where a coding agent's hook has to be named: whoever adds one and forgets a place is told here."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from overspill.cli.commands.hook import hook
from overspill.cli.commands.wrap import wrap
from overspill.hooks.shapes import HOOKS, OBSERVED, Client, HookEvent, Unusable, find_text
from overspill.mcp.host_configs.clients import known_clients


def test_every_hook_is_known_observed_and_written_into_its_clients_file():
    places = {
        name: list(client.hooks.events)
        for name, client in known_clients(Path("/home"), "linux", {}).items()
        if client.hooks is not None
    }
    assert places == {client: [each.event, *(["SessionStart"] if each.returns else [])] for client, each in HOOKS.items()}
    assert set(OBSERVED) == set(get_args(Client)) == set(HOOKS)


@pytest.mark.parametrize("client", HOOKS)
def test_a_hook_is_in_the_help_and_in_the_docs(client: Client):
    options = " ".join(str(parameter.to_info_dict().get("help")) for parameter in wrap.params)
    assert client in str(hook.help)
    assert client in options
    assert client in (Path(__file__).parents[3] / "docs/coding-agents.md").read_text("utf-8")


def test_no_client_is_answered_as_another():
    answered = [find_text(client, event(client)).answer("short") for client in HOOKS]
    assert all(answered.count(each) == 1 for each in answered)
    for client in HOOKS:
        for other in set(HOOKS) - {client}:
            with pytest.raises(Unusable):
                find_text(other, event(client))


def event(client: Client) -> HookEvent:
    responses = {"claude-code": ("Bash", {"stdout": "long"}), "gemini-cli": ("run_shell_command", {"llmContent": "long"})}
    return HookEvent(HOOKS[client].event, *responses[client])
