"""`overspill hub`: see, stop and run the process that serves all conversations."""

from __future__ import annotations

import json
import os
import sys
import time
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import click

from overspill.cli import output
from overspill.cli.common_options import CommandGroup
from overspill.cli.hub_sockets import ask, take_place
from overspill.cli.launching import find_launch
from overspill.cli.logs import show_log
from overspill.cli.settings import lists_folder
from overspill.cli.signals import run_until_signal
from overspill.cli.terminal import inform
from overspill.errors import OverspillError
from overspill.hub.place import Place, find_switch
from overspill.hub.unit import list_left_out, make_unit
from overspill.text.humanize import count_noun, escape_line

_IDLE_MINUTES = 10.0
_END_SECONDS = 20.0


@click.group(cls=CommandGroup)
def hub() -> None:
    """See and stop the process that serves all conversations.

    The first `overspill proxy` starts a hub. It ends by itself when it has been unused for a while.
    """


@hub.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(*, as_json: bool) -> None:
    """Show whether a hub is running and what it serves."""
    found = list_hubs()
    if as_json:
        click.echo(json.dumps(found))
        return
    for line in [line for each in found for line in describe(each)] or ["No hub is running."]:
        click.echo(line)


@hub.command()
def on() -> None:
    """Make all your proxies use the hub from now on, including those that clients start. On Linux, this is the default."""
    _turn("on")
    click.echo(f"Proxies that start from now on use the hub. Restart your clients. To undo: {output.program()} hub off")


@hub.command()
def off() -> None:
    """Make each proxy work alone from now on. Those that use the hub keep using it until they end."""
    _turn("off")
    click.echo(f"Proxies that start from now on work alone. To undo: {output.program()} hub on")


def _turn(state: str) -> None:
    for each in ("on", "off"):
        switch = Path(find_switch(os.environ, each))
        if each == state:
            switch.parent.mkdir(0o700, parents=True, exist_ok=True)
            switch.touch(0o600)
        else:
            switch.unlink(missing_ok=True)


@hub.command()
def stop() -> None:
    """Stop the hub, and with it the servers of all conversations."""
    _end(b"stop", "stopped.")


@hub.command()
def restart() -> None:
    """Replace the hub. Conversations stay: their calls end first, and their next calls go to the new hub."""
    _end(b"restart", "ended. The next call starts another.")


@hub.command()
def logs() -> None:
    """Print the log of the hub. Messages about a conversation go to its proxy's standard error instead."""
    logs = [log for place in Place.every(os.environ) if (log := Path(place.log)).exists()]
    for log in logs:
        if len(logs) > 1:
            click.echo(f"{log}:")
        click.echo(log.read_text("utf-8", "backslashreplace"), nl=False)
    if not logs:
        click.echo("There is no log yet.")


_port_option = click.option(
    "--port", type=click.IntRange(1024, 65535), metavar="NUMBER", help="Also serve clients over HTTP, on this port of 127.0.0.1."
)


@hub.command()
@click.option("--print", "dry", is_flag=True, help="Show the unit, and write nothing.")
@_port_option
def install(*, dry: bool, port: int | None) -> None:
    """Write a unit of systemd, or on macOS of launchd, that starts the hub when you log in and never ends it.

    You don't need this: the first proxy starts a hub. Only `overspill wrap --hub-http` needs it, with --port. Nothing is started
    now; the command says how to.
    """
    unit = make_unit(os.environ, sys.platform, find_launch(os.environ), port)
    if dry:
        click.echo(unit.text, nl=False)
        return
    unit.install()
    click.echo(f"Wrote {escape_line(str(unit.file))}. Nothing was started. To start the hub now and at each login:")
    click.echo(f"  {unit.start}")
    if port:
        click.echo(f"Then let a client that speaks HTTP use it, for example: {output.program()} wrap cursor --hub-http")
    if names := list_left_out(os.environ):
        click.echo(f"Clients that have these variables, which may hold secrets, get another hub: {', '.join(names)}.")
    click.echo(f"To undo: {output.program()} hub uninstall")


@hub.command()
def uninstall() -> None:
    """Remove what overspill hub install wrote. A hub that runs is not stopped."""
    unit = make_unit(os.environ, sys.platform, ["overspill"])
    if not unit.uninstall():
        click.echo("No unit of Overspill is installed.")
        return
    click.echo(f"Removed {escape_line(str(unit.file))}. If the hub was started by it, this ends it: {unit.stop}")


