"""The pages about one stored output: its text in windows, its raw bytes, and itself if it is an image."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from overspill.errors import BadRequest, NotText, OverspillError
from overspill.reading.positions import View
from overspill.retrieval.archive import ArchivedOutput
from overspill.retrieval.outputs import StoredOutput
from overspill.retrieval.views import describe_gaps
from overspill.store.protocols import Reader
from overspill.text.images import identify_image
from overspill.view import windows
from overspill.view.asking import read_number, read_range
from overspill.view.hexadecimal import HexRows, make_hex_rows
from overspill.view.library import Library
from overspill.view.replies import rebuild_reply
from overspill.view.showing import Showing
from overspill.view.windows import Span, Window

_BLOCK_BYTES = 1 << 20
_MAX_IMAGE_BYTES = 64 << 20
_LOCKED = "sandbox; default-src 'none'"
"""The policy of raw bytes: wherever a browser shows them, they can do nothing."""


class ShownText(Struct, frozen=True):
    """The text in an output: the stored bytes themselves, or what was decoded from them."""

    reader: Reader
    view: View
    notes: tuple[str, ...] = ()
    is_text: bool = True
    """False if there is none: then the bytes themselves are shown."""


def open_text(stored: StoredOutput) -> ShownText:
    """A damaged output is shown too, as far as it is there."""
    if stored.damage:
        return ShownText(stored.reader, stored.view, is_text=stored.kept.media == "text")
    try:
        text = stored.decoded()
    except NotText as problem:
        return ShownText(stored.reader, stored.view, (str(problem),), is_text=False)
    except OverspillError as problem:
        return ShownText(stored.reader, stored.view, (str(problem),), is_text=stored.kept.media == "text")
    return ShownText(text.reader, text.positions, tuple(describe_gaps(stored.kept, text)))


class OutputPages:
    def __init__(self, library: Library, showing: Showing) -> None:
        self._library = library
        self._showing = showing

    def output(self, request: Request) -> Response:
        item, stored = self._open(request)
        text = open_text(stored)
        is_image = identify_image(stored.reader.read(0, 64)) is not None
        is_hex = "hex" in request.query_params or not text.is_text
        return self._showing.page(
            "output.html",
            item=item,
            kept=item.kept,
            damage=stored.damage,
            notes=text.notes,
            is_image=is_image,
            is_hex=is_hex,
            window=None if is_hex else self._window(request, text),
            rows=self._hex_window(request, stored.reader) if is_hex else None,
            reply="" if is_hex else rebuild_reply(stored),
            lines_total=text.view.bytes and item.kept.size.lines,
        )

    def window(self, request: Request) -> Response:
        """A window alone, for a page that is scrolled."""
        item, stored = self._open(request)
        if "hex" in request.query_params:
            return self._showing.page("_hex.html", kept=item.kept, rows=self._hex_window(request, stored.reader))
        return self._showing.page("_window.html", kept=item.kept, window=self._window(request, open_text(stored)))

    def raw(self, request: Request) -> Response:
        """The exact bytes, to save and not to show."""
        item, stored = self._open(request)
        headers = {
            "Content-Disposition": f'attachment; filename="{item.kept.name}.bin"',
            "Content-Length": str(stored.reader.size),
            "Content-Security-Policy": _LOCKED,
        }
        return StreamingResponse(_read_blocks(stored.reader), media_type="application/octet-stream", headers=headers)

    def image(self, request: Request) -> Response:
        """Only formats that cannot hold a program, recognised by their bytes."""
        _, stored = self._open(request)
        if stored.reader.size > _MAX_IMAGE_BYTES:
            return PlainTextResponse("The image is too large to be shown. Download it.", 413)
        image = identify_image(stored.reader.read(0, stored.reader.size))
        if image is None:
            raise BadRequest("This output is not an image that can be shown.")
        return Response(image.data, media_type=image.media_type, headers={"Content-Security-Policy": _LOCKED})

    def _open(self, request: Request) -> tuple[ArchivedOutput, StoredOutput]:
        item = self._library.find(request.path_params["session"], request.path_params["file"])
        return item, self._library.open(item)

    def _window(self, request: Request, text: ShownText) -> Window:
        reader, view = text.reader, text.view
        if (lines := read_range(request, "lines")) is not None:
            mark = view.line_span(max(1, lines[0]), max(1, lines[1]))
            return windows.make_window(reader, view, windows.find_line(view, lines[0]), [mark])
        if (marked := read_range(request, "bytes")) is not None:
            mark = (marked[0], marked[1] + 1)
            return windows.make_window(reader, view, windows.find_byte(reader, view, mark[0]), [mark])
        marks = read_marks(request)
        start = windows.find_last(reader, view) if "last" in request.query_params else read_number(request, "from")
        return windows.make_window(reader, view, start, marks)

    def _hex_window(self, request: Request, reader: Reader) -> HexRows:
        return make_hex_rows(reader, reader.size if "last" in request.query_params else read_number(request, "from"))


def read_marks(request: Request) -> list[Span]:
    """What a window that is scrolled to goes on highlighting: `mark=10-20`, both included, as in `bytes`."""
    marked = read_range(request, "mark")
    return [(marked[0], marked[1] + 1)] if marked else []


def _read_blocks(reader: Reader) -> Iterator[bytes]:
    for start in range(0, reader.size, _BLOCK_BYTES):
        yield reader.read(start, start + _BLOCK_BYTES)
