"""docs/settings.md is what the code says."""

from __future__ import annotations

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_settings_page_is_the_generated_one() -> None:
    pages = runpy.run_path(str(ROOT / "scripts" / "generate-docs"))["pages"]()
    assert pages == {path: path.read_text(encoding="utf-8") for path in pages}, "Run scripts/generate-docs."
