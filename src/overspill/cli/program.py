"""The commands. A command's module is imported when the command runs, not before."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper
from threading import Lock
from typing import Any, NoReturn, cast

import click

from overspill import __version__
from overspill.cli import terminal
from overspill.cli.common_options import CommandGroup, add_common_options, make_common_options
from overspill.cli.surroundings import Surroundings
from overspill.cli.terminal import report_usage
from overspill.errors import OverspillError

HEADINGS = {
    "Connect": {
        "wrap": ("overspill.cli.commands.wrap:wrap", "Run a client's MCP servers through Overspill."),
        "unwrap": ("overspill.cli.commands.wrap:unwrap", "Undo `wrap`."),
        "login": ("overspill.cli.commands.login:login", "Log in to an MCP server."),
        "logout": ("overspill.cli.commands.login:logout", "Delete a login, and ask the server to revoke it."),
        "proxy": ("overspill.cli.commands.proxy:proxy", "Run MCP servers behind Overspill."),
        "serve": ("overspill.cli.commands.hook:serve", "Serve what hooks have stored, over MCP."),
        "hook": ("overspill.cli.commands.hook:hook", "Answer a hook of a coding agent."),
        "skill": ("overspill.cli.commands.help:skill", "Print what to tell a coding agent about `keep` and `get`."),
    },
    "Read": {
        "extract": ("overspill.cli.commands.extract:extract", "Print the parts of a file or stream that answer a question."),
        "keep": ("overspill.cli.commands.keep:keep", "Run a command, and store its output if it is large."),
        "get": ("overspill.cli.commands.get:get", "Read a stored output: lines, matches, a query, an answer."),
        "sql": ("overspill.cli.commands.sql:sql", "Query files as tables, with SQL."),
        "python": ("overspill.cli.commands.python:python", "Run a Python program over files or stored outputs, in a sandbox."),
    },
    "Run": {
        "run": ("overspill.cli.commands.run:run", "Run an agent from a file and print its final report."),
        "snapshot": ("overspill.cli.commands.snapshot:snapshot", "Show what `run --snapshot` recorded."),
        "worker": ("overspill.cli.commands.worker:worker", "Run the slow tools of sessions, on any number of machines."),
    },
    "Look after": {
        "doctor": ("overspill.cli.commands.doctor.command:doctor", "Check your settings, models, stores and servers."),
        "config": ("overspill.cli.commands.help:config", "Show the settings in effect and where each comes from."),
        "artifacts": ("overspill.cli.commands.artifacts:artifacts", "List, show, export and remove stored outputs."),
        "verify": ("overspill.cli.commands.artifacts:verify", "Check stored outputs against their checksums."),
        "stats": ("overspill.cli.commands.stats:stats", "Show how much was kept and retrieved."),
        "jobs": ("overspill.cli.commands.stats:jobs", "List the background jobs of live sessions."),
        "view": ("overspill.cli.commands.view:view", "Look at sessions and stored outputs in a browser."),
        "hub": ("overspill.cli.commands.hub:hub", "See and stop the process that serves all conversations."),
        "help": ("overspill.cli.commands.help:help_", "Show how to use a command."),
    },
}
"""The commands below each heading of `overspill --help`: where to find each, and its line there."""
_loading = Lock()
"""A hub prepares several fronts at the same time, and one must not get a command that another is still importing."""
COMMANDS = {name: found for commands in HEADINGS.values() for name, found in commands.items()}


class Commands(CommandGroup):
    """Loads a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, attribute = COMMANDS[cmd_name][0].partition(":")
        with _loading:
            is_new = module not in sys.modules  # in a hub, garbage would stay forever if each front froze it again
            if is_new:
                gc.disable()  # imports leave little garbage, and collecting it takes a tenth of the time
            try:
                return add_common_options(getattr(import_module(module), attribute))
            finally:
                if is_new:
                    gc.freeze()  # modules never become garbage, so later collections need not look at them
                gc.enable()

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, COMMANDS))
        for heading, commands in HEADINGS.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), help) for name, (_, help) in commands.items()])


@click.group(cls=Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-V", "--version", message="overspill %(version)s")
@click.pass_context
def overspill(context: click.Context) -> None:
    """Store large tool outputs whole, outside your model's context, and keep slow tools running in the background.

    On a terminal, `overspill` alone finds the MCP clients on this machine, shows what it would change in each, and asks.
    """
    if context.invoked_subcommand is None:
        if not terminal.can_ask():
            raise click.exceptions.NoArgsIsHelpError(context)
        context.invoke(import_module("overspill.cli.commands.wrap").wrap, hooks=True)


overspill.params += make_common_options()


def main(args: Sequence[str] | None = None) -> NoReturn:
    terminal.hold_closed_streams()
    if isinstance(sys.stdout, TextIOWrapper):
        # Characters that the locale cannot encode are escaped, as on standard error.
        cast("TextIOWrapper", sys.stdout).reconfigure(errors="backslashreplace")
    try:
        code = _run(args)
    except (OSError, OverspillError) as problem:
        code = terminal.report_failure(problem)
    terminal.drop_unwritten()
    atexit.register(gc.freeze)  # Python would otherwise look at every object again before it exits
    sys.exit(code)


def prepare(args: Sequence[str], around: Surroundings) -> object:
    """Run a serving command for a front, and return what it would serve, or its exit code. Used by the hub."""
    store = around.environ.get("OVERSPILL_STORE")
    usual = {args[0]: {"store": store}} if store else {}
    try:
        return _call(args, obj=around, default_map=usual)
    except (OSError, OverspillError) as problem:
        return terminal.report_failure(problem)


def _call(args: Sequence[str] | None, **options: Any) -> object:
    """Run a command, and return what it returns, or its exit code."""
    try:
        return overspill.main(args, prog_name="overspill", standalone_mode=False, **options)
    except SystemExit as end:
        return end.code
    except click.ClickException as problem:
        report_usage(problem)
        return problem.exit_code
    except click.Abort:
        return 130


def _run(args: Sequence[str] | None) -> int:
    stdout, stderr = sys.stdout, sys.stderr
    code = _call(args)
    if sys.stdout is not stdout:
        # If the reader has gone, click replaces both streams and exits with 1, which means something else in our commands.
        sys.stdout, sys.stderr = stdout, stderr
        raise BrokenPipeError
    stdout.flush()
    return code if isinstance(code, int) else 0
