"""`overspill run`: an agent from a file, with the question as an argument or on standard input."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NoReturn

import anyio
import click

from overspill.agent import Agent, RunControl, RunRecord, Sources, load_agent, run_agent
from overspill.agent.run.snapshot import append_accounting, may_replace, write_snapshot
from overspill.cli import ending, output
from overspill.cli.config import config_files, parse_assignments, settings_options
from overspill.cli.messages import say
from overspill.cli.models import endpoints
from overspill.cli.progress import ProgressView, progress
from overspill.cli.terminal import on_terminal
from overspill.errors import OverspillError, SettingsError
from overspill.models.endpoints import Endpoint
from overspill.settings.files import file_exists
from overspill.text.encoding import clean
from overspill.text.humanize import visible

EXIT_CODES = {"reported": 0, "unreported": 1, "failed": 3, "aborted": 130}


@click.command()
@click.argument("words", nargs=-1, metavar="[FILE] [QUESTION]")
@click.option("--agent", "file", type=click.Path(path_type=Path), metavar="FILE", help="The agent file, if not the first word.")
@click.option("--model", "models", multiple=True, metavar="PROVIDER/MODEL", help="Ask this model; repeat for more, in order.")
@click.option("--tool-response-max-bytes", type=int, metavar="N", help="Keep outputs of more bytes; 0: size does not matter.")
@click.option("--async/--no-async", "async_", default=None, help="Whether slow tools go on in the background.")
@click.option("--function", "functions", multiple=True, metavar="[NAME=]MODULE:FUNCTION", help="A Python function as a tool.")
@click.option("--override", "overrides", multiple=True, metavar="KEY=VALUE", help="As --set, for the agents it calls too.")
@click.option(
    "--snapshot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the whole run there, however it ends; an older snapshot is replaced.",
)
@click.option("--accounting", type=click.Path(path_type=Path), metavar="FILE", help="Append one JSON line for each call to it.")
@click.option("--json", "as_json", is_flag=True, help="Print the report and how the run went as JSON.")
@click.option("-v", "--verbose", is_flag=True, help="Report each step on standard error.")
@settings_options
def run(
    words: tuple[str, ...],
    file: Path | None,
    models: tuple[str, ...],
    functions: tuple[str, ...],
    overrides: tuple[str, ...],
    snapshot: Path | None,
    accounting: Path | None,
    as_json: bool,
    verbose: bool,
    **options: Any,
) -> None:
    """Run the agent in FILE on QUESTION, or on what standard input says, and print its final report.

    \b
    overspill run examples/scripted.ai "Why did the deployment fail?" --config examples/config.yaml
    echo "What is a preset?" | overspill run --agent examples/files.ai --config examples/config.yaml --model ollama/qwen3:8b

    Only the report goes to standard output. Ctrl-C lets what runs come to its end and asks for the report; a second one aborts.
    Exit codes: 0 reported, 1 no report, 2 a mistake in the input, 3 the run failed (no model answered), 130 aborted.
    """
    for place in filter(None, (snapshot, accounting)):
        if file_exists(place) or place.absolute().parent.is_dir():
            continue
        raise SettingsError(f"The folder of {place} does not exist. Make it first.")
    if snapshot is not None and not may_replace(snapshot):
        raise SettingsError(f"{snapshot} is there already and is no snapshot, so it stays as it is. Choose another name.")
    file, question = _read_question(file, words)
    named = _functions(functions)
    agent = load_agent(file, _sources(models, overrides, options))
    with progress(verbose=verbose) as shown:
        record, code = anyio.run(_run, agent, question, named, endpoints(agent.settings, os.environ, models), shown)
    try:
        _conclude(record, snapshot, accounting, as_json=as_json)
    except (OSError, OverspillError) as problem:
        code = ending.report_failure(problem)
    _leave(record, code)


def _read_question(file: Path | None, words: Sequence[str]) -> tuple[Path, str]:
    rest = list(words)
    if file is None:
        if not rest:
            raise click.UsageError("Name an agent file: overspill run FILE QUESTION.")
        file = Path(rest.pop(0))
    if len(rest) > 1:
        raise click.UsageError(f"One question is asked at a time, and there are {len(rest)}. Put it in quotes.")
    question = rest[0] if rest and rest[0] != "-" else _standard_input()
    if not question.strip():
        raise click.UsageError("There is no question. Give it as an argument or on standard input.")
    return file, question


def _standard_input() -> str:
    try:
        return output.standard_input("Reading the question").read().decode("utf-8")
    except UnicodeDecodeError:
        raise click.UsageError("Standard input is not UTF-8 text.") from None


def _sources(models: Sequence[str], overrides: Sequence[str], options: Mapping[str, Any]) -> Sources:
    given = parse_assignments(options["assignments"], "--set")
    named = {
        "preset": options["preset"],
        "models": list(models) or None,
        "toolResponseMaxBytes": options["tool_response_max_bytes"],
        "async": options["async_"],
    }
    command_line = given | {key: value for key, value in named.items() if value is not None}
    return Sources(command_line, parse_assignments(overrides, "--override"), tuple(config_files(options["config"])))


def _functions(references: Sequence[str]) -> dict[str, str]:
    named: dict[str, str] = {}
    for reference in references:
        name, equals, rest = reference.partition("=")
        if equals:
            named[name] = rest
        else:
            named[reference.rpartition(":")[2].rpartition(".")[2]] = reference
    return named


async def _run(
    agent: Agent, question: str, functions: Mapping[str, str], served: Mapping[str, Endpoint], shown: ProgressView
) -> tuple[RunRecord, int]:
    """What the functions print must not stand in the report's way."""
    control = RunControl()
    ended_by: list[int] = []
    problem: OverspillError | None = None
    record: RunRecord | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(_heed_signals, control, shown, ended_by)
        try:
            with redirect_stdout(sys.stderr):
                record = await run_agent(
                    agent,
                    question,
                    functions=functions,
                    endpoints=served,
                    control=control,
                    observe=shown.observe,
                    environ=os.environ,
                )
        except OverspillError as error:  # raised outside: the group would wrap it
            problem = error
        group.cancel_scope.cancel()
    if problem is not None:
        raise problem
    assert record is not None
    return record, 143 if signal.SIGTERM in ended_by else EXIT_CODES[record.outcome.status]


