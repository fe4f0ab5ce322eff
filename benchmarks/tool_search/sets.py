"""The tools and questions that ranking is measured on. The material is other people's: it is read from a folder, never shipped.

`DIR` holds clones, or the same files: `LiveMCPBench` (github.com/icip-cas/LiveMCPBench) and `mcpproxy-go`
(github.com/smart-mcp-proxy/mcpproxy-go). The 150 questions about LiveMCPBench's tools are ours: `questions.tsv`, written before
there was a ranking.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct

from overspill.tool_search.words import SearchedTool


class Question(Struct, frozen=True):
    text: str
    right: frozenset[str]
    """`server:tool`, each of which would do."""

    @property
    def is_seen(self) -> bool:
        return hashlib.sha256(self.text.encode()).digest()[-1] % 2 == 0


def read_live(material: Path) -> tuple[list[SearchedTool], list[Question]]:
    """527 tools, and our questions about them."""
    listed = _read(material / "LiveMCPBench/tools/LiveMCPTool/tools.json")
    found = ((name, tool) for entry in listed for name, server in entry["tools"].items() for tool in server["tools"])
    tools = [SearchedTool(tool["name"], tool["description"] or "", tool["inputSchema"], server) for server, tool in found]
    lines = (Path(__file__).parent / "questions.tsv").read_text("utf-8").splitlines()
    return tools, [Question(text, frozenset(right.split(","))) for text, right in (line.split("\t") for line in lines)]


def read_tasks(material: Path) -> Iterator[Question]:
    """LiveMCPBench's 95 tasks, each with the names of the tools that its authors used, of any server."""
    for task in _read(material / "LiveMCPBench/annotated_data/all_annotations.json"):
        used = (line.partition(".")[2].strip() for line in task["Annotator Metadata"]["Tools"].splitlines())
        yield Question(task["Question"], frozenset(name for name in used if name))


def read_graded(material: Path) -> tuple[list[SearchedTool], list[Question]]:
    """mcpproxy-go's 45 tools and 47 questions, of which some have several answers. A tool with the grade 0 is a wrong one."""
    specs = material / "mcpproxy-go/specs"
    listed = _read(specs / "083-discovery-profiler/datasets/corpus_v2.tools.json")["tools"]
    tools = [SearchedTool(each["tool"], each["description"], each.get("schema") or {}, each["server"]) for each in listed]
    asked = _read(specs / "065-evaluation-foundation/datasets/retrieval_golden_v1.json")["queries"]
    graded = ((each["query"], (label["tool_id"] for label in each["labels"] if label["relevance"] > 0)) for each in asked)
    return tools, [Question(query, frozenset(right)) for query, right in graded]


def _read(file: Path) -> Any:
    return json.loads(file.read_text("utf-8"))
