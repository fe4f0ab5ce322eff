"""The record of a run: its operations, accounting and conversation, and the records of the agents it called."""

from __future__ import annotations

import gzip
import os
import secrets
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from overspill.agent.turns import Outcome
from overspill.errors import BadRequest, StoreError
from overspill.models.protocol import Message
from overspill.record.op_tree import Op
from overspill.text.lenient_json import dumps, loads


class Totals(Struct, frozen=True):
    """Sums over an agent and the agents it called."""

    calls: int = 0
    kept: int = 0
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float = 0.0


class RunRecord(Struct):
    """Filled while the agent runs, and complete once it has ended."""

    agent: str
    file: str
    question: str
    started: int
    """Unix milliseconds."""
    ended: int = 0
    session: str = ""
    outcome: Outcome = Outcome("aborted", why="The run was aborted.")
    tree: Op = Op("session", "", 0)
    own_accounting: list[dict[str, Any]] = []
    own_totals: Totals = Totals()
    messages: list[Message] = []
    answers: dict[tuple[int, str], str] = {}
    warnings: list[str] = []
    own_threads: list[str] = []
    """Names of tools that could not be interrupted. Their threads are still running."""
    below: list[RunRecord] = []

    @property
    def totals(self) -> Totals:
        every = [self.own_totals, *(record.totals for record in self.below)]
        return Totals(*map(sum, zip(*map(msgspec.structs.astuple, every), strict=True)))

    @property
    def threads(self) -> list[str]:
        return self.own_threads + [name for record in self.below for name in record.threads]

    @property
    def accounting(self) -> list[dict[str, Any]]:
        """All accounting entries in order of time, each with its agent and session."""
        own = [{**entry, "agent": self.agent, "session": self.session} for entry in self.own_accounting]
        below = [entry for record in self.below for entry in record.accounting]
        return sorted(own + below, key=lambda entry: entry["timestamp"])


VERSION = 1
_MAX_SNAPSHOT_BYTES = 1 << 30
_FIRST_BYTES = b'{"version":'


def snapshot(record: RunRecord) -> dict[str, Any]:
    """`opTree.turns[].ops[]` lists what happened; the `response` of a tool is what the model received."""
    return {"version": VERSION, **_summarize(record), "accounting": record.accounting}


def write_snapshot(path: Path, record: RunRecord) -> None:
    """Write gzipped JSON that only you can read. The file is written whole or not at all."""
    data = gzip.compress(dumps(snapshot(record)))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        raise StoreError(f"Could not write the snapshot {path}: {error.strerror}.") from None


def may_replace(path: Path) -> bool:
    """True if nothing would be lost: the file does not exist, is empty, or is an older snapshot."""
    if not os.path.exists(path):
        return True
    if not path.is_file():
        return False
    try:
        with gzip.open(path) as file:
            return path.stat().st_size == 0 or file.read(len(_FIRST_BYTES)) == _FIRST_BYTES
    except (OSError, EOFError, zlib.error):
        return False


def append_accounting(path: Path, record: RunRecord) -> None:
    """Append each entry as a line with a JSON object to what the file already holds."""
    lines = b"".join(dumps(entry) + b"\n" for entry in record.accounting)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "ab") as file:
            file.write(lines)
    except OSError as error:
        raise StoreError(f"Could not write the accounting file {path}: {error.strerror}.") from None


def read_snapshot(path: Path) -> dict[str, Any]:
    try:
        with gzip.open(path) as file:
            found: Any = loads(file.read(_MAX_SNAPSHOT_BYTES))
    except OSError as error:
        why = error.strerror or "it is not a gzip file"
        raise BadRequest(f"Could not read the snapshot {path}: {why}.") from None
    except (EOFError, zlib.error, ValueError, RecursionError):
        raise BadRequest(f"Could not read the snapshot {path}: it is damaged or not a snapshot.") from None
    if not isinstance(found, dict) or "opTree" not in found or cast("dict[str, Any]", found).get("version") != VERSION:
        raise BadRequest(f"{path} is not a snapshot of this version of Overspill.")
    return cast("dict[str, Any]", found)


def _summarize(record: RunRecord) -> dict[str, Any]:
    outcome = record.outcome
    turns: list[dict[str, Any]] = []
    for turn in record.tree.children:
        if turn.kind == "turn":
            ops = [_build_op(record, int(turn.name), op) for op in turn.children]
            turns.append({"turn": int(turn.name), **turn.attributes, "t": turn.t, "latency": turn.latency, "ops": ops})
    return {
        "agent": record.agent,
        "file": record.file,
        "session": record.session,
        "question": record.question,
        "started": record.started,
        "ended": record.ended,
        "status": outcome.status,
        "turns": outcome.turns,
        "why": outcome.why,
        "early": outcome.early,
        "running": list(outcome.running),
        "report": outcome.report and msgspec.to_builtins(outcome.report),
        "warnings": record.warnings,
        "totals": msgspec.to_builtins(record.totals),
        "opTree": {"session": record.session, "turns": turns},
        "messages": msgspec.to_builtins(record.messages),
    }


def _build_op(record: RunRecord, turn: int, op: Op) -> dict[str, Any]:
    attributes = {"name": op.name, **op.attributes}
    entry: dict[str, Any] = {"kind": op.kind, "status": op.status, "t": op.t, "latency": op.latency, "attributes": attributes}
    if op.kind == "model":
        entry["response"] = attributes.pop("response", "")
    elif op.kind == "tool" and (turn, str(attributes.get("call"))) in record.answers:
        entry["response"] = record.answers[turn, str(attributes["call"])]
    below = next((child for child in record.below if child.session and child.session == attributes.get("session")), None)
    if below is not None:
        entry |= {"status": "ok" if below.outcome.report else "failed", "latency": below.ended - below.started}
        entry["agent"] = _summarize(below)
    elif op.children:
        entry["ops"] = [_build_op(record, turn, child) for child in op.children]
    return entry