async def _heed_signals(control: RunControl, shown: ProgressView, ended_by: list[int]) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            if number == signal.SIGINT and not control.stopping:
                shown.say("Stopping: what runs comes to its end, then the final report is asked for. Ctrl-C again aborts.")
                control.stop()
            else:
                ended_by.append(number)
                control.abort()


def _conclude(record: RunRecord, snapshot: Path | None, accounting: Path | None, *, as_json: bool) -> None:
    try:
        _print(record, as_json=as_json)
    finally:  # also when nobody reads the report
        if snapshot is not None:
            write_snapshot(snapshot, record)
        if accounting is not None:
            append_accounting(accounting, record)


def _leave(record: RunRecord, code: int) -> NoReturn:
    if not record.threads:
        sys.exit(code)
    # The interpreter would wait for the threads of tools, which nobody can interrupt.
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  # else what is stored stays until the next run
    ending.drop_unwritten()
    os._exit(code)


def _print(record: RunRecord, *, as_json: bool) -> None:
    outcome = record.outcome
    if as_json:
        output.print_json(
            {
                "status": outcome.status,
                "report": outcome.report and {"format": outcome.report.format, "content": outcome.report.value},
                "why": outcome.why,
                "early": outcome.early,
                "agent": record.agent,
                "session": record.session,
                "turns": outcome.turns,
                "seconds": round((record.ended - record.started) / 1000, 3) if record.ended else 0.0,
                "totals": record.totals,
                "warnings": record.warnings,
            }
        )
    elif outcome.report is not None:
        click.echo(visible(outcome.report.content) if on_terminal() else clean(outcome.report.content))
    if outcome.report is None:
        say(outcome.why)
    elif outcome.report.source == "text":
        click.echo("overspill: The model answered in plain words; that is taken for its report.", err=True)
    if outcome.report is not None and outcome.early:
        say(f"The report was asked for early: {outcome.early}")
