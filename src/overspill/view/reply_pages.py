"""What a model saw of a call: word for word if it is on record, or else made again and marked as such."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from overspill.errors import HandleError, OverspillError
from overspill.gate.replies import OutputText, draft_handle
from overspill.reading.positions import View
from overspill.retrieval.output import StoredOutput
from overspill.settings import Settings
from overspill.store.readers import BytesReader
from overspill.text.encoding import clean, decode
from overspill.view.asking import read_number
from overspill.view.library import Library
from overspill.view.showing import Showing
from overspill.view.windows import make_window

_GONE = "It is no longer stored: it was removed, or the session ended before it was stored."


class ReplyPages:
    """Each is a page, or a part of one."""

    def __init__(self, library: Library, showing: Showing) -> None:
        self._library = library
        self._showing = showing

    def recorded(self, request: Request) -> Response:
        session, id, start = (request.path_params[name] for name in ("session", "id", "start"))
        try:
            data = self._library.read_reply(session, id, start)
        except HandleError:
            return self._show(request, "_refused.html", 404, session=session, what=_GONE)
        reader = BytesReader(data)
        window = make_window(reader, View(reader), read_number(request, "from"))
        shown = decode(data[window.start : window.end])
        return self._show(request, "_reply.html", session=session, id=id, start=start, window=window, shown=shown)

    def rebuilt(self, request: Request) -> Response:
        item = self._library.find(request.path_params["session"], request.path_params["file"])
        return self._show(request, "_rebuilt.html", session=item.kept.session, shown=rebuild_reply(self._library.open(item)))

    def _show(self, request: Request, part: str, status: int = 200, **values: Any) -> Response:
        if "hx-request" in request.headers:
            return self._showing.page(part, **values)  # htmx shows no answer that says it failed
        return self._showing.page("reply.html", status, part=part, **values)


def rebuild_reply(stored: StoredOutput) -> str:
    """What today's defaults would show: the journal holds no content. Empty if there is none to rebuild: the output is damaged,
    not plain text, or was stored by the host itself."""
    kept = stored.kept
    if stored.damage or kept.media != "text" or kept.reason == "requested":
        return ""
    try:
        drafts = draft_handle(kept, OutputText(stored.reader, kept.size), Settings())
    except OverspillError:
        return ""
    return clean(drafts[0].text)
