"""Two hundred turns, in which everything happens that can: a provider's prompt cache holds from the first to the last."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from agents import SLOW, Seen, Stage, call, report, says, scripted, seen

from overspill.agent import wording
from overspill.models.protocol import Message, Request
from overspill.testing import ScriptedReply

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
TURNS = 200


class Script:
    """Each turn does something else; after twelve it starts again, with new jobs and outputs."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._turn = 0

    def __call__(self, s: Seen) -> ScriptedReply:
        self._turn += 1
        if self._turn >= TURNS:
            return call("depot__words", count=1) if self._turn == TURNS else report("All seen.")
        round, step = divmod(self._turn - 1, 12)
        release = self._folder / f"release-{round}"
        match step:
            case 0:
                return call("depot__log", lines=1500 + round)
            case 1:
                return call("tool_output", handle=s.handles[-1], extract="ERROR lines")
            case 2:
                return call("get_tool_output", id=s.handles[-1], mode="slice", slice={"start": 0, "length": 200})
            case 3:
                slow = call("depot__slow", until=str(release), result="broken" if round % 2 else "the van is here")
                return says("Looking.", slow, call("depot__words", count=2))
            case 4:
                release.touch()
                return call("wait_for_tool_output")
            case 5:
                read = call("get_tool_output", id=s.ids[-1], mode="raw")
                return says("", read, call("depot__fail"), call("depot__picture"))
            case 6:
                return says("", call("nobody"), call("depot__words"))
            case 7:
                return "Hm."
            case 8:
                entries = [{"id": "1", "tool": "depot__rows", "parameters": {"count": 900}}]
                return call("agent__batch", calls=entries)
            case 9:
                return says("", call("agent__task_status", now="looking"), call("depot__words", count="${nothing}"))
            case 10:
                return ""
            case _:
                return says("", report("too early"), call("depot__words", count=1))


@pytest.mark.promise("cache-safe")
async def test_whatever_happens_each_request_continues_the_one_before(stage: Stage) -> None:
    agent = stage.write("a.ai", f"tools: [depot]\nmaxTurns: {TURNS}\n{SLOW}")
    script = Script(stage.folder)
    model = scripted(script, context_window=4_000_000)
    record = await stage.run(agent, model, within=300)
    assert (record.outcome.status, record.outcome.turns) == ("reported", TURNS)
    assert len(model.requests) == TURNS + 1
    for before, after in pairwise(model.requests):
        assert after.system == before.system
        assert msgspec.json.encode(after.tools) == msgspec.json.encode(before.tools)
        known = in_bytes(before)
        assert in_bytes(after)[: len(known)] == known
    check_notices(model.requests)
    check_story(seen(model)[-1])


def in_bytes(request: Request) -> list[bytes]:
    """Everything before the notice, message by message."""
    return [msgspec.json.encode(message) for message in request.messages[:-1]]


def check_notices(requests: Sequence[Request]) -> None:
    for request in requests:
        *conversation, notice = request.messages
        assert request.has_notice
        assert notice.role == "user"
        assert notice.text.startswith("# System Notice")
        assert not any("# System Notice" in message.text for message in conversation)


def check_story(last: Seen) -> None:
    """All of it did happen."""
    answers = "\n".join(last.answers)
    assert last.answers[-1] == wording.FINAL_TURN
    assert len(set(last.handles)) > 15
    assert len(set(last.ids)) > 15
    notable = (
        "00500 ERROR disk full",
        "the van is here",
        "the van broke down",
        "no paper in the printer",
        "There is no tool 'nobody'",
        "was called without",
    )
    assert [each for each in (*notable, wording.NOTED, wording.NOT_ALONE) if each not in answers] == []
    assert Message("assistant", "Hm.") in last.request.messages
