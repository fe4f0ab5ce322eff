"""The tools that the official conformance suite calls, with its names and its texts."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import mcp_types
from mcp.server.context import ServerRequestContext
from mcp.server.subscriptions import InMemorySubscriptionBus
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.subscriptions import PromptsListChanged, ToolsListChanged
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

Context: TypeAlias = "ServerRequestContext[Any, Any]"
Raw: TypeAlias = "dict[str, Any]"
Call: TypeAlias = mcp_types.CallToolRequestParams
Tool: TypeAlias = Callable[[Context, Call], Awaitable[Raw]]

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
WAV = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
IMAGE = {"type": "image", "data": PNG, "mimeType": "image/png"}
TOOLS: dict[str, tuple[Raw, Tool]] = {}
bus = InMemorySubscriptionBus()


def text(words: str) -> Raw:
    return {"type": "text", "text": words}


def said(words: str) -> Raw:
    return {"content": [text(words)]}


def embedded(uri: str, kind: str, words: str) -> Raw:
    return {"type": "resource", "resource": {"uri": uri, "mimeType": kind, "text": words}}


def objects(**properties: Raw) -> Raw:
    return {"type": "object", "properties": properties, **({"required": list(properties)} if properties else {})}


def elicitation(message: str, schema: Raw) -> Raw:
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def completion(prompt: str, tokens: int = 100) -> Raw:
    message = {"role": "user", "content": text(prompt)}
    return {"method": "sampling/createMessage", "params": {"messages": [message], "maxTokens": tokens}}


ROOTS: Raw = {"method": "roots/list", "params": {}}
STRING: Raw = {"type": "string"}
NAME_WANTED = elicitation("What is your name?", objects(name=STRING))
CONFIRMATION = elicitation("Please confirm", objects(ok={"type": "boolean"}))


def tool(description: str, schema: Raw | None = None) -> Callable[[Tool], Tool]:
    def register(run: Tool) -> Tool:
        name = f"test_{run.__name__}"
        TOOLS[name] = {"name": name, "description": description, "inputSchema": schema or objects()}, run
        return run

    return register


def says(name: str, description: str, *content: Raw, schema: Raw | None = None) -> None:
    async def run(_: Context, __: Call) -> Raw:
        return {"content": list(content)}

    run.__name__ = name
    tool(description, schema)(run)


says("simple_text", "A simple text", text("This is a simple text response for testing."))
says("image_content", "An image", IMAGE)
says("audio_content", "A sound", {"type": "audio", "data": WAV, "mimeType": "audio/wav"})
says(
    "embedded_resource",
    "A resource",
    embedded("test://embedded-resource", "text/plain", "This is an embedded resource content."),
)
says(
    "multiple_content_types",
    "A text, an image and a resource",
    text("Multiple content types test:"),
    IMAGE,
    embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}'),
)
SCHEMA_2020_12: Raw = {
    "name": "json_schema_2020_12_tool",
    "description": "Tool with JSON Schema 2020-12 features",
    "inputSchema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": {"street": STRING, "city": STRING}}},
        "properties": {
            "name": STRING,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": STRING,
            "email": STRING,
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    },
}


@tool("Wants its argument in a header too", objects(region={"type": "string", "x-mcp-header": "Region"}))
async def header(_: Context, call: Call) -> Raw:
    return said(str((call.arguments or {})["region"]))


@tool("Fails")
async def error_handling(_: Context, __: Call) -> Raw:
    return {**said("This tool intentionally returns an error for testing"), "isError": True}


async def log(ctx: Context, words: str) -> None:
    await ctx.session.send_log_message("info", words, related_request_id=ctx.request_id)


@tool("Logs three times")
async def tool_with_logging(ctx: Context, _: Call) -> Raw:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await log(ctx, words)
    return said("Tool with logging executed successfully")


@tool("Logs once")
async def logging_tool(ctx: Context, _: Call) -> Raw:
    await log(ctx, "Logged")
    return said("Logged, where that was wanted")


@tool("Reports progress")
async def tool_with_progress(ctx: Context, _: Call) -> Raw:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100, f"Completed step {done} of 100")
    return said("Progress reported")


@tool("Closes its stream before it answers")
async def reconnection(ctx: Context, _: Call) -> Raw:
    if ctx.close_sse_stream is not None:
        await ctx.close_sse_stream()
    return said("Reconnection test completed")


async def ask(ctx: Context, request: mcp_types.ServerRequest, answer: type[Any]) -> Any:
    return await ctx.session.send_request(request, answer, metadata=ServerMessageMetadata(related_request_id=ctx.request_id))


@tool("Asks the client's model", objects(prompt=STRING))
async def sampling(ctx: Context, call: Call) -> Raw:
    request = mcp_types.CreateMessageRequest.model_validate(completion((call.arguments or {})["prompt"]))
    answer = await ask(ctx, request, mcp_types.CreateMessageResult)
    return said(f"LLM response: {answer.content.text}")


def elicits(name: str, schema: Raw, arguments: Raw | None = None) -> None:
    async def run(ctx: Context, call: Call) -> Raw:
        words = (call.arguments or {}).get("message", "Please fill in")
        request = mcp_types.ElicitRequest.model_validate(elicitation(words, schema))
        answer = await ask(ctx, request, mcp_types.ElicitResult)
        return said(f"Elicitation completed: action={answer.action}, content={json.dumps(answer.content)}")

    run.__name__ = name
    tool("Asks the user", arguments)(run)


def titled(*names: str) -> list[Raw]:
    return [{"const": f"value{number}", "title": name} for number, name in enumerate(names, 1)]


OPTIONS = ["option1", "option2", "option3"]
elicits("elicitation", objects(username=STRING, email=STRING), objects(message=STRING))
elicits(
    "elicitation_sep1034_defaults",
    objects(
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    ),
)
elicits(
    "elicitation_sep1330_enums",
    objects(
        untitledSingle={"type": "string", "enum": OPTIONS},
        titledSingle={"type": "string", "oneOf": titled("First Option", "Second Option", "Third Option")},
        legacyEnum={"type": "string", "enum": ["opt1", "opt2", "opt3"], "enumNames": ["One", "Two", "Three"]},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": OPTIONS}},
        titledMulti={"type": "array", "items": {"anyOf": titled("First Choice", "Second Choice", "Third Choice")}},
    ),
)


def wants(requests: Mapping[str, Raw], state: str | None = None) -> Raw:
    return {
        "resultType": "input_required",
        "inputRequests": dict(requests),
        **({"requestState": state} if state else {}),
    }


def needs(name: str, *rounds: Mapping[str, Raw], state: bool = False) -> None:
    """A tool of the stateless protocol that wants answers, in so many rounds, before it has a result."""

    async def run(_: Context, call: Call) -> Raw:
        done = int(call.request_state or 0)
        if call.input_responses and set(rounds[done]) <= set(call.input_responses):
            done += 1
        if done == len(rounds):
            return said("state-ok: everything was answered")
        return wants(rounds[done], str(done) if state else None)

    run.__name__ = name
    tool("Wants input", None)(run)


needs("input_required_result_elicitation", {"user_name": NAME_WANTED})
needs("streaming_elicitation", {"user_name": NAME_WANTED})
needs("input_required_result_sampling", {"capital_question": completion("What is the capital of France?")})
needs("input_required_result_list_roots", {"client_roots": ROOTS})
needs("input_required_result_request_state", {"confirm": CONFIRMATION}, state=True)
needs("input_required_result_tampered_state", {"confirm": CONFIRMATION}, state=True)
needs(
    "input_required_result_multiple_inputs",
    {"user_name": NAME_WANTED, "greeting": completion("Generate a greeting", 50), "client_roots": ROOTS},
    state=True,
)
needs(
    "input_required_result_multi_round",
    {"step1": elicitation("Step 1: What is your name?", objects(name=STRING))},
    {"step2": elicitation("Step 2: What is your favorite color?", objects(color=STRING))},
    state=True,
)


@tool("Asks only what the client said it can answer")
async def input_required_result_capabilities(ctx: Context, _: Call) -> Raw:
    able = ctx.session.client_capabilities or mcp_types.ClientCapabilities()
    possible = {"user_name": NAME_WANTED} if able.elicitation is not None else {}
    if able.sampling is not None:
        possible["capital_question"] = completion("What is the capital of France?")
    return wants(possible) if possible else said("Nothing can be asked")


@tool("Needs a client with a model")
async def missing_capability(ctx: Context, _: Call) -> Raw:
    able = ctx.session.client_capabilities
    if able is None or able.sampling is None:
        missing = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(mcp_types.MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs sampling", missing)
    return said("There is a model")


@tool("Says that the tools changed")
async def trigger_tool_change(ctx: Context, _: Call) -> Raw:
    await bus.publish(ToolsListChanged())
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        await ctx.session.send_tool_list_changed()
    return said("The tools changed")


@tool("Says that the prompts changed")
async def trigger_prompt_change(ctx: Context, _: Call) -> Raw:
    await bus.publish(PromptsListChanged())
    if ctx.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        await ctx.session.send_prompt_list_changed()
    return said("The prompts changed")
