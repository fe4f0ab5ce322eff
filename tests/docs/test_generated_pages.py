"""Pages made from the code are what the code says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from overspill.mcp.host_configs.clients import known_clients

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def pages() -> dict[Path, str]:
    return runpy.run_path(str(ROOT / "scripts" / "generate-docs"))["pages"]()


def test_generated_pages_are_what_the_code_says(pages: dict[Path, str]) -> None:
    old = [page.name for page, text in pages.items() if page.read_text(encoding="utf-8") != text]
    assert old == [], "Run scripts/generate-docs."


def test_the_settings_and_the_commands_are_generated(pages: dict[Path, str]) -> None:
    whole = {page.name for page in pages if page.parent == ROOT / "docs"}
    assert whole == {"agents.md", "clients.md", "code-mode.md", "commands.md", "integrations.md", "protocol.md", "settings.md"}
    clients = {page.name for page in pages if page.parent == ROOT / "docs" / "clients"}
    assert clients == {f"{name}.md" for name in known_clients(Path("/home/ada"), "linux", {})}
