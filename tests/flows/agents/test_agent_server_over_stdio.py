"""A server that is started with the run, over stdio, and what becomes of a run whose server does not start."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from agents import Stage, call, report, says, scripted, seen

from overspill.errors import ServerError, SettingsError

pytestmark = pytest.mark.anyio

SERVER = Path(__file__).parents[2] / "agent_server.py"
EVERY = Path(__file__).parents[2] / "every_server.py"
RAW = Path(__file__).parents[2] / "servers" / "raw.py"


async def test_a_server_is_started_with_the_run_and_its_refusals_are_answers(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"command": sys.executable, "args": [str(SERVER)], "tools": ["words", "fail", "picture"]})
    agent = stage.write("a.ai", "tools: [{depot: [words, fail, picture]}]")
    calls = says("", call("depot__words", count="many"), call("depot__fail"), call("depot__picture"), call("depot__log"))
    model = scripted(calls, report())
    await stage.run(agent, model)
    first, second = seen(model)
    assert first.tools[:3] == ["depot__words", "depot__fail", "depot__picture"]
    bad, failed, picture, unknown = second.answers
    assert "count" in bad
    assert failed == "Error executing tool fail: no paper in the printer"
    assert picture == "[image/png: not shown, because this model receives only text]"
    assert unknown.startswith(
        "There is no tool 'depot__log'. Known tools: depot__words, depot__fail, depot__picture, get_tool_output, "
    )


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize(
    ("content", "structured", "answer"),
    [
        (["2 rows"], {"rows": [1, 2]}, '2 rows\n{"rows":[1,2]}'),
        ([], {"rows": [1, 2]}, '{"rows":[1,2]}'),
        (['{"rows": [1, 2]}'], {"rows": [1, 2]}, '{"rows": [1, 2]}'),
    ],
)
async def test_what_a_tool_says_in_structure_reaches_the_model_once(
    tmp_path: Path, content: list[str], structured: dict[str, object], answer: str
) -> None:
    stage = Stage(tmp_path, {"command": sys.executable, "args": [str(EVERY)]})
    result = {"content": [{"type": "text", "text": text} for text in content], "structuredContent": structured}
    model = scripted(call("depot__say", result=result), report())
    await stage.run(stage.write("a.ai", "tools: [{depot: [say]}]"), model)
    assert seen(model)[1].answers == [answer]


async def test_how_far_a_tool_is_stands_in_the_notice(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"command": sys.executable, "args": [str(EVERY)]})
    slow = "asyncTimeoutSecs: 100\ntruncation: {overrides: {depot__wait: {asyncTimeoutSecs: 0.05}}}"
    model = scripted(
        says("", call("depot__wait", until="told"), call("depot__seen")),
        call("depot__seen"),
        call("depot__release", word="told"),
        call("wait_for_tool_output"),
        report(),
    )
    await stage.run(stage.write("a.ai", f"tools: [depot]\n{slow}"), model)
    third = seen(model)[2]
    assert re.search(rf"- depot__wait \(id: {third.ids[0]}, running [\d.]+s, 1 of 4: warming up\)\n", third.notice)


async def test_a_server_that_does_not_start_ends_the_run_with_what_it_said(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"command": sys.executable, "args": ["-c", "import sys; sys.exit('no licence')"]})
    agent = stage.write("a.ai", "tools: [depot]")
    with pytest.raises(ServerError, match="no licence"):
        await stage.run(agent, scripted(report()))


async def test_a_server_that_does_not_list_its_tools_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    stage = Stage(tmp_path, {"command": sys.executable, "args": [str(RAW), "locked"]})
    with pytest.raises(ServerError) as error:
        await stage.run(stage.write("a.ai", "tools: [depot]"), scripted(report()))
    assert str(error.value) == "The server depot refused to list its tools: The database is locked."


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ({}, "Server 'depot' in your settings needs either a command or a url."),
        (
            {"command": "x", "disabled": True},
            "The server depot is disabled in your settings. Enable it, or remove it from the agent file.",
        ),
    ],
)
async def test_a_server_that_cannot_be_used_is_a_mistake_in_the_settings(
    tmp_path: Path, server: dict[str, object], message: str
) -> None:
    stage = Stage(tmp_path)
    stage.settings["mcpServers"] = {"depot": server}
    with pytest.raises(SettingsError) as error:
        await stage.run(stage.write("a.ai", "tools: [depot]"), scripted(report()))
    assert str(error.value) == message


async def test_a_tool_that_a_server_does_not_have_is_a_mistake_in_the_agent_file(stage: Stage) -> None:
    with pytest.raises(SettingsError) as error:
        await stage.run(stage.write("a.ai", "tools: [{depot: [logs]}]"), scripted(report()))
    assert str(error.value) == (
        "a.ai names the tool 'logs', which the server depot does not have. It has fail, log, picture, rows, slow, words."
    )


@pytest.mark.parametrize("name", ["agent", "agent__mail"])
async def test_a_server_whose_tools_would_be_called_like_the_agents_own_is_to_be_renamed(tmp_path: Path, name: str) -> None:
    stage = Stage(tmp_path)
    stage.settings["mcpServers"] = {name: {"command": sys.executable, "args": [str(EVERY)]}}
    with pytest.raises(SettingsError) as error:
        await stage.run(stage.write("a.ai", f"tools: [{{{name}: [say]}}]"), scripted(report()))
    assert str(error.value) == (
        f"The tool say of the server {name} would be called {name}__say, but names that begin with agent__ are reserved. "
        "Rename the server in your settings."
    )


async def test_a_mistake_in_the_tools_of_an_agent_below_shows_before_the_run(stage: Stage) -> None:
    stage.write("below.ai", "tools: [{depot: [logs]}]")
    model = scripted(report())
    with pytest.raises(SettingsError, match=r"^below\.ai names the tool 'logs', which the server depot does not have\. It has "):
        await stage.run(stage.write("a.ai", "agents: [below.ai]"), model)
    assert model.requests == []


async def test_names_are_made_fit_for_every_provider_and_stay_different(tmp_path: Path, depot: str) -> None:
    stage = Stage(tmp_path)
    stage.settings["mcpServers"] = {"my depot": {"url": depot}, "my.depot": {"url": depot}, "long" * 20: {"url": depot}}
    model = scripted(report())
    await stage.run(stage.write("a.ai", f"tools: [{{my depot: [log]}}, {{{'long' * 20}: [log]}}]"), model)
    assert seen(model)[0].tools[:2] == ["my_depot__log", "long" * 16]
    with pytest.raises(SettingsError, match="would both be called my_depot__log"):
        await stage.run(stage.write("b.ai", "tools: [{my depot: [log]}, {my.depot: [log]}]"), scripted(report()))
