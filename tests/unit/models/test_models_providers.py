"""The real client library against a real server on loopback that speaks the providers' wire formats."""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anyio
import pytest
from extras import needs
from msgspec.structs import replace
from waiting import until

from overspill.agent.models import TimedModel
from overspill.models.endpoints import Endpoint
from overspill.models.facts import ModelFacts
from overspill.models.opening import open_model
from overspill.models.protocol import Message, Model, ModelError, Request, Response, Usage
from overspill.models.targets import Targets
from overspill.models.written import UNREADABLE
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.settings.keys import ProviderKind
from overspill.types import ToolCall

pytestmark = needs("pydantic_ai", "models")

KEY = "sk-very-secret-0123456789"
GREP = {
    "name": "Grep",
    "description": "Searches the file.",
    "parameters": {"type": "object", "properties": {"pattern": {"type": "string"}}, "required": ["pattern"]},
}
Answer = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Answers requests with what the test queued, in order, and remembers them."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.connections: set[tuple[str, int]] = set()
        self.closing = threading.Event()
        owner = self

        class Exchange(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                owner.bodies.append(json.loads(self.rfile.read(length)))
                owner.headers.append({name.lower(): value for name, value in self.headers.items()})
                owner.paths.append(self.path)
                owner.connections.add(self.client_address)
                owner.answers.pop(0)(self)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Exchange)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def hangs(self, exchange: BaseHTTPRequestHandler) -> None:
        self.closing.wait()

    def dribbles(self, exchange: BaseHTTPRequestHandler) -> None:
        exchange.send_response(200)
        exchange.send_header("content-type", "application/json")
        exchange.send_header("content-length", "1000000")
        exchange.end_headers()
        while not self.closing.wait(0.02):
            try:
                exchange.wfile.write(b" ")
            except OSError:
                return


def says(status: int, body: Any, **headers: str) -> Answer:
    def answer(exchange: BaseHTTPRequestHandler) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        exchange.send_response(status)
        for name, value in {"content-type": "application/json", **headers}.items():
            exchange.send_header(name.replace("_", "-"), value)
        exchange.send_header("content-length", str(len(data)))
        exchange.end_headers()
        exchange.wfile.write(data)

    return answer


def completion(message: dict[str, Any]) -> Answer:
    return says(
        200,
        {
            "id": "c1",
            "object": "chat.completion",
            "created": 1,
            "model": "tiny",
            "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
        },
    )


def chat_call(name: str, arguments: str) -> Answer:
    call = {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}
    return completion({"content": None, "tool_calls": [call]})


def refused(status: int, code: str | None = None, **headers: str) -> Answer:
    error = {"message": f"No: {KEY} and the question about the moon", "type": "some_error", "code": code}
    return says(status, {"error": error}, **headers)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server()
    yield server
    server.close()


def local(server: Server, timeout: float = 10.0, **more: Any) -> Model:
    endpoint = Endpoint(kind="openai-compatible", base_url=server.url, api_key=KEY, timeout=timeout, **more)
    return open_model("local/tiny", {"local": endpoint}, {})


QUESTION = Request("Be brief.", (Message("user", "How far is the moon?"),))


@pytest.mark.anyio
async def test_a_question_is_answered(server: Server) -> None:
    server.answers = [completion({"content": "Far."})]
    model = local(server)
    response = await model.ask(QUESTION)
    assert response == Response("Far.", (), Usage(12, 3, None), "local/tiny")
    assert server.paths == ["/v1/chat/completions"]
    assert server.bodies[0]["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "How far is the moon?"},
    ]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert "tools" not in server.bodies[0]


@pytest.mark.anyio
async def test_what_the_request_limits_is_sent(server: Server) -> None:
    server.answers = [completion({"content": "Far."})]
    model = local(server, headers={"X-Team": "moon"})
    await model.ask(Request("", QUESTION.messages, max_output_tokens=1_000_000, temperature=0.5, top_p=0.9))
    body = server.bodies[0]
    assert (body["max_tokens"], body["temperature"], body["top_p"]) == (4096, 0.5, 0.9)
    assert "max_completion_tokens" not in body
    assert [message["role"] for message in body["messages"]] == ["user"]
    assert server.headers[0]["x-team"] == "moon"


