"""An agent's model says with each call what it needs from the result, and a large result answers that."""

from __future__ import annotations

import json

import pytest
from agents import Stage, call, report, says, scripted, seen

from overspill.gate.intent import LOOKING_FOR

pytestmark = pytest.mark.anyio

SEARCH = '''
def search(topic: str) -> str:
    """Search the log."""
    lines = [f"parcel {n} delivered" for n in range(3000)]
    lines[2000] = "parcel 99 lost near the harbour, arguments: " + repr(sorted(locals()))
    return "\\n".join(lines)
'''
LOST = "parcel 99 lost near the harbour, arguments: ['lines', 'topic']"
PATIENT = "intentWithinSecs: 30"


async def test_the_model_says_what_it_is_looking_for_and_gets_it(stage: Stage) -> None:
    stage.function(SEARCH)
    model = scripted(call("search", topic="t1", **{LOOKING_FOR: "which parcel was lost"}), lambda s: report(s.answers[-1]))
    record = await stage.run(stage.write("a.ai", PATIENT), model)
    assert record.outcome.report is not None
    assert 'Passages found for "which parcel was lost"' in record.outcome.report.content
    assert LOST in record.outcome.report.content


@pytest.mark.promise("cache-safe")
async def test_the_argument_is_in_every_request(stage: Stage) -> None:
    stage.function(SEARCH)
    model = scripted(call("search", topic="t1"), call("search", topic="t2", **{LOOKING_FOR: "x"}), report())
    await stage.run(stage.write("a.ai"), model)
    first, *others = [json.dumps(request.tools) for request in model.requests[:3]]
    assert LOOKING_FOR in first
    assert others == [first, first]


async def test_a_batch_takes_it_too(stage: Stage) -> None:
    stage.function(SEARCH)
    entry = {"id": "1", "tool": "search", "parameters": {"topic": "t1", LOOKING_FOR: "which parcel was lost"}}
    model = scripted(call("agent__batch", calls=[entry]), report())
    await stage.run(stage.write("a.ai", PATIENT), model)
    assert LOST in json.loads(json.dumps(seen(model)[1].answers[0]))


async def test_without_it_the_conversation_says_what_to_look_for(stage: Stage) -> None:
    stage.function(SEARCH)
    model = scripted(says("Let me look.", call("search", topic="t1")), report())
    await stage.run(stage.write("a.ai", PATIENT), model, question="Which parcel was lost near the harbour?")
    assert 'Passages found for "Which parcel was lost near the harbour?"' in seen(model)[1].answers[0]
    model = scripted(says("I need the parcel lost near the harbour.", call("search", topic="t1")), report())
    await stage.run(stage.write("a.ai", PATIENT), model, question="Help me.")
    assert LOST in seen(model)[1].answers[0]


@pytest.mark.parametrize("setting", ["intent: implicit", "intent: 'off'", "preset: tool_output", "preset: slow"])
async def test_a_setting_or_a_preset_leaves_the_tools_as_they_are(stage: Stage, setting: str) -> None:
    stage.function(SEARCH)
    model = scripted(report())
    await stage.run(stage.write("a.ai", setting), model)
    assert LOOKING_FOR not in json.dumps(model.requests[0].tools)


async def test_it_is_on_no_record_but_the_conversation(stage: Stage) -> None:
    stage.function(SEARCH)
    model = scripted(call("search", topic="t1", **{LOOKING_FOR: "lost xylophone"}), report())
    await stage.run(stage.write("a.ai", PATIENT), model)
    files = [file.read_bytes() for file in (stage.folder / "store").rglob("*") if file.is_file()]
    assert not any(b"xylophone" in each for each in files)
