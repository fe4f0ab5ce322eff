"""`overspill snapshot`: show what `overspill run --snapshot` recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
from rich.text import Text
from rich.tree import Tree

from overspill.agent.record import read_snapshot
from overspill.agent.wording import still_running
from overspill.cli import output
from overspill.cli.common_options import CommandGroup
from overspill.cli.tables import console
from overspill.errors import BadRequest
from overspill.text.humanize import count_noun, escape_invisible


@click.group(cls=CommandGroup)
def snapshot() -> None:
    """Show what a snapshot recorded."""


@snapshot.command(short_help="Print a run as a tree.")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print the whole snapshot as JSON.")
def show(file: Path, as_json: bool) -> None:
    """Print a run as a tree of turns, model requests, tool calls, extractions and called agents.

    \b
    overspill snapshot show run.json.gz
    """
    found = read_snapshot(file)
    if as_json:
        output.print_json(found)
        return
    try:
        tree = _draw_run(found)
    except (KeyError, TypeError, ValueError, AttributeError):  # the file may hold anything
        raise BadRequest(f"{file} is not a snapshot of this version of Overspill.") from None
    console().print(tree)


def _draw_run(run: dict[str, Any]) -> Tree:
    totals: dict[str, Any] = run["totals"]
    facts = [run["status"], count_noun(run["turns"], "turn"), count_noun(totals["calls"], "call"), f"{totals['kept']} kept"]
    facts.append(f"{totals['input_tokens']:,} tokens in, {totals['output_tokens']:,} out")
    if totals["cost"]:
        facts.append(f"${totals['cost']:.4f}")
    tree = Tree(_style(f"{run['agent']} ({', '.join(facts)})", "bold"))
    for fact in ("why", "early"):
        if run[fact]:
            tree.add(_style(run[fact], "yellow"))
    if run.get("running"):  # snapshots of earlier versions do not have this key
        tree.add(_style(still_running(run["running"]), "yellow"))
    for turn in run["opTree"]["turns"]:
        final = f", final: {turn['final']}" if turn.get("final") else ""
        _add_ops(tree.add(_style(f"turn {turn['turn']} of {turn['of']} ({_format_seconds(turn)}{final})")), turn["ops"])
    return tree


def _add_ops(tree: Tree, ops: list[dict[str, Any]]) -> None:
    for op in ops:
        style = "" if op["status"] == "ok" else "red"
        branch = tree.add(_style(f"{op['kind']} {op['attributes']['name']} ({', '.join(_describe_op(op))})", style))
        if "agent" in op:
            branch.add(_draw_run(op["agent"]))
        _add_ops(branch, op.get("ops", []))


def _describe_op(op: dict[str, Any]) -> list[str]:
    attributes: dict[str, Any] = op["attributes"]
    facts = [_format_seconds(op)] + ([] if op["status"] == "ok" else ["failed"])
    if attributes.get("background"):
        facts.append("in the background")
    if op["kind"] == "model" and (attributes.get("tokensIn") or attributes.get("tokensOut")):
        facts.append(f"{attributes['tokensIn']:,} tokens in, {attributes['tokensOut']:,} out")
    if attributes.get("strategy"):
        is_builtin = attributes["strategy"] == "builtin"
        facts.append("built-in engine" if is_builtin else f"{attributes['strategy']} by {attributes['model'] or 'no model'}")
    if handle := attributes.get("tool_output_handle"):
        facts.append(f"kept as {handle}")
    return facts


def _format_seconds(timed: dict[str, Any]) -> str:
    return f"{timed['latency'] / 1000:.1f}s"


def _style(text: str, style: str = "") -> Text:
    return Text(escape_invisible(text), style=style, overflow="fold")
