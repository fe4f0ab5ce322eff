"""One run of an agent: opens, connects and closes everything it needs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import anyio
from msgspec import Struct
from msgspec.structs import replace

from overspill.agent import wording
from overspill.agent.file import Agent
from overspill.agent.internal import describe_object
from overspill.agent.models import AgentModels
from overspill.agent.progress import ModelAnswered, ModelSaid, Observe
from overspill.agent.record import RunRecord, Totals
from overspill.agent.router import ToolRouter
from overspill.agent.tools import FunctionReference, Toolbox, failure, open_tools
from overspill.agent.turns import Outcome, RunControl, Turns
from overspill.errors import OverspillError
from overspill.models.endpoints import Endpoint
from overspill.models.protocol import Model
from overspill.programs.tools import ProgramTool
from overspill.record.events import AgentStarted, ModelCalled, now_ms
from overspill.record.logs import Observers
from overspill.schema.signatures import as_object
from overspill.session.session import Session
from overspill.store.protocols import Store
from overspill.types import Output


class RunContext(Struct, frozen=True):
    """What all agents of a run share."""

    tools: Toolbox
    models: Mapping[str, Model]
    endpoints: Mapping[str, Endpoint]
    control: RunControl
    observe: Observe
    store: Store | None
    observers: Observers = ()
    secrets: Mapping[str, str] = {}


async def run_agent(
    agent: Agent,
    question: str,
    *,
    functions: Mapping[str, FunctionReference] | None = None,
    models: Mapping[str, Model] | None = None,
    endpoints: Mapping[str, Endpoint] | None = None,
    control: RunControl | None = None,
    observe: Observe = lambda _: None,
    store: Store | None = None,
    environ: Mapping[str, str] | None = None,
    observers: Observers = (),
) -> RunRecord:
    """Run an agent. Raises SettingsError if it cannot start. Later failures are in the outcome of the record.

    `functions` are offered to this agent in addition to those it names: the functions themselves, or `module:function`. `models`
    maps targets to models; other targets go to their provider or to `endpoints`. `environ` is the environment of the MCP
    servers. `observers` see the events.
    """
    control = control or RunControl()
    record = RunRecord(agent.name, agent.file.name, question, now_ms())
    for each in agent.everyone():
        AgentModels(each, models or {}, endpoints or {})  # to find mistakes in any of them before the run starts
    with control.scope:
        async with open_tools(agent, functions or {}, environ or {}, observe) as tools:
            for each in agent.everyone():
                tools.of(each)  # for the same reason
            named = {**(environ or {}), **_list_values(agent.settings.mcp_servers or {})}
            context = RunContext(tools, models or {}, endpoints or {}, control, observe, store, observers, named)
            await _run(agent, record, context, functions or ())
    return record


def _list_values(servers: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of variables and headers in server entries, by name."""
    parts = [as_object(entry).get(part) for entry in servers.values() for part in ("env", "headers")]
    return {name: str(value) for named in parts for name, value in as_object(named).items()}


async def _run(
    agent: Agent,
    record: RunRecord,
    context: RunContext,
    functions: Iterable[str],
    started: Callable[[str], None] = lambda _: None,
) -> None:
    def warn(text: str) -> None:
        record.warnings.append(text)
        context.observe(ModelSaid(agent.name, text, warning=True))

    def record_attempt(called: ModelCalled) -> None:
        session.note(called)
        context.observe(ModelAnswered(agent.name, called.model, called.latency / 1000, called.error))

    for warning in agent.warnings:
        warn(warning)
    models = AgentModels(agent, context.models, context.endpoints, warn=warn, observe=record_attempt)
    tools = context.tools.of(agent, functions)
    session = Session(
        agent.settings,
        budget=models.guard.budget,
        models=models.by_name,
        endpoints=context.endpoints,
        store=context.store,
        observers=context.observers,
        secrets=context.secrets,
    )
    async with models.keep_connected(), session:
        record.session = session.id
        started(session.id)
        offers = {**tools, **_offer_agents(agent, record, session, context)}
        router = ToolRouter(agent.name, session, offers, models, context.observe)
        turns = Turns(agent, router, context.control)
        record.messages, record.answers = turns.messages, router.answers
        try:
            await _converse(turns, record, session, context.control)
        finally:
            record.outcome = replace(record.outcome, turns=turns.turn)
            with anyio.CancelScope(shield=True):
                record.own_threads = [job.tool for job in await session.abort()]
            counters = session.counters
            record.ended = now_ms()
            record.tree = session.op_tree()
            record.own_accounting = session.accounting()
            record.own_totals = Totals(
                counters.calls, counters.kept, counters.model_calls, counters.input_tokens, counters.output_tokens, counters.cost
            )


async def _converse(turns: Turns, record: RunRecord, session: Session, control: RunControl) -> None:
    async def stop() -> None:
        await control.wait_for_stop()
        await session.stop()

    async with anyio.create_task_group() as group:
        group.start_soon(stop)
        try:
            record.outcome = await turns.run(record.question)
        except OverspillError as error:
            record.outcome = Outcome("failed", turns.turn, why=str(error))
        group.cancel_scope.cancel()


def _offer_agents(agent: Agent, record: RunRecord, session: Session, context: RunContext) -> dict[str, ProgramTool]:
    """Make tools of the agents that this agent can call. A call starts another run, whose report is the tool's output."""

    async def run(tool: str, below: Agent, /, prompt: str) -> str | Output:
        child = RunRecord(below.name, below.file.name, prompt, now_ms())
        record.below.append(child)
        await _run(below, child, context, (), lambda id: session.note(AgentStarted(now_ms(), tool, id)))
        report, running = child.outcome.report, child.outcome.running
        if report is None:
            return failure(wording.no_report(below.name, child.outcome.why))
        texts = [report.content, *([wording.still_running(running)] if running else [])]
        return report.content if len(texts) == 1 else Output([{"type": "text", "text": text} for text in texts])

    prompt = {"type": "string", "description": "The task, with everything the agent needs to know"}
    later = {"type": "boolean", "description": "true: run in the background from the start, and you continue meanwhile"}
    parameters = describe_object(["prompt"], prompt=prompt, **({"async": later} if agent.settings.background else {}))
    offers: dict[str, ProgramTool] = {}
    for name, below in agent.agents.items():
        description = below.file.keys.description or f"Hand a task to the agent {below.name}"
        offers[name] = ProgramTool(name, description, parameters, partial(run, name, below), kind="agent")
    return offers
