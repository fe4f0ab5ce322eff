"""A huge single line of JSON: no line to read by, so it is extracted chunk by chunk, by the model of the turn."""

from __future__ import annotations

import pytest
from agents import Seen, Stage, call, report, scripted, seen
from frames import unmarked

pytestmark = pytest.mark.anyio


async def test_one_huge_line_is_extracted_chunk_by_chunk_by_the_model_of_the_turn(stage: Stage) -> None:
    agent = stage.write("a.ai", "tools: [depot]\nextractionModel: null\npreset: tool_output")

    def extract(s: Seen) -> str:
        assert "You extract information from one chunk of a document" in s.request.system
        return f'<ai-agent-{s.nonce}-FINAL format="text">Parcel 777 is lost.\n\nQUOTES:\n> "parcel": 777, "state": "lost"'

    model = scripted(
        call("depot__rows", count=3000),
        lambda s: call("tool_output", handle=s.handles[-1], extract="Which parcel is lost?"),
        extract,
        lambda s: report(s.answers[-1]),
    )
    record = await stage.run(agent, model)
    answer = seen(model)[-1].answers[-1]
    assert ", STRATEGY:full-chunked:\n\n[untrusted data N]\nParcel 777 is lost.\n" in unmarked(answer)
    assert "CITATIONS (checked against the stored output):" in answer
    (extraction,) = [op for turn in record.tree.children for op in turn.children if op.kind == "session"]
    assert (extraction.attributes["model"], len(extraction.children)) == ("test/m", 1)
