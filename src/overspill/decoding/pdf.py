"""The text of a PDF, page by page. Its pages are read by a process that can open nothing and that ends in time."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from overspill.confined.worker import Worker
from overspill.decoding.limits import Layer, Limits, Sink
from overspill.errors import MissingPackage, NotText
from overspill.store.protocols import Reader
from overspill.text.encoding import encode
from overspill.text.humanize import count_noun, format_size

MAX_PDF_BYTES = 128 << 20
PAGE_END = "\n\f\n"
_worker = Worker(Path(__file__).with_name("pdf_worker.py"), max_running=2, max_seconds=60.0)


class _Answer:
    """What the worker wrote, as far as it came."""

    def __init__(self, output: bytes) -> None:
        lines: list[dict[str, Any]] = [json.loads(line) for line in output.splitlines(keepends=True) if line.endswith(b"\n")]
        first = lines[0] if lines else {}
        self.failed: str = first.get("failed", "")
        self.count: int | None = first.get("pages")
        self.texts: list[str | None] = [line["text"] for line in lines if "text" in line]
        self.is_done = bool(lines) and lines[-1].get("done") is True


def read_pages(reader: Reader, inside: str, limits: Limits) -> Layer:
    """Blocks. Pages are separated by a form feed on a line of its own."""
    if find_spec("pypdf") is None:
        raise MissingPackage(f"This is a PDF{inside}, which was not searched. Reading it", "pdf")
    answer = _ask(reader, inside, limits)
    if answer.failed or answer.count is None:
        why = answer.failed or "it is too large or takes too long"
        raise NotText(f"a PDF{inside} that cannot be read: {why}")
    blank = sum(1 for text in answer.texts if text is not None and not text.strip())
    broken = answer.texts.count(None)
    if blank + broken == len(answer.texts):
        pages = count_noun(answer.count, "page")
        flaw = f"of which no page could be read ({pages})" if broken else f"without text ({pages}, perhaps scanned)"
        raise NotText(f"a PDF{inside} {flaw}")
    stopped = "" if answer.is_done else _STOPPED.format(read=len(answer.texts), pages=count_noun(answer.count, "page"))
    with Sink() as sink:
        for text in answer.texts:
            sink.add(encode((text or "") + PAGE_END))
        gaps = [
            f"{count_noun(blank, 'page')} of the PDF without text (perhaps images)" if blank else "",
            f"{count_noun(broken, 'page')} of the PDF that could not be read" if broken else "",
        ]
        remark = f"Nothing was searched on {' and '.join(filter(None, gaps))}." if blank or broken else ""
        return Layer(sink.reader(), stopped, remark)


_STOPPED = "Reading the PDF stopped after {read:,} of {pages}: it is too large or takes too long. What follows was not searched."


def _ask(reader: Reader, inside: str, limits: Limits) -> _Answer:
    if reader.size > MAX_PDF_BYTES:
        raise NotText(f"a PDF{inside} of more than {format_size(MAX_PDF_BYTES)}, which is too large to read")
    if not Worker.can_run():
        raise NotText(f"a PDF{inside}, and there is no Python to read it with")
    bounds = json.dumps({"pages": limits.pdf_pages, "seconds": limits.pdf_seconds}).encode()
    try:
        return _Answer(_worker.run(b"%s\n%s" % (bounds, reader.buffer())).output)
    except OSError as error:
        raise NotText(f"a PDF{inside}, and the process that reads it did not start: {error.strerror}") from None
