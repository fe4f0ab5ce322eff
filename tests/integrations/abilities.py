"""What each framework cannot do, and why. `docs/integrations.md` has the table; the suite proves everything that is not here."""

import ast
from pathlib import Path

SUITES = sorted(Path(__file__).parent.glob("suite*.py"))

OLD_RESULTS = (
    "old_results_are_replaced_by_names_that_can_be_read",
    "old_results_are_replaced_in_batches",
    "replacing_old_results_needs_the_size_of_the_window",
    "the_room_of_old_results_is_free_again",
)
IMAGES = ("an_image_passes", "an_image_stays_beside_a_text_that_is_stored")
SEARCHING = (
    "the_model_searches_for_tools_and_calls_them_by_their_own_names",
    "a_call_that_does_not_fit_teaches_the_schema",
    "short_lists_of_tools_are_offered_as_they_are",
    "tools_of_the_names_of_the_search_are_found_beside_a_prefix",
)
ASKING = "the_model_may_say_what_it_is_looking_for"

CANNOT: dict[str, dict[str, str]] = {
    "pydantic_ai": {},
    "openai_agents": dict.fromkeys(OLD_RESULTS, "Only a filter in your `RunConfig` sees the conversation: the page has one."),
    "fastmcp": {
        "what_the_conversation_asks_for_is_shown_first": "A server does not see the conversation. "
        "Let the model say what it is looking for, with `intent: ask`.",
        **dict.fromkeys(OLD_RESULTS, "A server does not see the conversation. Clear old results in the client."),
        **dict.fromkeys(SEARCHING, "Clients connect to a server, and the proxy in front of it searches for its tools."),
    },
    "langchain": {
        "a_run_that_fails_leaves_nothing_behind": "LangGraph tells no middleware that a run has failed. "
        "The session closes with the next run of its thread, when Python frees the run, or when the program ends.",
    },
    "claude_agent_sdk": {
        **dict.fromkeys(OLD_RESULTS, "Claude Code keeps the conversation to itself."),
        **dict.fromkeys(SEARCHING, "Claude Code searches for tools itself."),
    },
    "strands": {},
    "google_adk": {},
    "agno": {
        **dict.fromkeys(OLD_RESULTS, "agno calls no hook before a request to the model."),
        ASKING: "agno makes the schemas of tools itself, in each run.",
    },
    "agent_framework": {ASKING: "Agent Framework checks arguments before a middleware sees them."},
    "crewai": {
        "what_the_conversation_asks_for_is_shown_first": "CrewAI does not show the conversation to a tool.",
        "a_run_that_times_out_cancels_the_tool": "CrewAI runs tools in threads, which nothing can interrupt.",
        "cancelling_the_run_cancels_the_tool": "CrewAI runs tools in threads, which nothing can interrupt.",
        **dict.fromkeys(IMAGES, "CrewAI shows the model what a tool returns as text."),
        **dict.fromkeys(
            (SEARCHING[-1], "a_session_can_be_shared"), "CrewAI runs tools in threads, so it shares a `SyncSession`."
        ),
        **dict.fromkeys(OLD_RESULTS, "`wrap_tools` sees calls, and not the conversation."),
        "options_that_make_no_sense_are_refused": "`wrap_tools` takes only `tool_search`: pass the others to the session.",
    },
}


def list_behaviours() -> list[str]:
    """The names of the suite's tests, without importing what they need."""
    nodes = [node for path in SUITES for node in ast.parse(path.read_text("utf-8")).body]
    tests = [node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [name.removeprefix("test_") for name in tests if name.startswith("test_")]
