"""What AGENTS.md says about the code is how the code is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_architecture import ROOMS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "AGENTS.md").read_text(encoding="utf-8")


def test_the_folders_are_listed_in_reading_order() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == [name for name in ROOMS if name != "overspill"]


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([\w/.]+\.(?:py|md))`", PAGE))))
def test_every_file_it_names_exists(name: str) -> None:
    assert (ROOT / name).is_file() or (ROOT / "src" / "overspill" / name).is_file()
