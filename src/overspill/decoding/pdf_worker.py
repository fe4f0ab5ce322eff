"""Reads the text of a PDF, page by page, in a process that can do nothing else. `pdf.py` runs it by its path.

Reads its limits from a line of JSON, then the file. Writes JSON lines: the number of pages first, then the text of each page,
or null if a page could not be read.
"""

from __future__ import annotations

import json
import logging
import pkgutil
import sys
from importlib import import_module
from io import BytesIO
from typing import Any

_MEMORY = 2 * 1024**3
_MAX_CHARS = 64 << 20


def main() -> None:
    sys.path[:] = sys.argv[1:]
    limits = import_module("overspill.confined.limits")
    limits.end_with_reader()
    bounds = json.loads(sys.stdin.buffer.readline())
    limits.limit_seconds(bounds["seconds"])
    library = import_module("pypdf")
    # Import codecs and parts of the library now, because it is too late when a page first needs them.
    for name in ("encodings", "pypdf"):
        folder = import_module(name).__path__
        for module in pkgutil.walk_packages(folder, f"{name}.", onerror=lambda _: None):
            try:
                import_module(module.name)
            except (ImportError, AttributeError):  # made for another system or a missing package
                continue
    logging.disable()
    data = sys.stdin.buffer.read()
    limits.give_up_everything_else(_MEMORY)
    _write_pages(library, data, bounds["pages"])


def _write_pages(library: Any, data: bytes, most: int) -> None:
    try:
        document = library.PdfReader(BytesIO(data), strict=False)
        if document.is_encrypted and not document.decrypt(""):
            _write({"failed": "it needs a password"})
            return
        count = len(document.pages)
    except Exception as error:  # a broken file can fail in any way
        needs_more = type(error).__name__ == "DependencyError"
        _write({"failed": "it is encrypted in a way that is not supported" if needs_more else "it is damaged"})
        return
    _write({"pages": count})
    chars = 0
    for number in range(min(count, most)):
        try:
            text: str | None = document.pages[number].extract_text().replace("\0", "")
        except Exception:  # a broken page can fail in any way too; other pages may be intact
            text = None
        chars += len(text or "")
        if chars > _MAX_CHARS:
            return
        _write({"text": text})
    _write({"done": count <= most})


def _write(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
