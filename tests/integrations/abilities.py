"""What each framework cannot do, and why. `docs/integrations.md` has the table; the suite proves everything that is not here."""

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
