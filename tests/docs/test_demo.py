"""The recording in the README comes from a real run, and can be made again."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "demo.svg"
MAX_BYTES = 20_000
RANDOM = re.compile(r"\bout_[0-9a-z]+|(?<=preview )\d+")


def read_lines(picture: Path) -> list[str]:
    """What can be read in it, without the names that differ from run to run."""
    lines = [unescape(each) for each in re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))]
    return [RANDOM.sub("…", line) for line in lines]


def test_the_readme_shows_it_and_it_takes_twenty_seconds():
    drawn = PICTURE.read_text(encoding="utf-8")
    assert "](docs/demo.svg)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert ET.fromstring(drawn).tag == "{http://www.w3.org/2000/svg}svg"  # noqa: S314
    assert set(re.findall(r"(\d+)s [\w-]+ infinite", drawn)) == {"20"}
    assert "http" not in drawn.replace("http://www.w3.org/2000/svg", "")
    assert len(drawn.encode()) < MAX_BYTES


@pytest.mark.slow
def test_the_same_commands_print_the_same_today(tmp_path: Path):
    made = tmp_path / "demo.svg"
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "LANG": "C.UTF-8"}
    command = [sys.executable, ROOT / "scripts" / "record-demo", made]
    subprocess.run(command, env=environ, capture_output=True, check=True, timeout=300)
    assert read_lines(made) == read_lines(PICTURE)
