"""Chosen commits, questions and records of each set: one JSON object a line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.questions.question import Kind


def read_picks(set_name: str, kind: Kind) -> list[dict[str, Any]]:
    path = Path(__file__).parent / set_name / f"{kind}.jsonl"
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
