"""The stories of tests/flows/agents with a real model. It may do anything; what holds whatever it does is checked here."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from agents import SLOW, Say, Seen, Stage, call, says
from frames import TOO_LARGE
from live_model import LiveModel
from opening import Opening
from waiting import until

from overspill.agent import RunControl, RunRecord
from overspill.agent.record import read_snapshot, write_snapshot
from overspill.models.endpoints import Endpoint
from overspill.models.facts import ModelFacts
from overspill.models.opening import open_model
from overspill.models.protocol import Model, Response
from overspill.record.op_tree import Op

pytestmark = [pytest.mark.live, pytest.mark.anyio]

WINDOW = 6144
OUTPUT = 192
LONG = 1800.0  # seconds; the model may share a small machine
SERVER = {"command": sys.executable, "args": [str(Path(__file__).parents[1] / "agent_server.py")]}


class Play:
    """A stage whose agents ask the live model."""

    def __init__(self, model: LiveModel, folder: Path) -> None:
        settings = model.settings(window=WINDOW, output=OUTPUT)
        self.real = open_model(model.target, model.endpoints(settings), {model.target: ModelFacts(WINDOW, OUTPUT)})
        self.opening = Opening(self.real)
        self.folder = folder
        self.stage = Stage(folder, SERVER)
        self.stage.settings |= {"models": model.target, "extractionModel": None, "maxRetries": 0}
        self.stage.settings |= {"maxTurns": 4, "toolResponseMaxBytes": 1500}

    async def run(
        self, frontmatter: str, *moves: Say, before: tuple[Model, ...] = (), control: RunControl | None = None
    ) -> RunRecord:
        """The agent begins with these moves; what comes after them is the real model's. `before` are models asked first."""
        agent = self.stage.write("a.ai", frontmatter)
        self.opening = Opening(self.real, *moves)
        targets = [model.name for model in (*before, self.opening)]
        line = {"models": targets}
        record = await self.stage.run(agent, *before, self.opening, control=control, command_line=line, within=LONG)
        check(record, self.folder / "run.json.gz")
        return record


@pytest.fixture
def play(model: LiveModel, tmp_path: Path) -> Iterator[Play]:
    play = Play(model, tmp_path)
    yield play
    (tmp_path / "release").touch()  # a tool that is waited for ends with its test


def check(record: RunRecord, path: Path) -> None:
    """Every call has its answer, notices stay out, every request is on record with what it cost, and the run has an end."""
    waiting: list[str] = []
    for message in record.messages:
        if message.role == "tool":
            waiting.remove(message.call_id)
        else:
            assert waiting == []
            waiting = [call.id for call in message.calls]
        assert "# System Notice" not in message.text or message.role != "user"
    write_snapshot(path, record)
    found = read_snapshot(path)
    requests = [op for turn in found["opTree"]["turns"] for op in turn["ops"] if op["kind"] == "model"]
    cut_short = record.outcome.status == "aborted"  # a request that was cancelled has no answer to record
    assert len(requests) >= record.outcome.turns - cut_short > 0
    assert found["totals"]["input_tokens"] == sum(
        entry["tokens"]["inputTokens"] for entry in found["accounting"] if entry["type"] == "llm"
    )
    assert (record.outcome.report is not None) == (record.outcome.status == "reported")
    for below in record.below:
        check(below, path)


def ended(record: RunRecord) -> bool:
    return record.outcome.status in ("reported", "unreported")


def reasons(record: RunRecord) -> list[str]:
    ops = [op for turn in record.tree.children for op in turn.children]
    return [op.attributes["tool_output_reason"] for op in ops if "tool_output_reason" in op.attributes]


def extractions(record: RunRecord) -> list[Op]:
    return [op for turn in record.tree.children for op in turn.children if op.kind == "session"]


def extract(what: str) -> Say:
    return lambda s: call("tool_output", handle=s.handles[-1], extract=what)


async def test_a_large_output_is_kept_asked_and_reported(play: Play) -> None:
    record = await play.run("tools: [{depot: [log]}]", call("depot__log", lines=100), extract("What is in the log?"))
    assert ended(record)
    assert reasons(record)[0] == "size_cap"
    assert all(len(message.text) < 8000 for message in record.messages)


async def test_one_huge_line_is_extracted_chunk_by_chunk(play: Play) -> None:
    record = await play.run("tools: [{depot: [rows]}]", call("depot__rows", count=150), extract("Which parcel is lost?"))
    assert ended(record)
    first = extractions(record)[0]
    assert first.attributes["strategy"] in ("full-chunked", "builtin", "truncate")
    assert len(first.children) >= 1


async def test_a_text_of_many_lines_is_read_and_grepped(play: Play) -> None:
    record = await play.run("tools: [{depot: [log]}]", call("depot__log", lines=1500), extract("What went wrong?"))
    assert ended(record)
    assert any(seen.tools == ["Read", "Grep"] for seen in play.opening.asked)
    assert len(extractions(record)[0].children) >= 1


