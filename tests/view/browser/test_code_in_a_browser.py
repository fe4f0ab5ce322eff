"""Code in colours that can be read, in light and in dark, also where it is highlighted."""

from __future__ import annotations

from pathlib import Path

import pytest
from viewers import Window, fill, output_path, running_viewer

pytestmark = pytest.mark.slow
CODE = "import os\n\n" + "def total(rows):\n    # as a person counts\n    return sum(rows) + 1 if rows else 'none'\n\n" * 500


@pytest.mark.parametrize("window", [{"color_scheme": "light"}, {"color_scheme": "dark"}], indirect=True, ids=["light", "dark"])
def test_code_has_colours_that_can_be_read(window: Window, root: Path, axe: str):
    kept = fill(root, big=CODE)[0]
    with running_viewer(root) as viewer:
        page = window.enter(viewer).page
        window.go(viewer, f"{output_path(kept)}?lines=3-5")
        page.wait_for_selector(".lines mark .code-w")
        colored = "document.querySelectorAll('.lines :not(mark) > span[class^=code-]')"
        colors = page.evaluate(f"[...new Set([...{colored}].map(each => getComputedStyle(each).color))]")
        assert len(colors) == 4
        found = page.evaluate(f"{axe}\naxe.run().then(r => r.violations.filter(v => ['serious','critical'].includes(v.impact)))")
        assert [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found] == []