@pytest.mark.anyio
async def test_a_tool_call_and_its_answer_reach_the_server(server: Server) -> None:
    server.answers = [chat_call("Grep", '{"pattern": "moon"}'), completion({"content": "Found."})]
    model = local(server)
    asked = Request("", QUESTION.messages, (GREP,), "required")
    response = await model.ask(asked)
    assert response.calls == (ToolCall("call_1", "Grep", {"pattern": "moon"}),)
    assert response.text == ""
    answered = (
        *QUESTION.messages,
        Message("assistant", "Looking.", response.calls),
        Message("tool", "384,400 km \ud800", call_id="call_1"),
        Message("user", "Well?"),
    )
    assert (await model.ask(Request("", answered, (GREP,), "none"))).text == "Found."
    first, second = server.bodies
    assert first["tool_choice"] == "required"
    assert first["tools"][0]["function"]["name"] == "Grep"
    assert first["tools"][0]["function"]["parameters"]["required"] == ["pattern"]
    assert second["tool_choice"] == "none"
    assert second["messages"][1:] == [
        {
            "role": "assistant",
            "content": "Looking.",
            "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "Grep", "arguments": '{"pattern":"moon"}'}}],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": "384,400 km \ufffd"},
        {"role": "user", "content": "Well?"},
    ]


@pytest.mark.anyio
async def test_arguments_that_are_not_json_are_kept_as_they_came(server: Server) -> None:
    server.answers = [chat_call("Grep", '{"pattern": ')]
    response = await local(server).ask(Request("", QUESTION.messages, (GREP,)))
    assert response.calls == (ToolCall("call_1", "Grep", {UNREADABLE: '{"pattern": '}),)


@pytest.mark.anyio
async def test_an_error_of_a_tool_and_surrogates_in_arguments_can_be_sent(server: Server) -> None:
    server.answers = [completion({"content": "Sorry."})]
    call = ToolCall("call_1", "Grep", {"pattern": "\ud800"})
    messages = (*QUESTION.messages, Message("assistant", calls=(call,)), Message("tool", "bad", call_id="call_1", is_error=True))
    assert (await local(server).ask(Request("", messages, (GREP,)))).text == "Sorry."
    assert server.bodies[0]["messages"][1]["tool_calls"][0]["function"]["arguments"] == '{"pattern":"\ufffd"}'
    assert "bad" in server.bodies[0]["messages"][2]["content"]


@pytest.mark.anyio
async def test_thinking_is_not_part_of_the_answer(server: Server) -> None:
    server.answers = [completion({"content": "<think>The moon, hm.</think>Far."})]
    assert (await local(server).ask(QUESTION)).text == "Far."


@pytest.mark.anyio
async def test_a_refusal_is_the_answer(server: Server) -> None:
    server.answers = [completion({"content": None, "refusal": "I would rather not."})]
    assert (await local(server).ask(QUESTION)).text == "I would rather not."


FAILURES = [
    (
        refused(429, "rate_limit_exceeded", retry_after="7"),
        "the rate limit is reached (HTTP 429, rate_limit_exceeded)",
        True,
        7.0,
    ),
    (refused(429, "insufficient_quota"), "the account's quota or credit is used up (HTTP 429, insufficient_quota)", False, None),
    (refused(500), "the provider failed (HTTP 500)", True, None),
    (refused(503), "the provider is not available (HTTP 503)", True, None),
    (refused(529), "the provider is overloaded (HTTP 529)", True, None),
    (refused(408), "the provider refused (HTTP 408)", True, None),
    (refused(401, KEY), "the API key was not accepted (HTTP 401)", False, None),
    (refused(400), "the request was rejected (HTTP 400)", False, None),
    (refused(404, "model_not_found"), "{url} knows no such model (HTTP 404, model_not_found)", False, None),
    (
        refused(400, "context_length_exceeded"),
        "the request is longer than the model's context window (HTTP 400, context_length_exceeded)",
        False,
        None,
    ),
    (says(200, b"<html>It works!</html>", content_type="text/html"), "the answer could not be read", True, None),
    (says(200, b"{{{"), "the answer could not be read", True, None),
    (says(200, {"choices": []}), "the answer could not be read", True, None),
    (says(200, {"choices": "?"}), "the answer could not be read (AttributeError)", True, None),
]


