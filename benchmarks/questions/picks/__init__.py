"""Chosen commits, questions and records: one JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def read_picks(name: str) -> list[dict[str, Any]]:
    path = Path(__file__).with_name(f"{name}.jsonl")
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
