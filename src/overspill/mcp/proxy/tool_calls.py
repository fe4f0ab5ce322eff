"""Send tool calls through the gate. A result within the limits comes back as the very object the server sent."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from copy import copy
from functools import partial
from typing import Any

import anyio.to_thread
from mcp.shared.exceptions import MCPError
from mcp_types.version import is_version_at_least
from msgspec import Struct, field

from overspill.calls.job import Job, current
from overspill.errors import BadRequest, OverspillError
from overspill.gate.decide import Pass, decide
from overspill.gate.intent import LOOKING_FOR, take_off
from overspill.gate.kept import BoundedCache
from overspill.mcp.client.connection import Raw, as_mapping
from overspill.mcp.client.results import find_texts, keep_short_fields, to_error_output, to_output
from overspill.mcp.client.server import Server
from overspill.mcp.proxy import outputs
from overspill.mcp.proxy.catalog import Catalog
from overspill.mcp.proxy.client_request import ClientRequest
from overspill.mcp.proxy.programs import ProgramCalls
from overspill.mcp.proxy.tasks import Forward, describe_task
from overspill.mcp.proxy.versions import adapt_result, wants_input
from overspill.programs.tools import ProgramTool
from overspill.schema import fits_schema
from overspill.session.session import Session
from overspill.store.meter import size_of
from overspill.text.humanize import one_line
from overspill.text.lenient_json import dumps
from overspill.types import Output, Reply
from overspill.wording import replies as wording

_OF_QUESTIONS = ("resultType", "inputRequests", "requestState", "_meta")
_MAX_DELIVERED_BYTES = 16 * 1024 * 1024  # of results of tasks in memory; the store has their texts


class ToolCalls(Struct, eq=False):
    session: Session
    catalog: Catalog
    forward: Forward
    programs: ProgramCalls
    dry_run: bool
    log: Callable[[str], None]
    _delivered: BoundedCache[Raw | MCPError] = field(default_factory=lambda: BoundedCache(_MAX_DELIVERED_BYTES, _measure))
    """The results that tasks deliver, by job."""

    async def call_own(self, request: ClientRequest, name: str, args: Raw) -> Raw:
        """Call a tool of ours. Tools that a program calls belong to the request that brought the program."""
        before = _asking.set((self, request))
        try:
            reply = await self.session.invoke(name, args)
        finally:
            _asking.reset(before)
        return self.render({}, reply)

    async def describe_for_programs(self, request: ClientRequest) -> list[ProgramTool]:
        settings = self.session.settings
        may_call = settings.program_tools or settings.trust_read_only
        return [self._describe(request, *each) for each in await self.catalog.list_known()] if may_call else []

    def _describe(self, request: ClientRequest, server: Server, tool: Raw) -> ProgramTool:
        name, schema, inner = tool["name"], tool.get("inputSchema"), copy(request)
        inner.params = {"arguments": {}}
        run, check = partial(self._call, inner, server, name), fits_schema(schema, server.name)
        is_read_only = as_mapping(tool.get("annotations")).get("readOnlyHint") is True
        returns, description = as_mapping(tool.get("outputSchema")) or None, str(tool.get("description") or "")
        return ProgramTool(name, description, as_mapping(schema), run, server.name, "mcp", check, is_read_only, returns)

    async def call_server(self, request: ClientRequest, server: Server, name: str) -> Raw:
        given = as_mapping(request.params.get("arguments"))
        try:
            args, intent = await self._take_intent_off(server, name, given)
        except BadRequest as error:
            return make_failure(str(error))
        if self.dry_run:
            changes = {} if args is given else {"arguments": args}
            result = await self.forward(request, server, {**request.params, "name": name, **changes})
            await self._report(result, server, name)
            return result
        call = partial(self._call, request, server, name)
        check = fits_schema(self.catalog.describe_if_known(server, name).get("inputSchema", True), server.name)
        chosen = self.programs.choose(name, server.name, request.meta)
        try:
            reply = await self.session.call(
                name,
                args,
                call,
                server=server.name,
                kind="mcp",
                errors="raise",
                background=None if chosen == "card" and not request.asks_for_task else False,  # others wait, as without a proxy
                check=check,
                intent=intent,
                for_program=chosen != "card",
            )
        except Exception as error:  # Overspill's own error or time limit: the model gets it as an answer
            return make_failure(str(error) if isinstance(error, OverspillError) else wording.tool_failure(str(error)))
        if request.knows_tasks and reply.job is not None:
            request.is_task = True
            return {"resultType": "task", **describe_task(await self.session.jobs.find(reply.job.id), self.session.settings)}
        if chosen == "card" or reply.original is None:
            return await self._answer(request, server, name, reply)
        if isinstance(reply.original, MCPError):
            raise reply.original
        return self.programs.pass_whole(as_mapping(reply.original), reply, chosen)

    async def deliver(self, request: ClientRequest, job: Job) -> Raw | MCPError:
        """Return the result of an ended task as its call would have returned it, or the server's refusal."""
        if job.id in self._delivered:
            return self._delivered[job.id]
        reply = await self.session.jobs.deliver(job)
        server = self.catalog.find_server(job.server)
        shown = self.render({}, reply) if server is None else await self._stand_in(request, server, job.tool, reply)
        result = adapt_result(shown, "tools/call", modern=True)
        self._delivered.put(job.id, result)
        return result

    async def _take_intent_off(self, server: Server, name: str, args: Raw) -> tuple[Raw, str]:
        """Split off the argument that the catalog added. A tool with an unknown schema may have its own argument of that name."""
        if LOOKING_FOR not in args or self.session.settings.for_tool(name, server.name).intent != "ask":
            return args, ""
        tool = await self.catalog.describe(server, name)
        if not tool:
            raise BadRequest(
                f"The server {server.name} has not listed its tools yet, so it is not clear what {LOOKING_FOR} means to "
                f"{one_line(name)}. Call it again without {LOOKING_FOR}."
            )
        return take_off(args) if self.catalog.asks(server, tool) else (args, "")

    async def _call(self, request: ClientRequest, server: Server, name: str, /, **args: Any) -> Output:
        """Run the tool for the session. The server's own result, or its refusal, is the `original` of the output."""
        job = request.job = current.get()
        params = {**request.params, "name": name}
        if "arguments" in params or args:
            params["arguments"] = args
        try:
            result = await self.forward(request, server, params)
        except MCPError as refusal:
            return await self._remember(request, to_error_output(refusal))
        if wants_input(result):
            if job is not None and job.background:
                raise RuntimeError("the tool asks for input, which it cannot get in the background")
            return Output([], original={key: value for key, value in result.items() if key in _OF_QUESTIONS})
        return await self._remember(request, await to_output(result))

    async def _remember(self, request: ClientRequest, output: Output) -> Output:
        """A task delivers a small result unchanged, because a stored one loses its structured content."""
        job, result, most = request.job, output.original, self.session.settings.max_inline_blob
        if job is None or not job.background or not request.knows_tasks or _measure(result) > most:
            return output
        settings = self.session.settings.for_tool(job.tool, job.server)
        texts = find_texts(output.content)
        if settings.redact.shown != "on" and await anyio.to_thread.run_sync(outputs.is_within_limits, texts, settings):
            self._delivered.put(job.id, result)
        return output

    async def _answer(self, request: ClientRequest, server: Server, name: str, reply: Reply) -> Raw:
        original: Raw | MCPError | None = reply.original
        if reply.kept is None and reply.job is None and reply.truncation is None:
            if isinstance(original, MCPError):
                raise original
            return self.render({}, reply) if original is None else as_mapping(original)
        return await self._stand_in(request, server, name, reply)

    async def _stand_in(self, request: ClientRequest, server: Server, name: str, reply: Reply) -> Raw:
        self.programs.warn_of_card(name, server.name, request.meta)
        result = self.render(keep_short_fields(as_mapping(reply.original)), reply)
        if reply.kept is not None and is_version_at_least(request.version, outputs.LINKS_SINCE):
            result["content"].append({"type": "resource_link", **outputs.describe(reply.kept)})
        if not reply.is_error:
            schema = (await self.catalog.describe(server, name)).get("outputSchema")
            text = "\n\n".join(find_texts(result["content"]))
            structured = outputs.structure_reply(schema, text, reply.kept and reply.kept.handle)
            if structured is not None:
                result["structuredContent"] = structured
        return result

    def render(self, rest: Raw, reply: Reply) -> Raw:
        extra = [text for text in (self.catalog.rename_note, self.session.news()) if text]
        content = [*reply.content, *({"type": "text", "text": text} for text in extra)]
        return {**rest, "content": content, **({"isError": True} if reply.is_error else {})}

    async def _report(self, result: Raw, server: Server, name: str) -> None:
        text, settings = "".join(find_texts((await to_output(result)).content)), self.session.settings.for_tool(name, server.name)
        size = await anyio.to_thread.run_sync(size_of, text, settings.model)
        if not isinstance(decide(size, settings), Pass):
            measured = f"{size.bytes} bytes, {size.lines} lines, {size.tokens} tokens"
            self.log(f"dry run: {one_line(name)} of {server.name} would be stored: {measured}")


async def list_for_programs() -> list[ProgramTool]:
    """List the tools of all servers of the client whose program asks."""
    calls, request = _asking.get()
    return [] if calls is None or request is None else await calls.describe_for_programs(request)


_asking: ContextVar[tuple[ToolCalls | None, ClientRequest | None]] = ContextVar("overspill_program", default=(None, None))
"""The client and the request that a program belongs to. The tasks of the program inherit it."""


def _measure(delivered: Raw | MCPError) -> int:
    return len(dumps(delivered.error.model_dump() if isinstance(delivered, MCPError) else delivered))


def make_failure(text: str) -> Raw:
    return {"content": [{"type": "text", "text": text}], "isError": True}
