"""The pictures of the viewer can be made again, and are those that its page shows."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAX_BYTES = 400_000
"""Of all pictures together."""
SHOWN = re.findall(r"\]\((view-[a-z]+\.png)\)", (ROOT / "docs" / "view.md").read_text(encoding="utf-8"))


def test_the_page_shows_every_picture_and_they_are_small():
    pictures = sorted((ROOT / "docs").glob("view-*.png"))
    assert sorted(SHOWN) == [picture.name for picture in pictures]
    assert sum(picture.stat().st_size for picture in pictures) < MAX_BYTES


@pytest.mark.slow
def test_the_script_makes_all_of_them(tmp_path: Path):
    if not any(map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))):
        assert "CI" not in os.environ
        pytest.skip("no chromium is on the PATH. On Debian and Ubuntu: apt install chromium")
    home = tmp_path / "home"
    home.mkdir()
    made = subprocess.run(
        [sys.executable, ROOT / "scripts" / "take-screenshots", tmp_path / "pictures"],
        env={"PATH": os.environ["PATH"], "HOME": str(home), "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    pictures = sorted((tmp_path / "pictures").iterdir())
    assert [picture.name for picture in pictures] == sorted(SHOWN)
    assert all(picture.read_bytes().startswith(b"\x89PNG") for picture in pictures)
