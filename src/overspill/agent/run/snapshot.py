"""A run recorded in one file: gzipped JSON, readable by you only, written whole or not at all."""

from __future__ import annotations

import gzip
import os
import secrets
import zlib
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

import msgspec

from overspill.agent.run.record import RunRecord
from overspill.errors import BadRequest, StoreError
from overspill.record.op_tree import Op
from overspill.text.lenient_json import dumps, loads

VERSION = 1
_MAX_SNAPSHOT_BYTES = 1 << 30
_FIRST_BYTES = b'{"version":'


def snapshot(record: RunRecord) -> dict[str, Any]:
    """`opTree.turns[].ops[]` lists what happened; the `response` of a tool is what the model received."""
    return {"version": VERSION, **_summarize(record), "accounting": record.accounting}


def write_snapshot(path: Path, record: RunRecord) -> None:
    data = gzip.compress(dumps(snapshot(record)))
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except OSError:
            with suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
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
    """One JSON object per line, after what the file already holds."""
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
    turns = [_build_turn(record, op) for op in record.tree.children if op.kind == "turn"]
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


def _build_turn(record: RunRecord, turn: Op) -> dict[str, Any]:
    number = int(turn.name)
    ops = [_build_op(record, number, op) for op in turn.children]
    return {"turn": number, **turn.attributes, "t": turn.t, "latency": turn.latency, "ops": ops}


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