@hub.command()
@click.option(
    "--idle-minutes",
    type=click.FloatRange(0),
    default=_IDLE_MINUTES,
    show_default=True,
    help="End after this long unused; 0: never.",
)
@_port_option
@click.option("--at", hidden=True)
@click.option("--inherit", hidden=True)
def run(idle_minutes: float, port: int | None, at: str | None, inherit: str | None) -> None:
    """Run the hub in the foreground, for systemd or launchd."""
    # Imported late: the other commands do not need it.
    from overspill.cli.hubbed import serve_front
    from overspill.cli.serving import SharedParts
    from overspill.hub.link import route_errors
    from overspill.hub.process import Hub

    with suppress(ImportError):  # Python was built without ctypes
        from overspill.hub.memory import keep_memory_together

        keep_memory_together()
    held = take_place(at, inherit, port)
    kept = [os.dup(each.fileno()) for each in (held.listener, held.http) if each] if port else []
    is_replaced = False

    async def serve(stop: anyio.Event) -> None:
        nonlocal is_replaced
        idle_seconds = idle_minutes * 60 or float("inf")
        serve_one, lists = partial(serve_front, SharedParts()), Path(lists_folder())
        hub = Hub(held.place, serve_one, os.environ, lists, idle_seconds, stop, port or 0)
        async with anyio.create_task_group() as group:
            if held.http:
                from overspill.cli.hub_http import TokenHolders

                group.start_soon(TokenHolders(hub).serve, held.http, stop)
            await hub.run(held.listener)
        is_replaced = hub.is_replaced

    route_errors()
    with show_log():
        inform(f"hub {os.getpid()} listens at {held.place.socket}{f' and on port {port}' if port else ''}")
        anyio.run(run_until_signal, serve)
        inform(f"hub {os.getpid()} {'starts again' if is_replaced else 'ends'}")
    if is_replaced:  # the same process, for who looks after it, with the same sockets, at which nobody is turned away meanwhile
        options = ("--port", str(port), "--idle-minutes", str(idle_minutes))
        held.place.execute([kept[0], held.lock, kept[1]], os.environ, *options)


def list_hubs() -> list[dict[str, Any]]:
    """Return the status of each running hub. Raises OverspillError if a hub does not answer."""
    return [told for place in Place.every(os.environ) if (told := ask(place, b"status")) is not None]


def _end(query: bytes, done: str) -> None:
    count = sum(_end_one(place, query) for place in Place.every(os.environ))
    which = "The hub has" if count == 1 else f"{count} hubs have"
    click.echo(f"{which} {done}" if count else "No hub is running.")


def _end_one(place: Place, query: bytes) -> bool:
    """End a hub, and return whether it was running. Fronts may start another hub right after this one is gone."""
    if (told := ask(place, query)) is None:
        return False
    deadline = time.monotonic() + _END_SECONDS
    while (lock := place.take_lock()) is None and (ask(place, b"status", _END_SECONDS) or told)["began"] == told["began"]:
        if time.monotonic() > deadline:
            raise OverspillError("The hub has not ended yet. Calls are still running, or it hangs.")
        time.sleep(0.05)
    if lock is not None:
        os.close(lock)
    return True


def describe(found: dict[str, Any]) -> list[str]:
    lines = [f"A hub is running: {_describe_hub(found)}.", f"It serves {_count_fronts(found)}."]
    for whose, servers in _list_conversations(found):
        lines += [f"{whose}:", *(f"  {each}" for each in servers)]
    return lines


def list_facts() -> list[tuple[str, str]]:
    """List each hub, and the servers of each conversation, for other commands. Empty if no hub is running."""
    try:
        found = list_hubs()
    except OverspillError as problem:
        return [("Hub", str(problem))]
    facts: list[tuple[str, str]] = []
    for each in found:
        facts.append(("Hub", f"{_describe_hub(each)}; {_count_fronts(each)}"))
        facts += [(f"Conversation of {whose}", "; ".join(servers)) for whose, servers in _list_conversations(each)]
    return facts


def _describe_hub(found: dict[str, Any]) -> str:
    port = f", port {found['port']}" if found.get("port") else ""
    return f"process {found['pid']}, version {found['version']}, {memory_of(found['pid'])}{port}"


def _count_fronts(found: dict[str, Any]) -> str:
    fronts: list[dict[str, Any]] = [front for front in found["fronts"] if not front.get("overHttp")]
    conversations, over_http = {front["conversation"] for front in fronts}, len(found["fronts"]) - len(fronts)
    clients = f" and {count_noun(over_http, 'client')} over HTTP" if over_http else ""
    return f"{count_noun(len(conversations), 'conversation')} through {count_noun(len(fronts), 'front')}{clients}"


def _list_conversations(found: dict[str, Any]) -> list[tuple[str, list[str]]]:
    """List for each conversation the process that it belongs to, and its servers. For HTTP, the client's file."""
    servers: dict[str, list[str]] = {}
    users: dict[int | None, set[str]] = {}
    named = [(_name(front), front["servers"]) for front in sorted(found["fronts"], key=lambda each: each["conversation"])]
    for whose, theirs in named:
        for server in theirs:
            users.setdefault(server["pid"], set()).add(whose)
    for whose, theirs in named:
        servers.setdefault(whose, []).extend(_describe_server(server, users[server["pid"]] - {whose}) for server in theirs)
    return [*servers.items()]


def _name(front: dict[str, Any]) -> str:
    number = front["conversation"]
    return front.get("overHttp") or (f"process {number}" if number > 0 else "a client whose process is unknown")


def _describe_server(server: dict[str, Any], others: set[str]) -> str:
    if not server["pid"]:
        return f"{server['name']}: {server['state']}"
    shared = f", shared with {', '.join(sorted(others))}" if others else ""
    return f"{server['name']}: process {server['pid']}, {memory_of(server['pid'])}{shared}"


def memory_of(pid: int) -> str:
    """Return how much memory a process does not share with others."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            size = next(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    except (OSError, StopIteration):
        return "memory unknown"
    return f"{size / 1000:.1f} MB"
