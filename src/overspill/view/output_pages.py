"""The pages about one stored output: its text in windows, its raw bytes, and the picture if it is an image."""

from __future__ import annotations

from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from overspill.errors import BadRequest, HandleError, OverspillError
from overspill.lexical.kinds import LINES
from overspill.lexical.kinds.kind import Kind
from overspill.retrieval.archive import ArchivedOutput
from overspill.retrieval.output import StoredOutput
from overspill.store.protocols import Reader
from overspill.store.readers import read_blocks
from overspill.text.images import identify_image
from overspill.view import windows
from overspill.view.library import Library, find_citation
from overspill.view.pages import Showing, read_number, read_range, read_words
from overspill.view.rendering import ShownText, find_form, open_text, render, show_lines
from overspill.view.searches import WAYS, Searches, SearchResult, compile_words, find_spans
from overspill.view.windows import HexRows, TextWindow, make_hex_rows

_MAX_IMAGE_BYTES = 64 << 20
_LOCKED = "sandbox; default-src 'none'"
"""The policy of raw bytes: wherever a browser shows them, they can do nothing."""


class OutputPages:
    def __init__(self, library: Library, showing: Showing, searches: Searches) -> None:
        self._library = library
        self._showing = showing
        self._searches = searches
        self._kinds: WeakKeyDictionary[StoredOutput, Kind] = WeakKeyDictionary()

    def output(self, request: Request) -> Response:
        item, stored = self._open(request)
        text = open_text(stored)
        is_hex = "hex" in request.query_params or not text.is_text
        is_rendered = "rendered" in request.query_params and not is_hex
        kind = self._recognise(stored, text)
        window = None if is_hex or is_rendered else self._window(request, text)
        return self._page(
            request,
            "output.html",
            hides=text.view.hides(0, text.view.bytes),
            kept=item.kept,
            damage=stored.damage,
            notes=text.notes,
            kind=kind.name if text.is_text else "",
            lines=show_lines(window, kind.traits.layout) if window else "",
            can_render=text.is_text and find_form(kind.traits.layout, text) != "",
            rendered=render(text) if is_rendered else None,
            is_image=identify_image(stored.reader.read(0, 64)) is not None,
            is_hex=is_hex,
            window=window,
            rows=self._hex_window(request, stored.reader) if is_hex else None,
            reply=self._library.session(item.kept.session).replies.get(item.kept.id),
            words=read_words(request, "find"),
        )

    def window(self, request: Request) -> Response:
        """Answer with a single window, for scrolling a page."""
        item, stored = self._open(request)
        if "hex" in request.query_params:
            return self._page(request, "_hex.html", kept=item.kept, rows=self._hex_window(request, stored.reader))
        text = open_text(stored)
        window = self._window(request, text)
        return self._page(
            request,
            "_window.html",
            kept=item.kept,
            window=window,
            lines=show_lines(window, self._recognise(stored, text).traits.layout),
            words=read_words(request, "find"),
        )

    async def search(self, request: Request) -> Response:
        """Answer with hits, or with an answer. If the question cannot be answered, the page says so instead."""
        words, way = read_words(request, "words"), WAYS.get(request.query_params.get("way", "grep"))
        if way is None:
            raise BadRequest(f"way must be one of: {', '.join(WAYS)}.")
        if not words:
            raise BadRequest("Type what to look for.")

        def work() -> tuple[ArchivedOutput, SearchResult]:
            item, stored = self._open(request)
            stored.check()
            return item, self._searches.ask(way, words, open_text(stored), stored.shown.key or item.kept.id)

        is_part = "hx-request" in request.headers
        template = "_found.html" if is_part else "found.html"
        try:
            item, found = await self._searches.run(work)
        except OverspillError as problem:
            if not is_part or isinstance(problem, HandleError):
                raise
            return self._showing.page("_refused.html", what=str(problem))
        return self._page(request, template, kept=item.kept, found=found, way=way, words=words)

    async def citation(self, request: Request) -> Response:
        """Answer with the quotes of an extraction, after checking them. Reads the whole output, so it counts as a question."""
        session, op = request.path_params["session"], request.path_params["op"]
        found = await self._searches.run(lambda: find_citation(self._library, session, op))
        return self._showing.page("citation.html", found=found, kept=found.item.kept)

    def raw(self, request: Request) -> Response:
        """Answer with the exact bytes, which a browser saves and does not show."""
        item, stored = self._open(request)
        headers = {
            "Content-Disposition": f'attachment; filename="{item.kept.name}.bin"',
            "Content-Length": str(stored.reader.size),
            "Content-Security-Policy": _LOCKED,
        }
        return StreamingResponse(read_blocks(stored.reader), media_type="application/octet-stream", headers=headers)

    def image(self, request: Request) -> Response:
        """Answer with an image. Allows only formats that cannot contain a program, recognised by their bytes."""
        _, stored = self._open(request)
        if stored.reader.size > _MAX_IMAGE_BYTES:
            return PlainTextResponse("The image is too large to be shown. Download it.", 413)
        image = identify_image(stored.reader.read(0, stored.reader.size))
        if image is None:
            raise BadRequest("This output is not an image that can be shown.")
        return Response(image.data, media_type=image.media_type, headers={"Content-Security-Policy": _LOCKED})

    def _recognise(self, stored: StoredOutput, text: ShownText) -> Kind:
        """Recognise the kind of an output once while it is open, because that takes longer than all else about a window."""
        if stored not in self._kinds:
            self._kinds[stored] = text.kind if text.is_text else LINES
        return self._kinds[stored]

    def _open(self, request: Request) -> tuple[ArchivedOutput, StoredOutput]:
        form, item = request.path_params["form"], self._library.find(request.path_params["session"], request.path_params["file"])
        if form not in ("output", "original"):
            raise HTTPException(404)
        stored = self._library.open(item)
        return item, stored.as_stored() if form == "original" else stored

    def _page(self, request: Request, template: str, **values: Any) -> Response:
        return self._showing.page(template, form=request.path_params["form"], **values)

    def _window(self, request: Request, text: ShownText) -> TextWindow:
        reader, view = text.reader, text.view
        words = read_words(request, "find")
        pattern = compile_words(words) if words else None
        find = partial(find_spans, pattern) if pattern else None
        if (lines := read_range(request, "lines")) is not None:
            mark = view.line_span(max(1, lines[0]), max(1, lines[1]))
            return windows.make_window(reader, view, windows.find_line(view, lines[0]), [mark], find)
        if (marked := read_range(request, "bytes")) is not None:
            mark = (marked[0], marked[1] + 1)
            return windows.make_window(reader, view, windows.find_byte(reader, view, mark[0]), [mark], find)
        start = windows.find_before(reader, view.bytes) if "last" in request.query_params else read_number(request, "from")
        return windows.make_window(reader, view, start, find=find)

    def _hex_window(self, request: Request, reader: Reader) -> HexRows:
        return make_hex_rows(reader, reader.size if "last" in request.query_params else read_number(request, "from"))
