"""`overspill worker`: runs tools for sessions that have a queue."""

from __future__ import annotations

import logging
import os
import sys
from functools import partial
from importlib.util import find_spec
from typing import Any

import anyio
import click

from overspill.cli.common_options import grace_option
from overspill.cli.settings import load_settings, settings_options
from overspill.cli.signals import serve_until_signal
from overspill.cli.terminal import inform
from overspill.errors import MissingPackage, SettingsError


@click.command()
@click.option("--tools", "module", required=True, metavar="MODULE", help="The module, or the file, that registers your tools.")
@click.option(
    "--jobs",
    metavar="URL",
    envvar="OVERSPILL_JOBS",
    help="The queue, e.g. docket+redis://127.0.0.1:6379/0. Put a URL with a password into OVERSPILL_JOBS instead.",
)
@click.option(
    "--max-running",
    type=click.IntRange(1),
    default=10,
    metavar="N",
    show_default=True,
    help="How many calls run at the same time.",
)
@grace_option(30.0)
@click.option("--insecure", is_flag=True, help="Use a queue on another machine without TLS or without a password.")
@settings_options
def worker(module: str, jobs: str | None, max_running: int, grace: float, insecure: bool, **options: Any) -> None:
    """Run the slow tools of sessions that were opened with `jobs`. Start as many workers as you like.

    \b
    overspill worker --tools my_tools --store s3://bucket/prefix --jobs docket+rediss://:password@queue.example.com/0

    The first SIGTERM or Ctrl-C lets running calls finish. The second cancels them.
    """
    if find_spec("docket") is None:
        raise MissingPackage("`overspill worker`", "docket")
    from overspill.settings.opening import open_configured_store, store_place
    from overspill.task_queue.address import parse_address
    from overspill.worker.serve import ToolWorker, WorkerOptions
    from overspill.worker.tools import load_tools

    settings = load_settings(**options).settings
    place = jobs or settings.jobs
    if not place:
        raise SettingsError("There is no queue. Give its URL with --jobs, in OVERSPILL_JOBS, or as `jobs` in your config file.")
    if store_place(settings) is None:
        raise SettingsError("A worker needs a store that your sessions use too. Give its URL with --store or in OVERSPILL_STORE.")
    address = parse_address(place, insecure=insecure)
    tools = load_tools(module)
    logging.getLogger("docket").setLevel(logging.CRITICAL)  # we report a lost server ourselves; it would write a traceback
    limits = WorkerOptions(max_running=max_running, grace_seconds=grace)
    serving = ToolWorker(tools, open_configured_store(settings), address, settings, limits, os.environ)
    ready = partial(inform, f"running {', '.join(tools)} for {address.shown}")

    async def run(stop: anyio.Event) -> None:
        logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="overspill: %(message)s")
        await serving.serve(stop, ready)

    serve_until_signal(run)
