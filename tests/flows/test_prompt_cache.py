"""What Overspill adds to a prompt stays as it was, byte for byte, in sessions and in the proxy, and from process to process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import anyio
import pytest
from wire import Served, Wire, config, every

from overspill import Session, Settings
from overspill.retrieval.definitions import Format
from overspill.types import ToolCall

TURNS = 200
SLOW = {name: {"asyncTimeoutSecs": 0.05} for name in ("slow", "wait")}
ONLY_SLOW: dict[str, Any] = {"asyncTimeoutSecs": 100, "truncation": {"overrides": SLOW}}
"""On a busy machine, every tool takes longer than 0.05 seconds now and then."""
AGENT = """
import json, sys
from pathlib import Path
from typing import get_args

import anyio

from overspill import Session, Settings
from overspill.agent import Sources, load_agent, run_agent
from overspill.models.protocol import Response
from overspill.retrieval.definitions import Format
from overspill.settings import Layer
from overspill.testing import ScriptedModel
from overspill.types import ToolCall

folder = Path(sys.argv[1])
names = ["first", "second", "third", "fourth", "fifth"]
for name in names:
    folder.joinpath(f"{name}.py").write_text(f"def {name}(beta: int, alpha: str = '', *, gamma: bool = False) -> str: 'Counts.'")
path = folder / "agent.ai"
path.write_text(f"---\\ntools: [{', '.join(names)}]\\n---\\nYou count.")
functions = {name: f"{folder / name}.py:{name}" for name in names}
model = ScriptedModel(lambda _: Response("", (ToolCall("1", "agent__final_report", {"content": "x"}),)), name="test/m")

async def main():
    async with Session(Settings(storeDir=str(folder / "store"))) as session:
        print(json.dumps([session.tools(format) for format in get_args(Format)]))
    agent = load_agent(path, Sources({}, {}, (Layer("config", {"models": "test/m"}),)))
    await run_agent(agent, "How many?", functions=functions, models={"test/m": model}, environ={})
    print(json.dumps(model.requests[0].tools))

anyio.run(main)
"""


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.promise("cache-safe")
async def test_a_session_offers_the_same_tools_and_takes_nothing_back_for_two_hundred_turns(tmp_path: Path) -> None:
    async with Session(Settings(storeDir=str(tmp_path), **ONLY_SLOW)) as session:
        offered = [json.dumps(session.tools(format)) for format in get_args(Format)]
        release = anyio.Event()

        async def execute(call: ToolCall) -> Any:
            match call.name:
                case "slow":
                    await release.wait()
                    return "late"
                case "fail":
                    raise RuntimeError("no paper")
                case "large":
                    return f"line of {call.id}\n" * 3000
                case _:
                    return "small"

        given: list[tuple[Any, str]] = []
        handle = ""
        for turn in range(TURNS):
            reading = ToolCall(f"{turn}-4", "get_tool_output", {"id": handle, "mode": "slice", "slice": {"start": 0}})
            names = ("small", "large", "fail", "slow" if turn % 10 == 0 else "small")
            calls = [*(ToolCall(f"{turn}-{place}", name, {}) for place, name in enumerate(names)), reading]
            replies = await session.turn(calls, execute)
            handle = replies[1].kept.handle if replies[1].kept else ""
            given += [(reply, reply.text) for reply in replies]
            assert session.notice() not in [text for _, text in given]
            assert [json.dumps(session.tools(format)) for format in get_args(Format)] == offered
        assert [reply.text for reply, _ in given] == [text for _, text in given]
        assert len([reply for reply, _ in given if reply.kept]) >= TURNS
        assert len([reply for reply, _ in given if reply.job]) == TURNS // 10
        release.set()


@pytest.mark.slow
@pytest.mark.no_cover
@pytest.mark.promise("cache-safe")
@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
def test_the_proxy_lists_the_same_tools_for_two_hundred_turns(tmp_path: Path, modern: bool) -> None:
    with Served([config(every())], tmp_path, modern=modern, settings=ONLY_SLOW) as wire:
        wire.hello()
        wire.stay()
        listed, kinds = list_tools(wire), set[str]()
        for turn in range(TURNS):
            kinds.add(take_turn(wire, turn))
            assert list_tools(wire) == listed
        assert kinds == {"read", "slow", "waited", "refused"}
        assert not [each for each in wire.received if each.get("method", "").endswith("list_changed")]


def list_tools(wire: Wire) -> str:
    return json.dumps(wire.result("tools/list")["tools"])


def take_turn(wire: Wire, turn: int) -> str:
    """What happened."""
    match turn % 4:
        case 0:
            result = wire.call("lines", {"count": 1000 + turn})
            (link,) = [block["uri"] for block in result["content"] if block["type"] == "resource_link"]
            read = wire.call("get_tool_output", {"id": link.removeprefix("overspill://"), "mode": "slice", "slice": {"start": 0}})
            return "failed" if read.get("isError") else "read"
        case 1:
            text = wire.text("wait", {"until": f"word {turn}"})
            return "slow" if 'mode="wait"' in text else text
        case 2:
            wire.call("release", {"word": f"word {turn - 1}"})
            text = wire.text("wait_for_tool_output")
            return "waited" if "- wait" in text or "No async tools" in text else text
        case _:
            answer = wire.request("tools/call", {"name": "fail", "arguments": {"code": -32000, "message": "no"}})
            return "refused" if "error" in answer else "answered"


@pytest.mark.slow
@pytest.mark.promise("cache-safe")
def test_definitions_are_the_same_in_every_process(tmp_path: Path) -> None:
    written: set[bytes] = set()
    for seed in ("1", "2", "3"):
        folder = tmp_path / seed
        folder.mkdir()
        environ = {**os.environ, "PYTHONHASHSEED": seed, "HOME": str(folder), "XDG_STATE_HOME": str(folder)}
        ran = subprocess.run([sys.executable, "-c", AGENT, folder], env=environ, capture_output=True, check=False)
        assert ran.returncode == 0, ran.stderr.decode()
        assert ran.stdout.count(b"\n") == 2
        written.add(ran.stdout)
    assert len(written) == 1
