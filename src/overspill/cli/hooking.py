"""Keep the output of a hook's event, with the settings of this process."""

from __future__ import annotations

from functools import partial

import anyio

from overspill.cli.settings import lasting_store, load_settings
from overspill.hooks.keeping import ASSIGNMENTS, HOOK_DEFAULTS, keep
from overspill.hooks.shapes import Client, Found, HookEvent
from overspill.settings import Layer
from overspill.text.lenient_json import dumps


def keep_output(client: Client, project: str, event: HookEvent, found: Found) -> bytes:
    """The answer for the client; empty if the output passes."""
    store = Layer("hook", {"storeDir": lasting_store()})
    settings = load_settings(None, None, ASSIGNMENTS, usual=[HOOK_DEFAULTS, store], forgiving=True).settings
    answer = anyio.run(partial(keep, client, project, event, found, settings))
    return b"" if answer is None else dumps(answer)
