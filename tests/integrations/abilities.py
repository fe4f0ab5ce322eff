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
    "claude_agent_sdk": {},
    "strands": {},
    "google_adk": {},
    "agno": {},
    "agent_framework": {},
    "crewai": {
        "what_the_conversation_asks_for_is_shown_first": "CrewAI does not show the conversation to a tool.",
        "cancelling_the_run_cancels_the_tool": "CrewAI runs tools in threads, which nothing can interrupt.",
        "a_session_can_be_shared": "CrewAI runs tools in threads, so it shares a `SyncSession`.",
        "options_that_make_no_sense_are_refused": "`wrap_tools` has no options: pass them to the session.",
    },
}


def list_behaviours() -> list[str]:
    """The names of the suite's tests, without importing what they need."""
    tree = ast.parse(SUITE.read_text("utf-8"))
    tests = [node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [name.removeprefix("test_") for name in tests if name.startswith("test_")]
