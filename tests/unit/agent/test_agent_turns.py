"""The turn loop with whatever a model may do: every call is answered, and a run always ends."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
import pytest
from agents import MODEL, Stage, call, report, says, scripted, seen
from extras import OFFERED
from frames import TOO_LARGE

from overspill.agent import RunControl
from overspill.agent.progress import CallEnded, ModelAnswered, ModelSaid, TurnStarted
from overspill.errors import SettingsError
from overspill.models.protocol import ModelError, Response, Usage
from overspill.models.written import UNREADABLE
from overspill.text import tokens
from overspill.types import ToolCall

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("forked_workers")]


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    stage = Stage(tmp_path)
    stage.function("def count(upto: int) -> str:\n    return ' '.join(map(str, range(upto)))\n")
    return stage


def text_of(record) -> str:
    assert record.outcome.report is not None, record.outcome
    return record.outcome.report.content


async def test_an_agent_without_tools_just_answers(tmp_path: Path) -> None:
    model = scripted("Forty-two.")
    stage = Stage(tmp_path)
    record = await stage.run(stage.write("a.ai"), model, question="What is it?")
    assert (text_of(record), record.outcome.report.source) == ("Forty-two.", "text")
    (only,) = seen(model)
    assert only.tools == ["agent__final_report"]
    assert [message.text for message in only.request.messages[:-1]] == ["What is it?"]


async def test_our_estimate_of_each_request_is_on_record(stage: Stage) -> None:
    model = scripted(says("", call("count", upto=2)), Response("Two.", usage=Usage(700, 3)))
    record = await stage.run(stage.write("a.ai", "maxTurns: 2"), model)
    ops = [op for turn in record.tree.children for op in turn.children if op.kind == "model"]
    asked = [
        [request.system, *(message.text for message in request.messages), *map(json.dumps, request.tools)]
        for request in model.requests
    ]
    made = tokens.count('{"upto": 2}').tokens  # the call of the first turn is part of the second request
    estimates = [sum(tokens.count(part).tokens for part in parts) for parts in asked]
    assert [op.attributes["tokensInEstimated"] for op in ops] == [estimates[0], estimates[1] + made]
    assert [op.attributes["tokensIn"] for op in ops] == [0, 700]


async def test_notices_are_never_part_of_the_conversation(stage: Stage) -> None:
    model = scripted(call("count", upto=2), call("count", upto=3), report())
    record = await stage.run(stage.write("a.ai"), model)
    assert [message.role for message in record.messages] == ["user", "assistant", "tool"] * 1 + ["assistant", "tool"] * 2
    assert not [message for message in record.messages if "System Notice" in message.text]
    last = model.requests[-1].messages
    assert sum("System Notice" in message.text for message in last) == 1
    assert "System Notice" in last[-1].text


async def test_plain_text_is_accepted_as_the_report_the_second_time(stage: Stage) -> None:
    model = scripted("I think it is 3.", "It is 3.")
    record = await stage.run(stage.write("a.ai"), model)
    assert (text_of(record), record.outcome.report.source, record.outcome.turns) == ("It is 3.", "text", 2)
    assert "Your last answer was neither a tool call nor a final report." in seen(model)[1].notice


async def test_a_call_written_as_text_is_still_a_call(stage: Stage) -> None:
    written = '```json\n{"name": "count", "arguments": {"upto": 3}}\n```'
    model = scripted("Let me see.", written, lambda s: report(s.answers[-1]))
    assert text_of(await stage.run(stage.write("a.ai"), model)) == "0 1 2"


async def test_an_empty_answer_gets_a_remark_and_is_left_out_of_the_conversation(stage: Stage) -> None:
    model = scripted("", lambda s: s.wrapped("Here."))
    record = await stage.run(stage.write("a.ai"), model)
    assert (text_of(record), record.outcome.report.source) == ("Here.", "wrapper")
    assert "Your last answer was empty." in seen(model)[1].notice
    assert [message.role for message in record.messages] == ["user", "assistant", "tool"]


async def test_a_report_sent_with_calls_is_not_accepted_but_the_calls_run(stage: Stage) -> None:
    model = scripted(lambda s: says(s.wrapped("Too soon."), call("count", upto=2)), lambda s: report(s.answers[0]))
    record = await stage.run(stage.write("a.ai"), model)
    assert seen(model)[1].answers == [
        "0 1",
        "Your final report was not accepted: you sent it with other tool calls, before you saw their results. "
        "Read the results, then submit the report again by itself.",
    ]
    assert text_of(record) == "0 1"


async def test_a_report_sent_with_a_status_is_accepted(stage: Stage) -> None:
    model = scripted(says("", call("agent__task_status", now="Reporting"), report("both")))
    record = await stage.run(stage.write("a.ai"), model)
    assert text_of(record) == "both"
    assert [event.text for event in stage.events if isinstance(event, ModelSaid)] == ["Reporting"]


async def test_a_report_that_does_not_fit_its_schema_is_asked_for_again(stage: Stage) -> None:
    agent = stage.write("a.ai", "output: {format: json, schema: {type: object, required: [n]}}\nmaxTurns: 2")
    model = scripted(report({}), report("no JSON"), report({"n": 1}))
    record = await stage.run(agent, model)
    assert record.outcome.report is not None
    assert record.outcome.report.value == {"n": 1}
    assert "it does not match its JSON Schema: $: 'n' is a required property." in seen(model)[1].answers[0]
    assert seen(model)[0].request.tools[-1]["parameters"]["properties"]["content"]["required"] == ["n"]


@pytest.mark.promise("failures-are-answers")
async def test_calls_that_cannot_be_made_are_answered_and_on_record(stage: Stage) -> None:
    calls = says("", call("cuont", upto=1), call("count"), ToolCall("x", "count", {UNREADABLE: "{"}), call("count", upto="many"))
    model = scripted(calls, report())
    record = await stage.run(stage.write("a.ai"), model)
    assert seen(model)[1].answers == [
        f"There is no tool 'cuont'. Known tools: count, {', '.join(OFFERED)}, agent__task_status, "
        "agent__batch, agent__final_report.",
        "count was called without upto. It takes: upto, looking_for (optional).",
        "The arguments of count are not a JSON object. It takes: upto, looking_for (optional).",
        "Invalid arguments for count: Expected `int`, got `str` - at `$.upto`.",
    ]
    ops = [op for op in record.tree.children[0].children if op.kind == "tool"]
    assert sorted((op.name, op.status) for op in ops) == [("count", "failed")] * 3 + [("cuont", "failed")]


async def test_more_calls_than_allowed_are_not_run_in_batches_either(stage: Stage) -> None:
    agent = stage.write("a.ai", "maxToolCallsPerTurn: 2")
    entries = [{"id": str(n), "tool": "count", "parameters": {"upto": n}} for n in range(1, 4)]
    model = scripted(
        says("", *(call("count", upto=n) for n in range(1, 4))),
        call("agent__batch", calls=entries),
        report(),
    )
    await stage.run(agent, model)
    refused = "Not run: you can make at most 2 tool calls in one turn (maxToolCallsPerTurn). Call it again in the next turn."
    assert seen(model)[1].answers == ["0", "0 1", refused]
    results = json.loads(seen(model)[2].answers[-1])["results"]
    assert [result.get("output") or result["error"]["message"] for result in results] == ["0", "0 1", refused]


async def test_a_batch_that_cannot_be_read_is_answered(stage: Stage) -> None:
    model = scripted(call("agent__batch", calls="count"), report())
    await stage.run(stage.write("a.ai"), model)
    assert seen(model)[1].answers == ["Invalid arguments for agent__batch: Expected `array`, got `str` - at `$.calls`."]


async def test_a_batch_whose_calls_all_went_to_the_background_is_no_news(stage: Stage) -> None:
    stage.function(
        "from overspill.calls.job import current\n"
        "from waiting import until\n"
        "async def nap() -> str:\n"
        "    await until(lambda: current.get().background)\n"
        "    return 'rested'\n"
    )
    agent = stage.write("a.ai", "asyncTimeoutSecs: 0.01")
    batch = call("agent__batch", calls=[{"id": "1", "tool": "nap", "parameters": {}}])
    model = scripted(batch, lambda s: report(s.notice))
    record = await stage.run(agent, model)
    assert "### Ready (1)\n- nap" in text_of(record)


async def test_an_agent_that_fails_is_a_failed_tool(stage: Stage) -> None:
    stage.write("below.ai", "models: test/below\nmaxTurns: 1")
    agent = stage.write("a.ai", "agents: below.ai")
    below = scripted(ModelError("test/below: no credit.", is_transient=False), "", name="test/below")
    model = scripted(call("agent__below", prompt="x"), call("agent__below", prompt="x"), report())
    record = await stage.run(agent, model, below)
    assert seen(model)[2].answers == [
        "The agent below ended without a report. test/below: no credit.",
        "The agent below ended without a report. The model gave no final report, even when asked for nothing else.",
    ]
    assert [each.outcome.status for each in record.below] == ["failed", "unreported"]


async def test_without_async_an_agent_below_cannot_be_started_in_the_background(stage: Stage) -> None:
    stage.write("below.ai", "models: test/below")
    agent = stage.write("a.ai", "agents: below.ai\nasync: false")
    model = scripted(call("agent__below", prompt="x", **{"async": True}), lambda s: report(s.answers[-1]))
    record = await stage.run(agent, model, scripted(report("below"), name="test/below"))
    assert text_of(record) == "below"
    tool = next(tool for tool in model.requests[0].tools if tool["name"] == "agent__below")
    assert list(tool["parameters"]["properties"]) == ["prompt", "looking_for"]


async def test_the_report_of_an_agent_below_passes_the_gate(stage: Stage) -> None:
    stage.write("below.ai", "models: test/below")
    agent = stage.write("a.ai", "agents: below.ai")
    model = scripted(call("agent__below", prompt="x"), report())
    record = await stage.run(agent, model, scripted(report("long " * 4000), name="test/below"))
    assert seen(model)[1].answers[0].startswith(f"{TOO_LARGE} (20000 bytes, 1 line")
    assert record.totals.kept == 1


async def test_the_count_of_the_provider_is_what_the_notice_says(stage: Stage) -> None:
    agent = stage.write("a.ai", "contextWindow: 10000\nmaxOutputTokens: 100")
    first = Response("", (call("count", upto=1),), Usage(4000, 1000), MODEL)
    model = scripted(first, report())
    record = await stage.run(agent, model)
    assert "Your context window is 50% full." in seen(model)[1].notice
    assert (record.totals.input_tokens, record.totals.output_tokens) == (4000, 1000)
    assert [event.percent for event in stage.events if isinstance(event, TurnStarted)][1] == 50


async def test_a_question_that_fills_the_window_ends_the_run_before_any_request(stage: Stage) -> None:
    agent = stage.write("a.ai", "contextWindow: 2000\nmaxOutputTokens: 100")
    model = scripted(report())
    record = await stage.run(agent, model, question="word " * 3000)
    assert (record.outcome.status, record.outcome.why, model.requests) == (
        "failed",
        "The prompt, the tools and the question fill the whole context window of 2000 tokens. "
        "Shorten the question, offer fewer tools, or use a model with a larger window.",
        [],
    )


async def test_settings_of_the_model_reach_it(stage: Stage) -> None:
    agent = stage.write("a.ai", "temperature: 0.5\ntopP: 0.9\nmaxOutputTokens: 77")
    model = scripted(report())
    await stage.run(agent, model)
    (request,) = model.requests
    assert (request.temperature, request.top_p, request.max_output_tokens) == (0.5, 0.9, 77)


async def test_a_model_that_does_not_answer_in_time_has_failed(stage: Stage) -> None:
    agent = stage.write("a.ai", "llmTimeout: 0.05\nmaxRetries: 0")
    record = await stage.run(agent, scripted(report(), gate=anyio.Event()))
    assert (record.outcome.status, record.outcome.why) == ("failed", "test/m did not answer within 0.05 s (llmTimeout).")
    assert [event.error for event in stage.events if isinstance(event, ModelAnswered)] == [record.outcome.why]


async def test_a_model_that_cannot_be_opened_is_skipped_with_a_warning(stage: Stage) -> None:
    agent = stage.write("a.ai", "models: [openai/gpt-4.1, test/m]")
    record = await stage.run(agent, scripted(report()))
    assert record.outcome.status == "reported"
    assert record.warnings == ["No API key for 'openai': set OPENAI_API_KEY, or give the endpoint 'openai' a key."]
    assert [event.warning for event in stage.events if isinstance(event, ModelSaid)] == [True]


@pytest.mark.parametrize(
    ("frontmatter", "message"),
    [
        (
            "models: builtin/lexical",
            "builtin/lexical only extracts from stored outputs and cannot be asked. Name a model, as provider/model.",
        ),
        ("models: []", "No model is configured. Add `models: [provider/model]` to the agent file, or use --model."),
        ("models: nobody", "models has 'nobody' in a.ai. Name the provider too: provider/model, like openai/gpt-4.1-mini."),
        (
            "contextWindow: 1000\nmaxOutputTokens: 900",
            "maxOutputTokens (900) and contextBuffer (256) use up the whole context window of 1000 tokens. "
            "Lower them, or raise contextWindow.",
        ),
        (
            "tools: [cuont]",
            "a.ai names the tool 'cuont', but your settings have it in neither `mcpServers` nor `functions`. Did you mean "
            "'count'? An agent file cannot define tools: add it to your own config file, or use --function.",
        ),
    ],
)
async def test_mistakes_that_keep_an_agent_from_starting_come_first(stage: Stage, frontmatter: str, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        await stage.run(stage.write("a.ai", frontmatter), scripted(report()))
    assert str(error.value) == message


async def test_a_mistake_in_an_agent_below_shows_before_the_first_turn(stage: Stage) -> None:
    stage.write("below.ai", "models: nobody/x")
    model = scripted(report())
    with pytest.raises(SettingsError, match="No model provider is called 'nobody'"):
        await stage.run(stage.write("a.ai", "agents: below.ai"), model)
    assert model.requests == []


@pytest.mark.parametrize("name", ["tool_output", "agent__x", "no spaces", "x" * 65])
async def test_a_function_cannot_have_a_name_of_ours_or_one_that_no_provider_takes(stage: Stage, name: str) -> None:
    stage.functions = {name: stage.functions["count"]}
    with pytest.raises(SettingsError, match=r"^A function cannot be named"):
        await stage.run(stage.write("a.ai"), scripted(report()))


async def test_a_name_that_is_both_a_function_and_a_server_is_refused(stage: Stage) -> None:
    stage.settings["mcpServers"] = {"count": {"command": "x"}}
    with pytest.raises(SettingsError, match=r"^count is both a function and a server in your settings\. Rename one of them\.$"):
        await stage.run(stage.write("a.ai", "tools: count"), scripted(report()))


async def test_functions_in_the_config_are_offered_only_to_agents_that_name_them(stage: Stage) -> None:
    stage.settings["functions"], stage.functions = stage.functions, {}
    named, unnamed = scripted(report()), scripted(report())
    await stage.run(stage.write("a.ai", "tools: count"), named)
    await stage.run(stage.write("b.ai"), unnamed)
    assert (seen(named)[0].tools[0], seen(unnamed)[0].tools) == ("count", ["agent__final_report"])


async def test_an_observer_sees_each_call(stage: Stage) -> None:
    model = scripted(says("", call("count", upto=9000), call("count", upto="x")), report())
    await stage.run(stage.write("a.ai"), model)
    first, second, _ = (event for event in stage.events if isinstance(event, CallEnded))
    kept, failed = (first, second) if first.kept else (second, first)
    assert kept.kept is not None
    assert kept.kept.reason == "size_cap"
    assert failed.failed.startswith("Invalid arguments for count")


async def test_outputs_kept_in_a_batch_are_reserved_once(stage: Stage) -> None:
    agent = stage.write("a.ai", "contextWindow: 10000\nmaxOutputTokens: 100")
    entries = [{"id": str(n), "tool": "count", "parameters": {"upto": 1500}} for n in range(2)]
    model = scripted(call("agent__batch", calls=entries), report())
    record = await stage.run(agent, model)
    assert (record.totals.kept, record.outcome.early) == (0, "")


async def test_an_abort_before_anything_ran_leaves_an_empty_record(stage: Stage) -> None:
    control = RunControl()
    control.abort()
    record = await stage.run(stage.write("a.ai"), scripted(report()), control=control)
    assert (record.outcome.status, record.messages, record.tree.children) == ("aborted", [], ())


async def test_warnings_about_settings_reach_the_observer(stage: Stage) -> None:
    record = await stage.run(stage.write("a.ai", "asyncToolTTL: 3600"), scripted(report()))
    assert record.warnings == ["asyncToolTTL in a.ai has no effect: outputs live as long as the session."]


async def test_a_report_that_looks_like_a_call_is_the_report(stage: Stage) -> None:
    agent = stage.write("a.ai", "output: {format: json}")
    looks = '{"name": "count", "arguments": {"upto": 3}}'
    record = await stage.run(agent, scripted("Hm.", lambda s: s.wrapped(looks, "json")))
    assert record.outcome.report is not None
    assert record.outcome.report.value == {"name": "count", "arguments": {"upto": 3}}


async def test_functions_of_one_file_share_its_state(stage: Stage) -> None:
    (stage.folder / "box.py").write_text(
        "kept = []\ndef put(x: str) -> str:\n    kept.append(x)\n    return 'put'\ndef look() -> str:\n    return str(kept)\n"
    )
    (stage.folder / "link.py").symlink_to(stage.folder / "box.py")
    stage.functions |= {"put": f"{stage.folder}/box.py:put", "look": f"{stage.folder}/link.py:look"}
    model = scripted(call("put", x="A"), call("look"), report())
    await stage.run(stage.write("a.ai"), model)
    await stage.run(stage.write("a.ai"), other := scripted(call("look"), report()))
    assert (seen(model)[2].answers, seen(other)[1].answers) == (["put", "['A']"], ["[]"])


async def test_calls_with_the_same_id_are_told_apart(stage: Stage) -> None:
    entries = [{"id": str(number), "tool": "count", "parameters": {"upto": number}} for number in (1, 2, 3)]
    twice = says("", ToolCall("same", "agent__batch", {"calls": entries}), ToolCall("same", "count", {"upto": 4}))
    model = scripted(twice, report())
    record = await stage.run(stage.write("a.ai"), model)
    batch, single = seen(model)[1].answers
    assert ([each["output"] for each in json.loads(batch)["results"]], single) == (["0", "0 1", "0 1 2"], "0 1 2 3")
    assert [message.call_id for message in record.messages if message.role == "tool"][:2] == ["same", "same-2"]
    assert record.answers[1, "same-2"] == "0 1 2 3"
