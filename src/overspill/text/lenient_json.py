"""Reads and writes JSON that strict libraries refuse: lone surrogates and huge numbers."""

from __future__ import annotations

import json
from threading import Lock
from typing import Any, TypeVar

import msgspec

from overspill.text.encoding import clean
from overspill.text.regex import regex


def dumps(value: Any, indent: int | None = None) -> bytes:
    try:
        written = msgspec.json.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError):
        separators = (",", ":") if indent is None else None
        return json.dumps(msgspec.to_builtins(value), indent=indent, separators=separators).encode()
    return written if indent is None else msgspec.json.format(written, indent=indent)


def loads(data: str | bytes, *, allow_control_characters: bool = False) -> Any:
    """Reads untrusted JSON with lone surrogates, huge numbers and, on request, raw line ends inside strings.

    Raises ValueError if it is not JSON, and RecursionError if it is nested too deeply.
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return json.loads(data, strict=not allow_control_characters)


def clean_value(value: Any) -> Any:
    """Replaces lone surrogates in all strings, including keys. Returns the same object if nothing changes."""
    try:
        msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.loads(clean(json.dumps(value, ensure_ascii=False)))
    return value


T = TypeVar("T")
UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_first_use = Lock()
_ready = set[Any]()


def ready(kind: type[T]) -> type[T]:
    """Return this type when every thread can read values of it. msgspec ends the process (a segmentation fault, up to 0.22 at
    least) if two threads use a Struct for the first time together, so each type that threads read passes through here."""
    if kind not in _ready:
        with _first_use:
            msgspec.json.Decoder(kind)
            _ready.add(kind)
    return kind


def parse(data: bytes, kind: type[T]) -> T | None:
    """Parses data as this type; None if the data does not have it."""
    try:
        return msgspec.json.decode(data, type=ready(kind))
    except UNREADABLE:
        return None


_PART_BYTES = 1024 * 1024
_MAX_LEVELS = 6  # how many to take apart; the text of a tool's result is on the fifth
_CUT = regex(rb"[ ,;:.=_()<>\[\]{}+*-]")  # none of these is ever part of an escape, so a string can be cut after each


def loads_last(lines: list[bytes], part_bytes: int = _PART_BYTES) -> Any:
    """Reads the last line like `loads`, and removes it from the list. Do not keep another reference to it.

    Values of at least `part_bytes` are taken apart.
    """
    line = lines.pop()
    taken = _TakenApart(part_bytes)
    try:
        taken.add(msgspec.Raw(line), taken.root, 0, _MAX_LEVELS)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return loads(line)
    del line  # joining the strings needs the same amount of memory again
    while taken.strings:
        holder, key, pieces = taken.strings.pop()
        holder[key] = "".join(pieces)
    return taken.root[0]


class _TakenApart:
    """A value whose long strings are still in pieces."""

    def __init__(self, part_bytes: int) -> None:
        self.root: list[Any] = [None]
        self._part_bytes = part_bytes
        self.strings: list[tuple[Any, Any, list[str]]] = []
        """The list or object, the place in it, and the pieces."""

    def add(self, raw: msgspec.Raw, holder: Any, key: Any, levels: int) -> None:
        data = memoryview(raw)
        first = data[0] if len(data) >= max(2, self._part_bytes) and levels else None
        if first == ord("{"):
            fields = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
            inside = holder[key] = dict.fromkeys(fields)
            parts = fields.items()
        elif first == ord("["):
            values = msgspec.json.decode(data, type=list[msgspec.Raw])
            inside = holder[key] = [None] * len(values)
            parts = enumerate(values)
        elif first == ord('"') == data[-1]:
            pieces: list[str] = []
            start, end = 1, len(data) - 1  # without the quotes
            while start < end:
                found = _CUT.search(data, min(start + self._part_bytes, end), end)
                stop = found.end() if found else end
                pieces.append(msgspec.json.decode(b'"%b"' % data[start:stop]))
                start = stop
            self.strings.append((holder, key, pieces))
            return
        else:
            holder[key] = msgspec.json.decode(data)
            return
        for name, part in parts:
            self.add(part, inside, name, levels - 1)
