"""A text of many lines, longer than a window: a sub-agent reads and greps it."""

from __future__ import annotations

import pytest
from agents import Seen, Stage, call, report, scripted, seen
from frames import unmarked

pytestmark = pytest.mark.anyio


async def test_a_text_of_many_lines_is_read_and_grepped(stage: Stage) -> None:
    agent = stage.write("a.ai", "tools: [depot]\nextractionModel: null\npreset: tool_output")

    def grep(s: Seen):
        assert s.tools == ["Read", "Grep"]
        handle = s.request.messages[0].text.removeprefix("Begin. The file is ").removesuffix(".")
        return call("Grep", file=handle, pattern="ERROR", context=0)

    def found(s: Seen) -> str:
        return f'<ai-agent-{s.nonce}-FINAL format="text">The disk is full.\n\nQUOTES:\n> 00500 ERROR disk full'

    model = scripted(
        call("depot__log", lines=9000),
        lambda s: call("tool_output", handle=s.handles[-1], extract="What is wrong?"),
        grep,
        found,
        lambda s: report(s.answers[-1]),
        context_window=16_000,
        max_output_tokens=1_000,
    )
    record = await stage.run(agent, model)
    answer = seen(model)[-1].answers[-1]
    assert ", STRATEGY:read-grep:\n\n[untrusted data N]\nThe disk is full.\n" in unmarked(answer)
    assert "[1] line 500, bytes " in answer
    extraction, retrieval = record.tree.children[1].children[1:]
    assert (extraction.kind, extraction.name, retrieval.kind, retrieval.name) == ("session", "tool_output", "tool", "tool_output")
    asked, grepped, reported = extraction.children
    assert [(op.kind, op.name, op.status) for op in (asked, grepped, reported)] == [
        ("model", "test/m", "ok"), ("tool", "Grep", "ok"), ("model", "test/m", "ok"),
    ]  # fmt: skip
    (said,) = [message.text for message in model.requests[3].messages if message.role == "tool"]
    assert grepped.attributes == {"charactersOut": len(said)}
