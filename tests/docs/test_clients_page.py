"""What the page about clients says to paste is what `overspill wrap` understands, and what the proxy takes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from overspill.cli import overspill
from overspill.mcp.host_configs import rewriting
from overspill.mcp.host_configs.clients import known_clients

PAGE = (Path(__file__).parents[2] / "docs" / "clients.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS)
def test_what_is_pasted_runs_through_the_proxy_and_can_be_undone(block: str) -> None:
    made = rewriting.unwrap(block, "the page")
    assert {outcome.change for outcome in made.outcomes} == {"unwrapped"}
    assert {outcome.reason for outcome in rewriting.wrap(block, "the page", ["overspill"]).outcomes} == {
        rewriting.ALREADY_WRAPPED
    }


@pytest.mark.parametrize("block", BLOCKS)
def test_the_proxy_takes_the_arguments_that_are_pasted(block: str) -> None:
    content = json.loads(block)
    for entry in (content.get("mcpServers") or content["servers"]).values():
        command, *args = entry["args"]
        with click.Context(overspill) as context:
            found = overspill.get_command(context, command)
            assert found is not None
            found.make_context(command, args, parent=context)


def test_every_client_that_is_known_is_on_the_page() -> None:
    assert len(BLOCKS) == 5
    for name in known_clients(Path("/home/ada"), "linux", {}):
        assert f"overspill wrap {name}" in PAGE
