"""What Overspill promises, id -> sentence. A test that holds one says so: `@pytest.mark.promise("nothing-lost")`."""

PROMISES: dict[str, str] = {
    "nothing-lost": "Raw bytes are stored, with SHA-256, before any reduced text goes anywhere.",
    "nothing-silently-cut": "Whatever omits something says how much, and how to get it.",
    "everything-reachable": "Bounded answers, exact continuations, also inside one 100 MB line.",
    "every-quote-checked": "Citations carry byte spans and match the stored bytes; `verify` re-checks.",
    "no-answer-over-budget": "An answer is at most its bound and at most the room that is left.",
    "no-turn-blocked": "After `asyncTimeoutSecs` a call has its answer, and its output is not lost.",
    "failures-are-answers": "A model always gets the real, actionable failure text.",
    "small-things-untouched": "A result within limits is passed on equal in every string and field, non-text blocks too.",
    "nobody-elses": "A session resolves only its own handles; files are owner-only; ids unguessable.",
    "cheap": "For small outputs the gate costs microseconds; for large ones about what writing them costs.",
    "cache-safe": (
        "What a model was given is never rewritten, except where the host itself rewrites that prefix (compaction, a trimmed "
        "history); the tools we offer never change within a conversation."
    ),
    "a-model-never-makes-it-worse": "With any model, a reply holds at least what the built-in engine would have shown.",
}
