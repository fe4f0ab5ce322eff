"""What a model reads when it calls Overspill from a shell: commands instead of tool calls, and when to use them."""

from __future__ import annotations

import shlex
from typing import Literal

COMMAND: Literal["overspill get"] = "overspill get"
"""The command's name among the tools that a model is offered."""

SKILL = """\
## Large command output

Prefix commands that may print much (tests, builds, logs, searches, API calls) with `overspill keep`, and say what you need:

    overspill keep --for "failing tests and why" -- pytest -q
    kubectl logs web-0 | overspill keep --for "requests that failed, with their ids"

Small output is printed unchanged. Large output is stored whole, and you see the parts that answer plus a name such as
`out_3f7k9q`. The exit code is the command's own. Do not run the command again to see more of its output. Read it back:

    overspill get out_3f7k9q --ask "the first error and its stack trace"
    overspill get out_3f7k9q --grep "ERROR|WARN" --context 2
    overspill get out_3f7k9q --lines 120-180
    overspill get out_3f7k9q --query "items[?status=='failed'].id"

With `--background-after 20`, a command that takes longer keeps running. `overspill get NAME --wait 60` waits for it.
"""
SKILL_HEADER = """\
---
name: overspill
description: Run commands whose output may be large (tests, builds, logs, searches) without filling the context, and read stored \
output back. Use before running such a command, and whenever a result names an output such as out_3f7k9q.
---

"""


def spell_get(id: str, *options: str) -> str:
    """The command that reads an output, ready to paste: each option that needs it is quoted."""
    return " ".join([COMMAND, id, *map(shlex.quote, options)])


def still_running(id: str, seconds: float) -> str:
    return (
        f"Still running after {seconds:g} s, and continuing in the background. What it prints is kept, standard error included.\n"
        f"Wait for it with {spell_get(id, '--wait', '60')}, or read what it has printed so far with {spell_get(id)}."
    )


def ended(code: int) -> str:
    return f"[The command ended with exit code {code}.]" if code >= 0 else f"[Signal {-code} ended the command.]"


def so_far(seconds: float, printed: int) -> str:
    what = "This is what it has printed so far" if printed else "It has printed nothing so far"
    return f"[Still running, for {seconds:.0f} s. {what}.]"


def interrupted(printed: int) -> str:
    what = "This is what had been stored by then" if printed else "Nothing had been stored by then"
    return f"[Interrupted before the command ended. {what}.]"


EMPTY = "[The output is empty.]"
