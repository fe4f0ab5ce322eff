"""The server that the official conformance suite wants, in both protocols.

Alone it speaks over standard input and output. With `--http` it serves streamable HTTP on a free port of loopback and prints the
address. With `--doors PATH` it is started once and speaks for every `stdio_door.py PATH` that is: the suite opens a session for
each scenario, and a Python process with the SDK takes seconds to start.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import mcp_types
import uvicorn
from anyio.abc import UNIXSocketStream
from conformance_tools import (
    IMAGE,
    PNG,
    SCHEMA_2020_12,
    STRING,
    TOOLS,
    Call,
    Context,
    Raw,
    bus,
    elicitation,
    embedded,
    objects,
    text,
    wants,
)
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError

NAME = "conformance"


async def list_tools(_: Context, __: object) -> Raw:
    return {"tools": [*(listed for listed, _ in TOOLS.values()), SCHEMA_2020_12]}


async def call_tool(ctx: Context, call: Call) -> Raw:
    if call.name not in TOOLS:
        raise MCPError(mcp_types.INVALID_PARAMS, f"Unknown tool: {call.name}")
    return await TOOLS[call.name][1](ctx, call)


RESOURCES: dict[str, Raw] = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": PNG},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content"},
}
TEMPLATE = "test://template/{id}/data"


async def list_resources(_: Context, __: object) -> Raw:
    return {"resources": [{"uri": uri, "name": uri, "mimeType": each["mimeType"]} for uri, each in RESOURCES.items()]}


async def list_templates(_: Context, __: object) -> Raw:
    return {"resourceTemplates": [{"uriTemplate": TEMPLATE, "name": "template", "mimeType": "application/json"}]}


async def read_resource(_: Context, wanted: mcp_types.ReadResourceRequestParams) -> Raw:
    before, after = TEMPLATE.split("{id}")
    if wanted.uri in RESOURCES:
        return {"contents": [{"uri": wanted.uri, **RESOURCES[wanted.uri]}]}
    if wanted.uri.startswith(before) and wanted.uri.endswith(after):
        id = wanted.uri.removeprefix(before).removesuffix(after)
        filled = {"id": id, "templateTest": True, "data": f"Data for ID: {id}"}
        return {"contents": [{"uri": wanted.uri, "mimeType": "application/json", "text": json.dumps(filled)}]}
    raise MCPError(mcp_types.INVALID_PARAMS, "Resource not found", {"uri": wanted.uri})


async def accept(_: Context, __: object) -> Raw:
    return {}


PROMPTS: dict[str, list[str]] = {
    "test_simple_prompt": [],
    "test_prompt_with_arguments": ["arg1", "arg2"],
    "test_prompt_with_embedded_resource": ["resourceUri"],
    "test_prompt_with_image": [],
    "test_input_required_result_prompt": [],
}


async def list_prompts(_: Context, __: object) -> Raw:
    return {
        "prompts": [
            {"name": name, "description": name, "arguments": [{"name": each, "required": True} for each in names]}
            for name, names in PROMPTS.items()
        ]
    }


async def get_prompt(_: Context, wanted: mcp_types.GetPromptRequestParams) -> Raw:
    given = wanted.arguments or {}
    match wanted.name:
        case "test_simple_prompt":
            content = [text("This is a simple prompt for testing.")]
        case "test_prompt_with_arguments":
            content = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
        case "test_prompt_with_embedded_resource":
            resource = embedded(given["resourceUri"], "text/plain", "Embedded resource content for testing.")
            content = [resource, text("Please process the embedded resource above.")]
        case "test_prompt_with_image":
            content = [IMAGE, text("Please analyze the image above.")]
        case "test_input_required_result_prompt" if wanted.input_responses:
            content = [text("The context is known.")]
        case "test_input_required_result_prompt":
            return wants({"user_context": elicitation("What context should the prompt use?", objects(context=STRING))})
        case _:
            raise MCPError(mcp_types.INVALID_PARAMS, f"Unknown prompt: {wanted.name}")
    return {"messages": [{"role": "user", "content": each} for each in content]}


async def complete(_: Context, __: object) -> Raw:
    return {"completion": {"values": ["paris", "park"], "total": 2, "hasMore": False}}


def typed(model: type[mcp_types.Result], handler: Callable[[Context, Any], Awaitable[Raw]]) -> Callable[..., Awaitable[Any]]:
    """The SDK's models add to a result what its protocol version wants."""

    async def run(ctx: Context, params: Any) -> mcp_types.Result:
        result = await handler(ctx, params)
        return (mcp_types.InputRequiredResult if "resultType" in result else model).model_validate(result)

    return run


def server() -> Server[Any]:
    made: Server[Any] = Server(
        NAME,
        version="1.0.0",
        on_list_tools=typed(mcp_types.ListToolsResult, list_tools),
        on_call_tool=typed(mcp_types.CallToolResult, call_tool),
        on_list_resources=typed(mcp_types.ListResourcesResult, list_resources),
        on_list_resource_templates=typed(mcp_types.ListResourceTemplatesResult, list_templates),
        on_read_resource=typed(mcp_types.ReadResourceResult, read_resource),
        on_subscribe_resource=typed(mcp_types.EmptyResult, accept),
        on_unsubscribe_resource=typed(mcp_types.EmptyResult, accept),
        on_subscriptions_listen=ListenHandler(bus),
        on_list_prompts=typed(mcp_types.ListPromptsResult, list_prompts),
        on_get_prompt=typed(mcp_types.GetPromptResult, get_prompt),
        on_completion=typed(mcp_types.CompleteResult, complete),
    )
    made.add_request_handler("logging/setLevel", mcp_types.SetLevelRequestParams, typed(mcp_types.EmptyResult, accept))
    made.middleware.append(RequestStateBoundary(RequestStateSecurity.ephemeral(), default_audience=NAME))
    return made


async def over_stdio(*files: Any) -> None:
    made = server()
    changes = NotificationOptions(prompts_changed=True, tools_changed=True)
    async with stdio_server(*files) as streams:
        await made.run(*streams, made.create_initialization_options(changes))


async def over_http() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        config = uvicorn.Config(server().streamable_http_app(), log_level="warning", timeout_graceful_shutdown=1)
        await uvicorn.Server(config).serve(sockets=[listener])


async def for_doors(path: str) -> None:
    """Whoever connects hands over its own standard input and output, and is done when its connection is closed."""

    async def serve(door: UNIXSocketStream) -> None:
        async with door:
            _, (source, target) = await door.receive_fds(1, 2)
            with os.fdopen(source, encoding="utf-8") as reading, os.fdopen(target, "w", encoding="utf-8") as writing:
                await over_stdio(anyio.wrap_file(reading), anyio.wrap_file(writing))

    async with await anyio.create_unix_listener(path) as listener:
        print("ready", flush=True)
        await listener.serve(serve)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--http"]:
            anyio.run(over_http)
        case ["--doors", path]:
            anyio.run(for_doors, path)
        case _:
            anyio.run(over_stdio)