@pytest.mark.anyio
@pytest.mark.parametrize(("answer", "text", "is_transient", "retry_after"), FAILURES, ids=[case[1][:40] for case in FAILURES])
async def test_a_failure_says_what_happened_and_whether_it_passes(
    server: Server, answer: Answer, text: str, is_transient: bool, retry_after: float | None
) -> None:
    server.answers = [answer]
    with pytest.raises(ModelError) as failed:
        await local(server).ask(QUESTION)
    assert str(failed.value) == f"local/tiny: {text.format(url=server.url)}."
    assert (failed.value.is_transient, failed.value.retry_after) == (is_transient, retry_after)
    assert len(server.bodies) == 1


@pytest.mark.anyio
@pytest.mark.parametrize("manner", ["hangs", "dribbles"])
async def test_a_request_ends_with_its_time_out_however_slowly_the_answer_comes(server: Server, manner: str) -> None:
    server.answers = [getattr(server, manner)]
    with anyio.fail_after(60), pytest.raises(ModelError, match=r"^local/tiny: no answer within 0.3 s\.$") as failed:
        await local(server, timeout=0.3).ask(QUESTION)
    assert failed.value.is_transient


@pytest.mark.anyio
async def test_an_unreachable_server_is_named() -> None:
    server = Server()
    server.close()
    with pytest.raises(ModelError) as failed:
        await local(server).ask(QUESTION)
    assert str(failed.value) == f"local/tiny: no connection to {server.url}."
    assert failed.value.is_transient


@pytest.mark.anyio
async def test_a_cancelled_request_leaves_a_model_that_works(server: Server) -> None:
    server.answers = [server.hangs, completion({"content": "Far."})]
    model = local(server)
    async with anyio.create_task_group() as group:
        group.start_soon(model.ask, QUESTION)
        await until(lambda: server.paths)
        group.cancel_scope.cancel()
    assert (await model.ask(QUESTION)).text == "Far."


@pytest.mark.anyio
@pytest.mark.parametrize("held", [lambda model: model, lambda model: TimedModel(model, 60)], ids=["as it is", "with llmTimeout"])
async def test_requests_share_connections_while_the_model_is_held_open(server: Server, held: Callable[[Model], Model]) -> None:
    server.answers = [completion({"content": "One."}), completion({"content": "Two."})]
    targets = Targets([held(local(server))])
    async with targets.keep_connected():
        assert [(await targets.ask(QUESTION)).text, (await targets.ask(QUESTION)).text] == ["One.", "Two."]
    assert len(server.connections) == 1


@pytest.mark.anyio
async def test_an_extraction_that_asks_several_times_does_so_through_one_connection(server: Server) -> None:
    server.answers = [chat_call("Grep", '{"pattern": "moon"}'), chat_call("Grep", '{"pattern": "sun"}'), refused(401)]
    endpoint = Endpoint(kind="openai-compatible", base_url=server.url)
    settings = Settings(tool_response_max_bytes=100, extraction_model="local/tiny")
    async with Session(settings, endpoints={"local": endpoint}) as session:
        kept = (await session.call("scan", {}, lambda: "The moon is far.\n" * 100)).kept
        assert kept is not None
        await session.invoke("tool_output", {"handle": kept.handle, "extract": "the moon", "mode": "read-grep"})
    assert len(server.bodies) == 3
    assert len(server.connections) == 1


def test_a_model_works_in_one_event_loop_after_another(server: Server) -> None:
    server.answers = [completion({"content": "One."}), completion({"content": "Two."})]
    model = local(server)
    assert [anyio.run(model.ask, QUESTION).text, anyio.run(model.ask, QUESTION).text] == ["One.", "Two."]


