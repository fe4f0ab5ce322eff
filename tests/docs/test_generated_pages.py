"""Pages made from the code are what the code says."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES: dict[Path, str] = runpy.run_path(str(ROOT / "scripts" / "generate-docs"))["pages"]()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_generated_page_is_what_the_code_says(page: Path) -> None:
    assert page.read_text(encoding="utf-8") == PAGES[page], "Run scripts/generate-docs."


def test_the_settings_and_the_commands_are_generated() -> None:
    assert sorted(page.name for page in PAGES) == ["agents.md", "commands.md", "integrations.md", "settings.md"]
