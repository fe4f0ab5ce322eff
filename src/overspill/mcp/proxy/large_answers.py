"""What servers answer and send besides tool results. Anything over the limits is stored whole before it is shortened. If the
settings say so, the model sees marks in place of secrets.

`methods` decides what is checked. Text is replaced by its beginning and links to its parts; a blob, and what a prompt embeds, by
a link. Anything else does not pass: the client gets an error that says where it is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeGuard, cast

import anyio.to_thread
import mcp_types
from mcp.shared.exceptions import MCPError
from mcp_types.version import is_version_at_least

from overspill.errors import OverspillError
from overspill.gate.decide import keeps_nothing, passes_for_sure
from overspill.gate.images import blob_size, decode_blob, describe_blob
from overspill.gate.redacting import redact_object
from overspill.mcp.client.connection import ClientIdentity, Raw, as_mapping
from overspill.mcp.proxy import outputs
from overspill.mcp.proxy.client_request import ClientRequest
from overspill.mcp.proxy.known_clients import find_known_client
from overspill.mcp.proxy.methods import decide_method
from overspill.mcp.proxy.versions import wants_input
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.text import encoding
from overspill.text.humanize import one_line
from overspill.text.lenient_json import dumps
from overspill.types import Kept, ToolCall
from overspill.wording import resources as wording

_EXTENSIONS = {"ui://": "io.modelcontextprotocol/ui", "skill://": "io.modelcontextprotocol/skills"}
"""Clients that declare these read such resources whole, to draw them or to check their digest."""


class LargeAnswers:
    def __init__(self, session: Session, client: ClientIdentity, log: Callable[[str], None], *, dry_run: bool) -> None:
        self._session = session
        self._client = client
        self._resources = session.settings.for_client(client.info.get("name")).resources
        self._log = log
        self._dry_run = dry_run

    async def gate(self, request: ClientRequest, server: str, result: Raw) -> Raw:
        """The answer for the client: the same object if it is within the limits, or passes by decision. Not for tool calls."""
        call = ToolCall("", request.method, {"uri": request.params.get("uri")}, server, "mcp")
        if decide_method("client", call.name) == "passed" or self._reads_whole(call):
            return result
        return await self._hide_secrets(call, await self._shorten(call, result, request.version))

    async def _shorten(self, call: ToolCall, result: Raw, version: str) -> Raw:
        contents, messages = result.get("contents"), result.get("messages")
        if call.name == "resources/read" and _is_readable(contents):
            shown = await self._shorten_contents(call, contents)
            # Only this client can follow the links, so other clients may not get them from a cache.
            scope = {"cacheScope": "private"} if "cacheScope" in result else {}
            return result if shown == contents else {**result, "contents": shown, **scope}
        if call.name == "prompts/get" and isinstance(messages, list):
            return {**result, "messages": await self._link_embedded(call, cast("list[Any]", messages), version)}
        return result if wants_input(result) else await self._measure(call, result)

    async def admit(self, server: str, method: str, params: Raw) -> Raw | None:
        """Return a server's own message as the client gets it. None if it must not pass: it is stored, and the log says where."""
        call, content, decision = ToolCall("", method, {}, server, "mcp"), params.get("content"), decide_method("server", method)
        try:
            if decision == "gated" and isinstance(content, str) and not await self._fits(call, content):
                kept = await self._keep(call, content)
                params = {**params, "content": wording.linked("A message", kept, outputs.uri_of(kept))}
            params = params if decision == "passed" else await self._measure(call, params)
            is_for_people = decision == "passed" and method != "sampling/createMessage"
            return params if is_for_people else await self._hide_secrets(call, params)
        except MCPError as problem:
            self._log(f"The server {server} sent something that does not pass. {problem.message}")
            return None

    async def admit_request(self, server: str, method: str, params: Raw) -> Raw:
        """Return what to ask the client. Raises MCPError if the question may not pass."""
        if (admitted := await self.admit(server, method, params)) is None:
            raise MCPError(mcp_types.INVALID_PARAMS, f"Overspill does not know {method}, and the request is over its limits.")
        return admitted

    async def admit_questions(self, server: str, result: Raw) -> Raw:
        """The same for an answer that asks the client for input."""
        asked = {name: as_mapping(each) for name, each in as_mapping(result.get("inputRequests")).items()}
        for name, each in asked.items():
            admitted = await self.admit_request(server, str(each.get("method")), given := as_mapping(each.get("params")))
            asked[name] = each if admitted is given else {**each, "params": admitted}
        return {**result, "inputRequests": asked} if asked else result

    async def hide(self, method: str, result: Raw) -> Raw:
        """What a model reads of lists and instructions. A person reads completions."""
        is_read = decide_method("client", method) == "passed" and method != "completion/complete"
        return await self._hide_secrets(ToolCall("", method, {}, "", "mcp"), result) if is_read else result

    async def shorten(self, refusal: MCPError, request: ClientRequest) -> MCPError:
        """Return a server's error as the client gets it: a server can put anything into an error."""
        call = ToolCall("", request.method, {"uri": request.params.get("uri")}, "", "mcp")
        text = encoding.decode(dumps([refusal.message, refusal.data]))
        shown = await self._hide_secrets(call, {"message": refusal.message, "data": refusal.data})
        if await self._fits(call, text):
            return MCPError(refusal.code, shown["message"], shown["data"])
        uri = outputs.uri_of(await self._keep(call, text))
        return MCPError(refusal.code, wording.stored_error(shown["message"], len(text), uri), {"uri": uri})

    async def _hide_secrets(self, call: ToolCall, value: Raw) -> Raw:
        redaction = self._session.redaction
        if not redaction.is_on:
            return value
        # What may come from any server is redacted if the settings say so for one of them.
        servers = (call.server,) if call.server else ("", *self._session.settings.servers)
        redactor = next(filter(None, (redaction.shown(call.name, server) for server in servers)), None)
        if redactor is None:
            return value
        shown = await anyio.to_thread.run_sync(redact_object, redactor, value)
        if shown is None:
            raise MCPError(mcp_types.INTERNAL_ERROR, wording.hidden_answer(call.name))
        return shown

    def _reads_whole(self, call: ToolCall) -> bool:
        """Whether a program or a person reads the resource, so that the limits of a model do not matter."""
        if call.name != "resources/read" or self._resources != "auto":
            return call.name == "resources/read" and self._resources == "pass"
        known, uri = find_known_client(self._client.info), str(call.args["uri"])
        declared = as_mapping(self._client.capabilities.get("extensions"))
        is_declared = any(uri.startswith(start) and extension in declared for start, extension in _EXTENSIONS.items())
        return is_declared or (known is not None and known.resources_for != "model")

    async def _shorten_contents(self, call: ToolCall, entries: list[Raw]) -> list[Raw]:
        entries = [
            await self._store_blob(call, each) if self._is_large_blob(call, {"resource": each}) else each for each in entries
        ]
        texts = [entry["text"] for entry in entries if "text" in entry]
        frames = [{key: value for key, value in entry.items() if key not in ("text", "blob")} for entry in entries]
        is_framed = await self._fits(call, encoding.decode(dumps(frames)))
        if is_framed and await self._fits(call, *texts):
            return entries
        if is_framed and len(entries) == 1:
            kept = await self._keep(call, texts[0])
            part, *notes = await anyio.to_thread.run_sync(outputs.read_part, self._session, kept.handle)
            return [{**entries[0], "text": part["text"]}, *notes]
        return await self._shorten_list(call, entries)

    async def _shorten_list(self, call: ToolCall, entries: list[Raw]) -> list[Raw]:
        """Return as many whole entries as fit, and a link to the next one in the stored list. If none fits, return its start."""
        written = await anyio.to_thread.run_sync(lambda: [dumps(entry) for entry in entries])
        kept = await self._keep(call, b"[" + b",\n".join(written) + b"]")
        shown, end, limit = 0, 1, outputs.max_part_bytes(self._settings(call))
        while shown < len(written) and end + len(written[shown]) + 2 <= limit:
            end += len(written[shown]) + 2
            shown += 1
        if not shown or not await self._fits(call, *map(encoding.decode, written[:shown])):
            return await anyio.to_thread.run_sync(outputs.read_part, self._session, kept.handle)
        after = outputs.uri_of(kept, end)
        note = {"uri": after, "mimeType": "text/plain", "text": wording.more_contents(shown, len(entries), after)}
        return [*entries[:shown], note]

    async def _store_blob(self, call: ToolCall, entry: Raw) -> Raw:
        kept = await self._keep(call, await anyio.to_thread.run_sync(decode_blob, {"resource": entry}))
        note = wording.linked(str(entry.get("mimeType") or "A blob"), kept, outputs.uri_of(kept))
        return {**{key: value for key, value in entry.items() if key != "blob"}, "mimeType": "text/plain", "text": note}

    async def _link_embedded(self, call: ToolCall, messages: list[Any], version: str) -> list[Any]:
        """Turn embedded resources into links once they exceed the limits together, and blobs if they are too large."""
        shown, used = list[Any](), ""
        for message in messages:
            block = as_mapping(as_mapping(message).get("content"))
            data: object = as_mapping(block.get("resource")).get("text")
            if isinstance(data, str) and await self._fits(call, used, data):
                used, data = used + data, None
            elif not isinstance(data, str):
                data = decode_blob(block) if self._is_large_blob(call, block) else None
            shown.append(message if data is None else {**message, "content": await self._link(call, block, data, version)})
        return shown

    async def _link(self, call: ToolCall, block: Raw, data: object, version: str) -> Raw:
        source = {"uri": as_mapping(block.get("resource")).get("uri")}
        kept = await self._keep(ToolCall("", call.name, source, call.server, "mcp"), data)
        words = wording.linked(describe_blob(block), kept, outputs.uri_of(kept))
        if not is_version_at_least(version, outputs.LINKS_SINCE):
            return {"type": "text", "text": words}
        return {"type": "resource_link", **outputs.describe(kept), "description": words}

    async def _measure(self, call: ToolCall, value: Raw) -> Raw:
        """Return `value` if it is within the limits. Otherwise store it, and raise an MCPError that says where."""
        text = encoding.decode(dumps(value))
        if await self._fits(call, text):
            return value
        uri = outputs.uri_of(await self._keep(call, text))
        raise MCPError(mcp_types.INTERNAL_ERROR, wording.stored_answer(call.name, len(text), uri), {"uri": uri})

    async def _fits(self, call: ToolCall, *texts: str) -> bool:
        settings = self._settings(call)
        if keeps_nothing(settings) or passes_for_sure(texts, settings):
            return True
        is_within = await anyio.to_thread.run_sync(outputs.is_within_limits, texts, settings)
        if self._dry_run and not is_within:
            size = sum(len(encoding.encode(text)) for text in texts)
            self._log(f"dry run: {one_line(call.name)} of {call.server} would be stored: {size} bytes")
        return self._dry_run or is_within

    def _is_large_blob(self, call: ToolCall, block: Raw) -> bool:
        settings = self._settings(call)
        return blob_size(block) > settings.max_inline_blob and not keeps_nothing(settings) and not self._dry_run

    async def _keep(self, call: ToolCall, data: object) -> Kept:
        try:
            kept = await self._session.keep(data, call=call)
        except OverspillError as error:
            raise MCPError(mcp_types.INTERNAL_ERROR, wording.unsaved_answer(call.name, str(error))) from None
        if kept.missing:
            raise MCPError(mcp_types.INTERNAL_ERROR, wording.unsaved_answer(call.name, kept.missing))
        return kept

    def _settings(self, call: ToolCall) -> Settings:
        return self._session.settings.for_tool(call.name, call.server)


def _is_readable(contents: object) -> TypeGuard[list[Raw]]:
    """Whether these are contents that a resource can have: texts and blobs."""
    entries = [as_mapping(each) for each in cast("list[object]", contents)] if isinstance(contents, list) else []
    return bool(entries) and all(
        isinstance(each.get("text", each.get("blob")), str) and not ("text" in each and "blob" in each) for each in entries
    )
