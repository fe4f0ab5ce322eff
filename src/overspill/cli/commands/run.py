"""`overspill run`: run an agent from a file. The question is an argument or standard input."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import anyio
import click

from overspill.agent import Agent, RunControl, RunRecord, Sources, load_agent, run_agent
from overspill.agent.record import append_accounting, may_replace, write_snapshot
from overspill.agent.wording import still_running
from overspill.calls.tasks import open_group
from overspill.cli import output, terminal
from overspill.cli.logs import find_observers
from overspill.cli.progress import ProgressView, progress
from overspill.cli.settings import command_line, endpoints, parse_assignments, settings_options, user_config_dir
from overspill.cli.terminal import is_verbose, on_terminal, report_error, warn
from overspill.errors import OverspillError, SettingsError
from overspill.models.endpoints import Endpoint
from overspill.settings.files import file_exists, file_layers
from overspill.text.encoding import clean
from overspill.text.humanize import escape_invisible

EXIT_CODES = {"reported": 0, "unreported": 1, "failed": 3, "aborted": 130}


@click.command()
@click.argument("words", nargs=-1, metavar="[FILE] [QUESTION]")
@click.option(
    "--agent", "file", type=click.Path(path_type=Path), metavar="FILE", help="The agent file, if it is not the first argument."
)
@click.option(
    "--model", "models", multiple=True, metavar="PROVIDER/MODEL", help="Ask this model. Repeat to name others to try next."
)
@click.option(
    "--tool-response-max-bytes", type=int, metavar="N", help="Keep outputs that are larger than this; 0 turns the limit off."
)
@click.option("--async/--no-async", "async_", default=None, help="Whether slow tools keep running in the background.")
@click.option(
    "--function",
    "functions",
    multiple=True,
    metavar="[NAME=]MODULE:FUNCTION",
    help="Offer a Python function as a tool. Can be repeated.",
)
@click.option("--override", "overrides", multiple=True, metavar="KEY=VALUE", help="Like --set, but also for the agents it calls.")
@click.option(
    "--snapshot",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Record the whole run in FILE, however it ends. Replaces an older snapshot.",
)
@click.option("--accounting", type=click.Path(path_type=Path), metavar="FILE", help="Append one JSON line for each call to FILE.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON: the report, and how the run went.")
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
    """Run the agent in FILE and print its final report. Without QUESTION, the question is read from standard input.

    \b
    overspill run examples/scripted.ai "Why did the deployment fail?" --config examples/config.yaml
    echo "What is a preset?" | overspill run --agent examples/files.ai --config examples/config.yaml --model ollama/qwen3:8b

    Only the report goes to standard output. Press Ctrl-C to let running tools finish and get the report early; press it again to
    abort. Exit codes: 0 reported, 1 no report, 2 a mistake in the input, 3 the run failed (no model answered), 130 aborted.
    """
    for path in filter(None, (snapshot, accounting)):
        if not file_exists(path) and not path.absolute().parent.is_dir():
            raise SettingsError(f"The folder of {path} does not exist. Create it first.")
    if snapshot is not None and not may_replace(snapshot):
        raise SettingsError(f"{snapshot} already exists and is not a snapshot. Choose another name.")
    file, words = _find_file(file, words)
    named = _name_functions(functions)
    agent = load_agent(file, _collect_sources(models, overrides, options))
    question = _read_question(words)
    with progress(verbose=verbose or is_verbose()) as view:
        record, code = anyio.run(_run, agent, question, named, endpoints(agent.settings, os.environ, models), view)
    try:
        _conclude(record, snapshot, accounting, as_json=as_json)
    except (OSError, OverspillError) as problem:
        code = terminal.report_failure(problem)
    if not record.threads:
        sys.exit(code)
    # The interpreter would wait for the threads of tools, which cannot be interrupted.
    atexit._run_exitfuncs()  # pyright: ignore[reportPrivateUsage]  # otherwise stored outputs stay until the next run
    terminal.drop_unwritten()
    os._exit(code)


def _find_file(file: Path | None, words: tuple[str, ...]) -> tuple[Path, tuple[str, ...]]:
    if file is None:
        if not words:
            raise click.UsageError("No agent file. Usage: overspill run FILE QUESTION.")
        file, words = Path(words[0]), words[1:]
    if len(words) > 1:
        raise click.UsageError(f"Expected one question, but got {len(words)} arguments. Put the question in quotes.")
    return file, words


def _read_question(words: Sequence[str]) -> str:
    """Return the question. Call this last: without an argument, it waits for standard input."""
    is_given = bool(words) and words[0] != "-"
    try:
        question = words[0] if is_given else output.standard_input("Reading the question").read().decode("utf-8")
    except UnicodeDecodeError:
        raise click.UsageError("Standard input is not UTF-8 text.") from None
    if not question.strip():
        raise click.UsageError("No question. Pass it as an argument or on standard input.")
    return question


def _collect_sources(models: Sequence[str], overrides: Sequence[str], options: Mapping[str, Any]) -> Sources:
    assigned = command_line(None, options["assignments"])
    options_given = {
        "preset": options["preset"],
        "models": list(models) or None,
        "toolResponseMaxBytes": options["tool_response_max_bytes"],
        "async": options["async_"],
    }
    given = assigned | {key: value for key, value in options_given.items() if value is not None}
    files = file_layers(options["config"], Path(), user_config_dir())
    return Sources(given, parse_assignments(overrides, "--override"), tuple(files))


def _name_functions(references: Sequence[str]) -> dict[str, str]:
    named: dict[str, str] = {}
    for given in references:
        name, equals, reference = given.partition("=")
        if not equals:
            name, reference = given.rpartition(":")[2].rpartition(".")[2], given
        if named.setdefault(name, reference) != reference:
            raise SettingsError(
                f"--function {given}: another function is already called {name}. Choose a name: --function NAME={reference}."
            )
    return named


async def _run(
    agent: Agent, question: str, functions: Mapping[str, str], available: Mapping[str, Endpoint], view: ProgressView
) -> tuple[RunRecord, int]:
    """Run the agent. What functions print goes to standard error, so that standard output has only the report."""
    control, ended_by = RunControl(), list[int]()
    async with open_group() as group:
        group.start_soon(_watch_signals, control, view, ended_by)
        with redirect_stdout(sys.stderr):
            record = await run_agent(
                agent,
                question,
                functions=functions,
                endpoints=available,
                control=control,
                observe=view.observe,
                environ=os.environ,
                observers=find_observers(),
            )
        group.cancel_scope.cancel()
    return record, terminal.TERMINATED if signal.SIGTERM in ended_by else EXIT_CODES[record.outcome.status]


async def _watch_signals(control: RunControl, view: ProgressView, ended_by: list[int]) -> None:
    with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM) as signals:
        async for number in signals:
            if number == signal.SIGINT and not control.is_stopping:
                view.log("Stopping: running tools finish, then the agent reports. Press Ctrl-C again to abort.")
                control.stop()
            else:
                ended_by.append(number)
                control.abort()


def _conclude(record: RunRecord, snapshot: Path | None, accounting: Path | None, *, as_json: bool) -> None:
    try:
        _print(record, as_json=as_json)
    finally:  # even if the report cannot be printed
        if snapshot is not None:
            write_snapshot(snapshot, record)
        if accounting is not None:
            append_accounting(accounting, record)


def _print(record: RunRecord, *, as_json: bool) -> None:
    outcome, report = record.outcome, record.outcome.report
    if as_json:
        described = {
            "status": outcome.status,
            "report": report and {"format": report.format, "content": report.value},
            "why": outcome.why,
            "early": outcome.early,
            "running": outcome.running,
            "agent": record.agent,
            "session": record.session,
            "turns": outcome.turns,
            "seconds": round((record.ended - record.started) / 1000, 3) if record.ended else 0.0,
            "totals": record.totals,
            "warnings": record.warnings,
        }
        output.print_json(described)
    elif report is not None:
        click.echo(escape_invisible(report.content) if on_terminal() else clean(report.content))
    if report is None:
        report_error(outcome.why)
    elif report.source == "text":
        warn("The model did not mark its answer as the final report. Its last answer is used.")
    if report is not None and outcome.early:
        warn(f"The agent had to report early: {outcome.early}")
    if outcome.running:
        warn(still_running(outcome.running))
