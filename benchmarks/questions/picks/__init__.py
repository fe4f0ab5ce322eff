"""Chosen commits, questions and records of each set: one JSON object a line.

`queries.jsonl` has what a language model would send to the tool that extracts. It wrote them from the questions and the tool's
description, without having seen a document or an answer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.questions.question import Kind


def read_picks(set_name: str, kind: Kind) -> list[dict[str, Any]]:
    """None of a kind that the set does not have."""
    path = Path(__file__).parent / set_name / f"{kind}.jsonl"
    if not path.is_file():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]


WITH_QUERIES = sorted(path.parent.name for path in Path(__file__).parent.glob("*/queries.jsonl"))


def read_queries(set_name: str) -> dict[str, str]:
    """By question."""
    lines = (Path(__file__).parent / set_name / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["id"]: row["query"] for row in map(json.loads, lines)}
