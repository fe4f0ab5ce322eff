"""What the tools of ten real servers cost, and 30 scripted conversations until the first right call, in tokens (o200k).

`python -m benchmarks.tool_search.conversations --material DIR [--vectors FOLDER]`. The servers are the ten of LiveMCPBench that
most of our questions are about, with the lists that its authors recorded; the conversations are the first 30 unseen questions on
them. A model with all tools is assumed to call the right one immediately. A model that searches uses the words of the question,
and calls the right tool if it is among the five results; if not, the conversation counts as not ended.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from benchmarks.tool_search.sets import read_live
from overspill import Session, Settings
from overspill.text import tokens
from overspill.tool_search.search import ToolSearch

MODEL = "gpt-4o"
SERVERS, CONVERSATIONS = 10, 30


def count(value: Any) -> int:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return tokens.count(text, MODEL).tokens


def main(material: Path, vectors: Path | None) -> None:
    tools, questions = read_live(material)
    asked = Counter(server for each in questions for server in {right.partition(":")[0] for right in each.right})
    servers = [name for name, _ in asked.most_common(SERVERS)]
    listed = [replace(tool, name=f"{tool.server}__{tool.name}") for tool in tools if tool.server in servers]
    before = [{"name": tool.name, "description": tool.description, "inputSchema": tool.parameters} for tool in listed]
    session = Session(Settings(toolSearch="on"))
    retrieval = Session().tools("mcp")
    assert session.tool_search(before) == []
    offered = count(session.tools("mcp"))
    print(f"{len(servers)} servers with {len(listed)} tools: {', '.join(servers)}")
    own = count(retrieval)
    print(f"offered: {count([*before, *retrieval])} tokens, with the search {offered}; {own} of both are Overspill's other tools")
    search = ToolSearch(listed)
    if vectors is not None:
        search.learn(vectors)
    names = {tool.name for tool in listed}
    kept: list[tuple[int, int, int]] = []
    missed: list[str] = []
    tried = 0
    for each in questions:
        right = {name.replace(":", "__") for name in each.right} & names
        if each.is_seen or not right or tried == CONVERSATIONS:
            continue
        tried += 1
        found = search.find(each.text)
        best = [tool.name for tool in search.rank(each.text)[:5]]
        called = next((name for name in best if name in right), None)
        if called is None:
            missed.append(each.text)
            continue
        asking = count(each.text) + count({"name": "find_tools", "arguments": {"query": each.text}}) + count(found)
        first = offered + count(each.text)
        at_call = offered + asking + count({"name": "call_tool", "arguments": {"name": called, "arguments": {}}})
        direct = count([*before, *retrieval]) + count(each.text) + count({"name": called, "arguments": {}})
        kept.append((direct, at_call, first + at_call))
    direct, at_call, read = (round(statistics.mean(column)) for column in zip(*kept, strict=True))
    print(
        f"{len(kept)} of {tried} conversations reach the right call: {at_call} tokens of context at the call, {read} read in two"
    )
    print(f"requests; with all tools offered {direct} in one request")
    print("\n".join(f"  not found: {text}" for text in missed))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--material", type=Path, required=True)
    parser.add_argument("--vectors", type=Path, help="rank by the model; a folder for its vectors")
    given = parser.parse_args()
    main(given.material, given.vectors)
