"""Pages made from the code are what the code says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from overspill.mcp.host_configs.clients import known_clients

ROOT = Path(__file__).parents[2]
PAGES: dict[Path, str] = runpy.run_path(str(ROOT / "scripts" / "generate-docs"))["pages"]()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_generated_page_is_what_the_code_says(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page], "Run scripts/generate-docs."


def test_the_settings_and_the_commands_are_generated() -> None:
    whole = {page.name for page in PAGES if page.parent == ROOT / "docs"}
    assert whole == {"agents.md", "clients.md", "code-mode.md", "commands.md", "integrations.md", "protocol.md", "settings.md"}
    clients = {page.name for page in PAGES if page.parent == ROOT / "docs" / "clients"}
    assert clients == {f"{name}.md" for name in known_clients(Path("/home/ada"), "linux", {})}
