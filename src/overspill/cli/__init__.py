"""The command line: parsing and rendering only. A command's module is imported when the command runs, not before."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from typing import NamedTuple, NoReturn, cast

import click

from overspill.cli import ending
from overspill.errors import OverspillError


class Entry(NamedTuple):
    """Where a command is, and the line that `overspill --help` shows for it."""

    target: str
    help: str


COMMANDS = {
    "proxy": Entry("overspill.cli.proxy:proxy", "Run MCP servers behind Overspill."),
    "extract": Entry("overspill.cli.extract:extract", "Print the parts of a file or stream that answer a question."),
    "run": Entry("overspill.cli.run:run", "Run an agent from a file and print its final report."),
    "snapshot": Entry("overspill.cli.snapshot:snapshot", "Look into what `run --snapshot` wrote."),
    "artifacts": Entry("overspill.cli.artifacts:artifacts", "List, show, export and clean what is stored."),
    "verify": Entry("overspill.cli.verify:verify", "Check stored outputs against their SHA-256."),
    "stats": Entry("overspill.cli.stats:stats", "Count what was kept and retrieved."),
    "jobs": Entry("overspill.cli.jobs:jobs", "List background jobs of live sessions."),
    "wrap": Entry("overspill.cli.wrap:wrap", "Run a client's MCP servers through Overspill."),
    "unwrap": Entry("overspill.cli.wrap:unwrap", "Run them without Overspill again."),
    "doctor": Entry("overspill.cli.doctor.command:doctor", "Check settings, models, store and servers, and say what is wrong."),
    "config": Entry("overspill.cli.config:config", "Show the settings in effect and where each comes from."),
}


class Commands(click.Group):
    """A group whose commands stay unloaded until one is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name].target.partition(":")
        return getattr(import_module(module), attribute)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in COMMANDS and not args[0].startswith("-"):
            near = get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"No such command {args[0]!r}." + (f" Did you mean {near[0]!r}?" if near else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="overspill", message="overspill %(version)s")
def overspill() -> None:
    """Large tool outputs kept whole and out of the context, slow tools off the turn."""


def main(args: Sequence[str] | None = None) -> NoReturn:
    if isinstance(sys.stdout, TextIOWrapper):
        # What an old locale cannot show is shown as standard error shows it.
        cast("TextIOWrapper", sys.stdout).reconfigure(errors="backslashreplace")
    try:
        code = _run(args)
        ending.flush()
    except (OSError, OverspillError) as problem:
        code = ending.report_failure(problem)
    ending.drop_unwritten()
    sys.exit(code)


def _run(args: Sequence[str] | None) -> int:
    stdout, stderr = sys.stdout, sys.stderr
    try:
        code = overspill.main(args, prog_name="overspill", standalone_mode=False)
    except SystemExit as end:
        code = end.code
    except click.ClickException as problem:
        problem.show()
        code = problem.exit_code
    except click.Abort:
        code = 130
    if sys.stdout is not stdout:
        # Click replaces both when the reader has gone, and ends with 1, which here is an answer.
        sys.stdout, sys.stderr = stdout, stderr
        raise BrokenPipeError
    return code if isinstance(code, int) else 0