async def test_with_the_size_cap_off_the_window_decides(play: Play) -> None:
    both = [call("depot__log", lines=120), call("depot__log", lines=2000)]
    record = await play.run("tools: [{depot: [log]}]\ntoolResponseMaxBytes: 0\nasync: false", *both)
    assert ended(record)
    passed, kept = [message.text for message in record.messages if message.role == "tool"][:2]
    assert len(passed) == 120 * 21
    assert kept.startswith(f"{TOO_LARGE} (42004 bytes")
    assert reasons(record)[0] == "token_budget"


async def test_parallel_results_share_what_is_left(play: Play) -> None:
    three = says("", *(call("depot__words", count=500) for _ in range(3)))
    record = await play.run("tools: [{depot: [words]}]\ntoolResponseMaxBytes: 0", three)
    assert ended(record)
    assert "reserve_failed" in reasons(record)


async def test_a_slow_tool_is_announced(play: Play) -> None:
    release = play.folder / "release"
    both = says("", call("depot__slow", until=str(release), result="the van is here"), call("depot__words", count=2))

    def wait(s: Seen) -> Response:
        assert "### Running (1)\n- depot__slow" in s.notice
        release.touch()
        return says("", call("wait_for_tool_output"))

    record = await play.run(f"tools: [{{depot: [slow, words]}}]\n{SLOW}", both, wait)
    assert ended(record)
    assert "### Ready (1)\n- depot__slow" in play.opening.asked[0].notice


async def test_when_all_tools_are_slow_the_model_is_asked_when_one_has_ended(play: Play) -> None:
    slow = [call("depot__slow", until=str(play.folder / name)) for name in ("one", "release")]
    records: list[RunRecord] = []

    async def run() -> None:
        records.append(await play.run("tools: [{depot: [slow]}]\nasyncTimeoutSecs: 0.05\nmaxTurns: 2", says("", *slow)))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await until(lambda: len([event for event in play.stage.events if getattr(event, "job", "")]) == 2)
        assert play.opening.asked == []
        (play.folder / "one").touch()
    assert ended(records[0])


async def test_two_agents_work_in_the_background(play: Play) -> None:
    for name in ("north", "south"):
        play.stage.write(f"{name}.ai", f"description: Knows the {name}.", f"You know the {name}. Answer in one word.")
    now = {"async": True}
    both = says("", call("agent__north", prompt="Is there snow?", **now), call("agent__south", prompt="Is there sun?", **now))
    record = await play.run("agents: [north.ai, south.ai]\nmaxTurns: 3", both, call("wait_for_tool_output"))
    assert ended(record)
    assert sorted(below.agent for below in record.below)[:2] == ["north", "south"]


async def test_a_batch_may_ask_a_kept_output(play: Play) -> None:
    def batch(s: Seen) -> Response:
        asked = {"id": "1", "tool": "tool_output", "parameters": {"handle": s.handles[-1], "extract": "errors"}}
        other = {"id": "2", "tool": "depot__words", "parameters": {"count": 2}}
        return says("", call("agent__batch", calls=[asked, other]))

    record = await play.run("tools: [{depot: [log, words]}]", call("depot__log", lines=100), batch)
    assert ended(record)
    (_, answer) = [message.text for message in record.messages if message.role == "tool"][:2]
    assert "ABSTRACT FROM TOOL OUTPUT depot__log WITH HANDLE" in answer
    assert "word0 word1" in answer


async def test_where_a_model_cannot_be_reached_the_next_one_answers(play: Play) -> None:
    nobody = {"gone": Endpoint(kind="openai-compatible", base_url="http://127.0.0.1:9/v1")}
    gone = open_model("gone/model", nobody, {"gone/model": ModelFacts(WINDOW, OUTPUT)})
    record = await play.run("maxTurns: 1", before=(gone,))
    assert ended(record)
    first, second = record.tree.children[0].children[:2]
    assert [(op.name, op.status) for op in (first, second)] == [("gone/model", "failed"), (play.real.name, "ok")]


async def test_in_the_last_turn_only_the_report_is_offered(play: Play) -> None:
    record = await play.run("tools: [{depot: [words]}]\nmaxTurns: 2", call("depot__words", count=3))
    assert ended(record)
    assert record.outcome.early == "there are no turns left."
    assert all(seen.tools == ["agent__final_report"] for seen in play.opening.asked)


async def test_the_model_begins_by_itself(play: Play) -> None:
    record = await play.run("tools: [{depot: [log]}]\nmaxTurns: 3")
    assert ended(record)
    assert play.opening.asked[0].notice.startswith("# System Notice\n\nThis is turn 1 of 3.")


async def test_a_stop_ends_with_a_final_turn(play: Play) -> None:
    control = RunControl()

    def stop(_: Seen) -> Response:
        control.stop()
        return says("", call("depot__words", count=1))

    record = await play.run("tools: [{depot: [words]}]", stop, control=control)
    assert ended(record)
    assert record.outcome.early == "the user asked to stop."


async def test_an_abort_in_the_middle_of_a_request_leaves_a_record(play: Play) -> None:
    control = RunControl()
    records: list[RunRecord] = []

    async def run() -> None:
        records.append(await play.run("tools: [{depot: [words]}]", call("depot__words", count=1), control=control))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await until(lambda: play.opening.asked)
        control.abort()
    assert (records[0].outcome.status, records[0].outcome.why) == ("aborted", "The run was aborted.")
    assert [message.role for message in records[0].messages] == ["user", "assistant", "tool"]