@pytest.mark.anyio
async def test_neither_the_key_nor_the_question_is_in_errors_or_logs(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    server.answers = [refused(401, KEY)]
    model = local(server, headers={"Authorization-Extra": KEY})
    with pytest.raises(ModelError) as failed:
        await model.ask(QUESTION)
    assert failed.value.__cause__ is None
    assert failed.value.__suppress_context__
    shown = str(failed.value) + repr(failed.value) + repr(model) + caplog.text
    assert KEY not in shown
    assert "moon" not in shown


@pytest.mark.anyio
async def test_a_second_target_answers_when_the_first_cannot(server: Server) -> None:
    server.answers = [refused(401), completion({"content": "Far."})]
    response = await Targets([local(server), local(server)]).ask(QUESTION)
    assert response.text == "Far."


@pytest.mark.anyio
async def test_organisation_and_project_of_the_environment_stay_here(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "OPENAI_API_KEY", "OLLAMA_API_KEY"):
        monkeypatch.setenv(name, "leak")
    server.answers = [completion({"content": "Far."})]
    model = open_model("ollama/tiny", {"ollama": Endpoint(kind="ollama", base_url=server.url)}, {})
    assert (await model.ask(QUESTION)).text == "Far."
    assert "leak" not in str(server.headers)
    assert model.context_window == 4096


def opened(server: Server, kind: ProviderKind, target: str) -> Model:
    url = server.url.removesuffix("/v1") if kind in ("anthropic", "google") else server.url
    endpoint = Endpoint(kind=kind, base_url=url, api_key=KEY)
    return open_model(target, {target.partition("/")[0]: endpoint}, {target: ModelFacts(1000, 100)})


@pytest.mark.anyio
async def test_openai_is_asked_through_responses_that_it_does_not_keep(server: Server) -> None:
    item = {"id": "m", "type": "message", "role": "assistant", "status": "completed"}
    content = [{"type": "output_text", "text": "Far.", "annotations": []}]
    call = {"id": "f", "type": "function_call", "call_id": "c9", "name": "Grep", "arguments": '{"pattern": "x"}'}
    usage = {"input_tokens": 1000, "output_tokens": 100, "total_tokens": 1100}
    details = {"input_tokens_details": {"cached_tokens": 0}, "output_tokens_details": {"reasoning_tokens": 0}}
    body = {"id": "r", "object": "response", "created_at": 1, "model": "gpt-4o", "status": "completed"}
    server.answers = [says(200, {**body, "output": [{**item, "content": content}, call], "usage": {**usage, **details}})]
    response = await opened(server, "openai", "openai/gpt-4o").ask(Request("Brief.", QUESTION.messages, (GREP,)))
    assert (response.text, response.calls) == ("Far.", (ToolCall("c9", "Grep", {"pattern": "x"}),))
    assert response.usage.cost == pytest.approx(0.0035)
    assert server.paths == ["/v1/responses"]
    assert server.bodies[0]["store"] is False


@pytest.mark.slow
@pytest.mark.anyio
async def test_anthropic_is_asked_in_its_own_format(server: Server) -> None:
    content = [
        {"type": "text", "text": "Looking."},
        {"type": "tool_use", "id": "t1", "name": "Grep", "input": {"pattern": "x"}},
    ]
    body = {"id": "m", "type": "message", "role": "assistant", "model": "no-such-model", "stop_reason": "tool_use"}
    server.answers = [
        says(200, {**body, "content": content, "usage": {"input_tokens": 5, "output_tokens": 6}}),
        says(529, {"type": "error", "error": {"type": "overloaded_error", "message": "later"}}),
    ]
    model = opened(server, "anthropic", "anthropic/no-such-model")
    response = await model.ask(Request("Brief.", QUESTION.messages, (GREP,), max_output_tokens=50))
    assert (response.text, response.calls) == ("Looking.", (ToolCall("t1", "Grep", {"pattern": "x"}),))
    assert response.usage == Usage(5, 6, None)
    assert server.paths[0].startswith("/v1/messages")
    assert KEY in str(server.headers[0])
    assert server.bodies[0]["max_tokens"] == 50
    failed = Message("tool", "broken", call_id="t1", is_error=True)
    messages = (*QUESTION.messages, Message("assistant", response.text, response.calls), failed)
    with pytest.raises(ModelError, match=r"^anthropic/no-such-model: the provider is overloaded \(HTTP 529") as overloaded:
        await model.ask(Request("Brief.", messages, (GREP,), "none"))
    assert overloaded.value.is_transient
    assert server.bodies[1]["messages"][2]["content"][0]["is_error"] is True


REPORT = {"name": "report", "description": "", "parameters": {"type": "object", "properties": {}}}
TURN = Request(
    "Brief.",
    (
        *QUESTION.messages,
        Message("assistant", "", (ToolCall("t1", "Grep", {"pattern": "x"}),)),
        Message("tool", "no match", call_id="t1"),
        Message("user", "This is turn 2."),
    ),
    (GREP, REPORT),
    has_notice=True,
)
ANTHROPIC_ANSWER = {
    "id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "end_turn",
    "content": [{"type": "text", "text": "Fine."}], "usage": {"input_tokens": 5, "output_tokens": 6},
}  # fmt: skip


@pytest.mark.anyio
@pytest.mark.promise("cache-safe")
async def test_the_last_cache_mark_is_before_the_notice(server: Server) -> None:
    server.answers = [says(200, ANTHROPIC_ANSWER)] * 2
    model = opened(server, "anthropic", "anthropic/no-such-model")
    await model.ask(TURN)
    answer, notice = server.bodies[0]["messages"][-1]["content"]
    assert answer["cache_control"] == {"type": "ephemeral", "ttl": "5m"}
    assert notice == {"type": "text", "text": "This is turn 2."}
    assert json.dumps(server.bodies[0]).count("cache_control") == 1
    await model.ask(replace(TURN, has_notice=False))
    assert "cache_control" not in json.dumps(server.bodies[1])


@pytest.mark.anyio
async def test_a_server_that_takes_no_cache_marks_gets_a_plain_notice(server: Server) -> None:
    server.answers = [completion({"content": "Fine."})]
    await local(server).ask(TURN)
    assert server.bodies[0]["messages"][-1] == {"role": "user", "content": "This is turn 2."}


@pytest.mark.anyio
async def test_a_model_is_made_to_call_a_tool_and_keeps_the_others(server: Server) -> None:
    server.answers = [says(200, ANTHROPIC_ANSWER)] * 2
    model = opened(server, "anthropic", "anthropic/no-such-model")
    await model.ask(TURN)
    await model.ask(replace(TURN, must_call="report"))
    free, forced = server.bodies
    assert (free["tool_choice"]["type"], forced["tool_choice"]) == ("auto", {"type": "tool", "name": "report"})
    assert json.dumps(free["tools"]) == json.dumps(forced["tools"])


@pytest.mark.anyio
async def test_a_server_that_refuses_to_force_a_tool_is_asked_without(server: Server) -> None:
    server.answers = [refused(400), chat_call("report", "{}"), refused(400), refused(400)]
    model = local(server)
    response = await model.ask(replace(TURN, must_call="report"))
    assert response.calls[0].name == "report"
    forced, free = server.bodies
    assert forced["tool_choice"] == {"type": "function", "function": {"name": "report"}}
    assert free["tool_choice"] == "auto"
    assert forced["tools"] == free["tools"]
    with pytest.raises(ModelError, match="the request was rejected"):
        await model.ask(replace(TURN, must_call="report"))


@pytest.mark.slow
@pytest.mark.anyio
async def test_google_is_asked_in_its_own_format(server: Server) -> None:
    candidate = {"content": {"role": "model", "parts": [{"text": "Far."}]}, "finishReason": "STOP"}
    server.answers = [
        says(200, {"candidates": [candidate], "usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 2}}),
        says(429, {"error": {"code": 429, "message": KEY, "status": "RESOURCE_EXHAUSTED"}}),
    ]
    model = opened(server, "google", "google/gemini-none")
    response = await model.ask(QUESTION)
    assert (response.text, response.usage.input_tokens, response.usage.output_tokens) == ("Far.", 7, 2)
    assert server.paths == ["/v1/models/gemini-none:generateContent"]
    with pytest.raises(ModelError, match=r"the rate limit is reached \(HTTP 429"):
        await model.ask(QUESTION)


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("body", [b"{{{", b"<html>It works!</html>"])
@pytest.mark.parametrize(
    ("kind", "target"), [("openai", "openai/gpt-none"), ("anthropic", "anthropic/none"), ("google", "google/gemini-none")]
)
async def test_an_answer_that_cannot_be_parsed_is_a_failure_of_the_model(
    server: Server, kind: Any, target: str, body: bytes
) -> None:
    server.answers = [says(200, body)]
    with pytest.raises(ModelError, match=f"^{target}: the answer could not be read") as failed:
        await opened(server, kind, target).ask(QUESTION)
    assert failed.value.is_transient
    assert KEY not in str(failed.value)
