"""What the pages about clients say to paste is what `overspill wrap` understands, and what the proxy takes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import click
import pytest

from overspill.cli import overspill
from overspill.mcp.host_configs import rewriting
from overspill.mcp.host_configs.clients import USUAL, known_clients
from overspill.mcp.host_configs.documents import ConfigText

DOCS = Path(__file__).parents[2] / "docs"
CLIENTS = known_clients(Path("/home/ada"), "linux", {})
_BLOCK = re.compile(r"^```(?:json|toml|yaml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def find_blocks(page: Path) -> list[str]:
    return _BLOCK.findall(page.read_text(encoding="utf-8"))


GENERATED = {name: find_blocks(DOCS / "clients" / f"{name}.md")[:2] for name in CLIENTS}
BY_HAND = [
    *find_blocks(DOCS / "clients.md"),
    *(block for name in CLIENTS for block in find_blocks(DOCS / "clients" / f"{name}.md")[2:]),
]


@pytest.mark.parametrize("block", BY_HAND)
def test_what_is_pasted_runs_through_the_proxy_and_can_be_undone(block: str) -> None:
    made = rewriting.unwrap(ConfigText(block, "the page"))
    assert {outcome.change for outcome in made.outcomes} == {"unwrapped"}
    assert {outcome.reason for outcome in rewriting.wrap(ConfigText(block, "the page"), ["overspill"]).outcomes} == {
        rewriting.ALREADY_WRAPPED
    }


@pytest.mark.parametrize(
    "block", [*BY_HAND, *(after for name, (_, after) in GENERATED.items() if CLIENTS[name].dialect is USUAL)]
)
def test_the_proxy_takes_the_arguments_that_are_pasted(block: str) -> None:
    content = json.loads(block)
    for entry in (content.get("mcpServers") or content["servers"]).values():
        command, *args = entry["args"]
        with click.Context(overspill) as context:
            found = overspill.get_command(context, command)
            assert found is not None
            found.make_context(command, args, parent=context)


@pytest.mark.parametrize("name", CLIENTS)
def test_what_wrap_writes_can_be_undone(name: str) -> None:
    before, after = GENERATED[name]
    undone = rewriting.unwrap(ConfigText(after, "the page", CLIENTS[name].dialect), [before])
    assert undone.text == before


def test_every_client_that_is_known_has_a_page_and_is_in_the_table() -> None:
    assert len(BY_HAND) == 4
    table = (DOCS / "clients.md").read_text("utf-8")
    for name, client in CLIENTS.items():
        page = (DOCS / "clients" / f"{name}.md").read_text("utf-8")
        assert page.startswith(f"# {client.title}\n")
        assert f"| Wrap | `overspill wrap {name}` |" in page
        assert f"[{client.title}](clients/{name}.md)" in table
