"""What each framework cannot do, and why. `docs/integrations.md` has the table; the suite proves everything that is not here."""

import ast
from pathlib import Path

SUITE = Path(__file__).with_name("suite.py")

CANNOT: dict[str, dict[str, str]] = {
    "pydantic_ai": {},
    "openai_agents": {},
    "fastmcp": {
        "what_the_conversation_asks_for_is_shown_first": "A server does not see the conversation. "
        "Let the model say what it is looking for, with `intent: ask`.",
    },
    "langchain": {
        "a_run_that_fails_leaves_nothing_behind": "LangGraph tells no middleware that a run has failed. "
        "The session closes when Python frees the run, or when the program ends.",
    },
}


def list_behaviours() -> list[str]:
    """The names of the suite's tests, without importing what they need."""
    tree = ast.parse(SUITE.read_text("utf-8"))
    tests = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [name.removeprefix("test_") for name in tests if name.startswith("test_")]


def render_table() -> str:
    """For `docs/integrations.md`."""
    frameworks = sorted(CANNOT)
    lines = [f"| | {' | '.join(frameworks)} |", "|---" * (len(frameworks) + 1) + "|"]
    notes: dict[str, int] = {}
    for behaviour in list_behaviours():
        cells = []
        for framework in frameworks:
            reason = CANNOT[framework].get(behaviour)
            cells.append("yes" if reason is None else f"no ({notes.setdefault(reason, len(notes) + 1)})")
        lines.append(f"| {behaviour.replace('_', ' ')} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", *(f"{number}. {reason}" for reason, number in notes.items())])
