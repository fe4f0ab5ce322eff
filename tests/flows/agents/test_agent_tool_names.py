"""A server's tool has its own name in rules, records and references; the model knows it with the server's in front."""

from __future__ import annotations

import pytest
from agents import Seen, Stage, call, report, scripted, seen
from frames import TOO_LARGE

pytestmark = pytest.mark.anyio


def note(s: Seen):
    return call("note", text=f"{{{{output:{s.handles[-1]}#L1-1}}}}")


@pytest.fixture
def keeping(stage: Stage) -> Stage:
    """Only the rule of the tool `log` has so small an output kept, and cut from its beginning."""
    stage.function("def note(text: str) -> str:\n    return f'noted {text}'\n")
    stage.settings["truncation"] = {"overrides": {"log": {"toolResponseMaxBytes": 1000, "strategy": "tail"}}}
    return stage


async def test_rules_and_records_have_a_tools_own_name(keeping: Stage, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "overspill")
    keeping.settings["refs"] = {"allow": [{"from": "depot/log", "to": "/note"}]}
    model = scripted(call("depot__log", lines=100), note, report())
    record = await keeping.run(keeping.write("a.ai", "tools: [depot]"), model)
    kept, noted = seen(model)[-1].answers
    assert kept.startswith(f"{TOO_LARGE} (2100 bytes, 100 lines, 500 tokens), stored as out_")
    assert "00100 parcel scanned" in kept
    assert "00001 parcel scanned" not in kept
    assert noted == "noted 00001 parcel scanned\n"
    tools = [(entry["mcpServer"], entry["command"]) for entry in record.accounting if entry["type"] == "tool"]
    assert tools == [("depot", "log"), ("", "note"), ("agent", "final_report")]
    assert record.accounting[-1]["charactersIn"] == len('{"content":"done"}')
    (logged,) = [line for line in caplog.records if line.name == "overspill"]
    assert vars(logged).items() >= {"tool": "mcp:depot/log", "tool_namespace": "depot", "provider": "mcp:depot"}.items()


async def test_a_reference_that_may_not_be_used_is_told_with_the_names_that_would_permit_it(keeping: Stage) -> None:
    model = scripted(call("depot__log", lines=100), note, report())
    await keeping.run(keeping.write("a.ai", "tools: [depot]"), model)
    assert seen(model)[-1].answers[-1] == (
        "The argument /text cannot be filled in: outputs of depot/log may not be given to note; "
        "the setting refs.allow can permit it. The tool note was not called."
    )
