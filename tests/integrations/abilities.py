"""What each framework cannot do, and why. `docs/integrations.md` has the table; the suite proves everything that is not here."""

CANNOT: dict[str, dict[str, str]] = {
    "langchain": {
        "a_run_that_fails_leaves_nothing_behind": "LangGraph tells no middleware that a run has failed. "
        "The session closes when Python frees the run, or when the program ends.",
    },
    "strands": {},
    "google_adk": {},
    "agno": {},
    "agent_framework": {},
}
