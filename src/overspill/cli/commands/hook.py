"""`overspill hook`: called by a coding agent with what a tool returned. `overspill serve`: the tools that read it back."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import cast

import click

from overspill.cli.common_options import group_name
from overspill.cli.surroundings import find_surroundings
from overspill.cli.terminal import inform, lacks_mcp
from overspill.hooks.shapes import (
    HOOKS,
    MAX_EVENT_BYTES,
    SMALL_EVENT_BYTES,
    Client,
    Unusable,
    decode,
    family_of,
    find_project,
    find_text,
    has_forgotten,
)

SETTINGS_FILES = (".overspill.yaml", ".overspill.yml", ".overspill.json")


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("client", nargs=-1, type=click.UNPROCESSED)  # a mistake here must not end with 2, which blocks the agent's tools
def hook(client: tuple[str, ...]) -> None:
    """Answer a hook event of a coding agent: its tool's output, if that is large, is stored and replaced. After the agent has
    compacted or resumed a conversation, list what can still be read.

    CLIENT is claude-code or gemini-cli, which calls this with the event on standard input. Standard output is empty if the
    original output stays, as it does whenever something goes wrong. The exit code is always 0.
    """
    try:
        answer = _answer(client)
    except Unusable as reason:
        inform(f"The original output stays: {reason}.")
    except Exception as problem:  # of any kind: the agent must be able to continue with the original
        inform(f"The original output stays: {type(problem).__name__}: {problem}")
    else:
        sys.stdout.buffer.write(answer)


def _answer(given: tuple[str, ...]) -> bytes:
    if len(given) != 1 or given[0] not in HOOKS:
        raise Unusable(f"`overspill hook` takes one of {', '.join(HOOKS)}")
    client = cast("Client", given[0])
    data = sys.stdin.buffer.read(MAX_EVENT_BYTES + 1)
    if len(data) > MAX_EVENT_BYTES:
        raise Unusable(f"the event is larger than {MAX_EVENT_BYTES:,} bytes")
    event = decode(data)
    # Settings may have lower limits than usual.
    base = Path(os.environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config"))
    has_settings = os.path.exists(base / "overspill") or any(map(os.path.lexists, SETTINGS_FILES))
    is_reminder = has_forgotten(client, event)
    if not is_reminder and len(data) <= SMALL_EVENT_BYTES and not has_settings:
        return b""
    found = None if is_reminder else find_text(client, event)
    # Imported late: most outputs are small and do not need it, and the agent waits for each of them.
    import anyio

    from overspill.cli.settings import load_settings
    from overspill.hooks.keeping import ASSIGNMENTS, HOOK_DEFAULTS, keep, remind
    from overspill.text.lenient_json import dumps

    settings = load_settings(None, None, ASSIGNMENTS, [HOOK_DEFAULTS], lasting="hook", forgiving=True).settings
    project = find_project(client, os.environ, Path())
    if found is None:
        answer = remind(client, project, settings)
    else:
        answer = anyio.run(keep, client, project, event, found, settings, os.environ)
    return b"" if answer is None else dumps(answer)


@click.command()
@click.argument("client", type=group_name)
def serve(client: str) -> object:
    """Serve the tools that read what others have stored, over MCP on standard input and output.

    CLIENT is claude-code or gemini-cli for what `overspill hook` stores, or the name that `overspill proxy --group` was given. It
    reads the outputs of that client in this project folder, without those of other clients that still run, and nothing else.
    """
    if find_spec("mcp") is None:
        raise lacks_mcp("serve")
    from overspill.cli.serving import serve_outputs

    around = find_surroundings()
    return serve_outputs(family_of(client, find_project(client, around.environ, around.folder)))
