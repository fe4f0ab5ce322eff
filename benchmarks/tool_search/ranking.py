"""How often the right tool is the first, or among the first five, and what a query costs in processor time.

`python -m benchmarks.tool_search.ranking --material DIR [--half seen|unseen|all] [--vectors FOLDER] [--misses]`. Of the graded
set, recall is the share of a question's answers that are found, as its authors count it; some questions have several, so it is at
most 85.8 at 1. One question of it is two points. Of our questions, any of the answers counts.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks.tool_search.sets import Question, read_graded, read_live, read_tasks
from overspill.tool_search.search import ToolSearch
from overspill.tool_search.words import SearchedTool

Rank = Callable[[str], list[str]]


def open_search(tools: Sequence[SearchedTool], vectors: Path | None) -> Rank:
    """By the model if there is a folder for its vectors. Servers may have tools of the same name: here, each is `server:tool`."""
    named = [SearchedTool(f"{each.server}:{each.name}", each.description, each.parameters, each.server) for each in tools]
    search = ToolSearch(named)
    if vectors is not None:
        search.learn(vectors)
    return lambda query: [tool.name for tool in search.rank(query)]


def measure(rank: Rank, questions: Sequence[Question], k: int, *, share: bool) -> float:
    found = [len({*rank(each.text)[:k]} & each.right) / (len(each.right) if share else 1) for each in questions]
    return 100 * statistics.mean(found if share else [float(bool(each)) for each in found])


def measure_time(tools: Sequence[SearchedTool], questions: Sequence[Question], count: int, vectors: Path | None) -> float:
    """Milliseconds of processor time for one query among this many tools."""
    more = [_copy(tools[at % len(tools)], at // len(tools)) for at in range(count)]
    rank = open_search(more, vectors)
    rank(questions[0].text)
    started = time.process_time()
    for each in questions:
        rank(each.text)
    return 1000 * (time.process_time() - started) / len(questions)


def _copy(tool: SearchedTool, number: int) -> SearchedTool:
    return SearchedTool(tool.name, tool.description, tool.parameters, f"{tool.server}{number}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--material", type=Path, required=True)
    parser.add_argument("--half", choices=["seen", "unseen", "all"], default="seen")
    parser.add_argument("--vectors", type=Path, help="rank by the model; a folder for its vectors")
    parser.add_argument("--misses", action="store_true", help="print the questions whose answer is not among the first five")
    given = parser.parse_args()
    tools, graded = read_graded(given.material)
    rank = open_search(tools, given.vectors)
    recall = ", ".join(f"@{k} {measure(rank, graded, k, share=True):.1f}" for k in (1, 3, 5, 10))
    print(f"mcpproxy-go, {len(tools)} tools, {len(graded)} questions: recall {recall}")
    tools, questions = read_live(given.material)
    rank = open_search(tools, given.vectors)
    asked = [each for each in questions if given.half == "all" or each.is_seen == (given.half == "seen")]
    right = ", ".join(f"{measure(rank, asked, k, share=False):.1f} % in {k}" for k in (1, 5))
    print(f"LiveMCPBench, {len(tools)} tools, {len(asked)} questions ({given.half}): right tool {right}")
    tasks = [*read_tasks(given.material)]
    hits = [any(name.partition(":")[2] in each.right for name in rank(each.text)[:5]) for each in tasks]
    print(f"LiveMCPBench, {len(tasks)} whole tasks as one query: a tool that was used in 5: {100 * statistics.mean(hits):.1f} %")
    for count in (1_000, 10_000):
        print(f"{count} tools: {measure_time(tools, questions[:50], count, given.vectors):.1f} ms a query")
    for each in asked if given.misses else ():
        if not {*rank(each.text)[:5]} & each.right:
            print(f"  {each.text}: {rank(each.text)[:5]}")


if __name__ == "__main__":
    main()
