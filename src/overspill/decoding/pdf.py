"""The text of a PDF, page by page. A process that can open nothing and has a time limit reads the pages."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from overspill.confined.worker import Worker
from overspill.decoding.limits import Layer, Limits
from overspill.errors import MissingPackage, NotText
from overspill.store.protocols import Reader
from overspill.store.readers import Sink
from overspill.text.encoding import encode
from overspill.text.humanize import count_noun, format_size

MAX_PDF_BYTES = 128 << 20
_worker = Worker(Path(__file__).with_name("pdf_worker.py"), max_running=2, max_seconds=60.0)


def read_pages(reader: Reader, inside: str, limits: Limits) -> Layer:
    """The text of all pages, separated by lines with only a form feed. Blocks."""
    if find_spec("pypdf") is None:
        raise MissingPackage(f"This is a PDF{inside}, which was not searched. Reading it", "pdf")
    lines = _ask(reader, inside, limits)
    if not lines or "pages" not in lines[0]:
        why = lines[0]["failed"] if lines else "it is too large or takes too long"
        raise NotText(f"a PDF{inside} that cannot be read: {why}")
    texts: list[str | None] = [line["text"] for line in lines if "text" in line]
    pages = count_noun(lines[0]["pages"], "page")
    blank = sum(1 for text in texts if text is not None and not text.strip())
    broken = texts.count(None)
    if blank + broken == len(texts):
        flaw = f"of which no page could be read ({pages})" if broken else f"without text ({pages}, perhaps scanned)"
        raise NotText(f"a PDF{inside} {flaw}")
    stopped = f"Reading the PDF stopped after {len(texts):,} of {pages}: it is too large or takes too long."
    stopped = "" if lines[-1].get("done") is True else f"{stopped} What follows was not searched."
    with Sink() as sink:
        for text in texts:
            sink.add(encode((text or "") + "\n\f\n"))
        gaps = [
            f"{count_noun(blank, 'page')} of the PDF without text (perhaps images)" if blank else "",
            f"{count_noun(broken, 'page')} of the PDF that could not be read" if broken else "",
        ]
        remark = f"Nothing was searched on {' and '.join(filter(None, gaps))}." if blank or broken else ""
        return Layer(sink.reader(), stopped, remark)


def _ask(reader: Reader, inside: str, limits: Limits) -> list[dict[str, Any]]:
    """Everything the worker wrote before it ended."""
    if reader.size > MAX_PDF_BYTES:
        raise NotText(f"a PDF{inside} of more than {format_size(MAX_PDF_BYTES)}, which is too large to read")
    if not Worker.can_run():
        raise NotText(f"a PDF{inside}, and there is no Python to read it with")
    bounds = json.dumps({"pages": limits.pdf_pages, "seconds": limits.pdf_seconds}).encode()
    try:
        output = _worker.run(b"%s\n%s" % (bounds, reader.buffer())).output
    except OSError as error:
        raise NotText(f"a PDF{inside}, and the process that reads it did not start: {error.strerror}") from None
    return [json.loads(line) for line in output.splitlines(keepends=True) if line.endswith(b"\n")]
