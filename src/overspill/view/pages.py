"""The pages about sessions, what a model saw, and savings; and what all share: parameters, and templates that escape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from overspill.errors import BadRequest, HandleError, OverspillError
from overspill.gate.replies import OutputText, draft_handle
from overspill.reading.positions import View
from overspill.record.bill import Bill
from overspill.retrieval.definitions import parse_range
from overspill.retrieval.output import StoredOutput
from overspill.settings import PriceSettings, Settings
from overspill.store.readers import BytesReader
from overspill.text.encoding import clean, decode
from overspill.text.humanize import count_noun, escape_invisible, format_size, one_line, to_datetime
from overspill.view.library import Library
from overspill.view.records import GROUPINGS, SessionRecord, plot_context, sum_savings, sum_times
from overspill.view.timeline import make_timeline
from overspill.view.windows import Span, make_window

FOLDER = Path(__file__).parent
MAX_WORDS_CHARS = 2_000
_MAX_NUMBER = 1 << 53
SESSIONS_PER_PAGE = 50
ROWS_PER_PAGE = 200
OUTPUTS_PER_PAGE = 100
STATES: dict[str, Callable[[SessionRecord], bool]] = {
    "all": lambda _: True,
    "live": lambda record: record.label.live,
    "ended": lambda record: not record.label.live,
    "failed": lambda record: record.errors > 0,
    "running": lambda record: bool(record.running),
}
ListFacts: TypeAlias = Callable[[], Sequence[tuple[str, str]]]
"""Lists what else is running besides the stored sessions. Called for each page that shows it."""
_GONE = "It is no longer stored: it was removed, or the session ended before it was stored."


def read_number(request: Request, name: str, default: int = 0) -> int:
    given = request.query_params.get(name, "")
    if not given:
        return default
    if not (given.isascii() and given.isdigit() and len(given) <= 16 and int(given) <= _MAX_NUMBER):
        raise BadRequest(f"{name} must be a whole number of at least 0.")
    return int(given)


def read_words(request: Request, name: str) -> str:
    given = request.query_params.get(name, "")
    if len(given) > MAX_WORDS_CHARS:
        raise BadRequest(f"{name} has {len(given):,} characters. The limit is {MAX_WORDS_CHARS:,}.")
    return given.strip()


def read_range(request: Request, name: str) -> Span | None:
    """`10-20`, or `10` for one; None if it is not given."""
    given = request.query_params.get(name, "")
    if not given:
        return None
    first, last = parse_range(name, given)
    if last < first:
        raise BadRequest(f"{name}={given}: the first is after the last.")
    return first, last


class AnswerPage:
    """One page of a long list."""

    def __init__(self, total: int, number: int, size: int) -> None:
        self.total = total
        self.last = max(1, -(-total // size))
        self.number = min(max(number, 1), self.last)
        self.start = (self.number - 1) * size
        self.end = min(self.start + size, total)


class Showing:
    """Renders pages below one folder of URLs."""

    def __init__(self, root: str, library: Library) -> None:
        def show_visibly(value: Any) -> Any:
            """Escape text, so that no name or error can hide characters or reverse the direction of what follows."""
            return escape_invisible(value) if isinstance(value, str) and not isinstance(value, Markup) else value

        self._environment = Environment(
            loader=FileSystemLoader(FOLDER / "templates"),
            autoescape=True,
            undefined=StrictUndefined,
            finalize=show_visibly,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        # Jinja's types know only its own globals and filters.
        known: dict[str, Any] = self._environment.globals
        known |= {"root": root, "session_of": library.session}
        filters: dict[str, Any] = self._environment.filters
        filters.update(time=_format_time, seconds=_format_seconds, size=format_size, count=count_noun)
        filters.update(number="{:,}".format, line=one_line, money=_format_money)

    def page(self, template: str, status: int = 200, **values: Any) -> HTMLResponse:
        return HTMLResponse(self._environment.get_template(template).render(**values), status)


class ViewerPages:
    def __init__(self, library: Library, showing: Showing, prices: PriceSettings, list_facts: ListFacts = tuple) -> None:
        self._list_facts = list_facts
        self._library = library
        self._showing = showing
        self._prices = prices

    def sessions(self, request: Request) -> Response:
        words, state = read_words(request, "q"), request.query_params.get("state", "all")
        if state not in STATES:
            raise BadRequest(f"state must be one of: {', '.join(STATES)}.")
        records = self._library.sessions()
        found = [record for record in records if STATES[state](record) and record.matches(words)]
        page = AnswerPage(len(found), read_number(request, "page", 1), SESSIONS_PER_PAGE)
        template = "_sessions.html" if "hx-request" in request.headers else "sessions.html"
        return self._showing.page(
            template,
            records=found[page.start : page.end],
            page=page,
            words=words,
            state=state,
            states=STATES,
            facts=() if "hx-request" in request.headers else self._list_facts(),
            all_sessions=len(records),
            kept=sum(len(record.kept) for record in records),
        )

    def session(self, request: Request) -> Response:
        session: str = request.path_params["session"]
        record = self._library.session(session)
        timeline = make_timeline(self._library.events(session), session)
        kept = list(record.kept.values())[::-1]
        return self._showing.page(
            "_session.html" if "hx-request" in request.headers else "session.html",
            record=record,
            timeline=timeline,
            page=AnswerPage(len(timeline.rows), read_number(request, "page", 1), ROWS_PER_PAGE),
            kept=kept,
            outputs=AnswerPage(len(kept), read_number(request, "outputs", 1), OUTPUTS_PER_PAGE),
            points=plot_context(self._library.events(session)),
            costs=record.counters.bill.costs(self._prices),
        )

    def context(self, request: Request) -> Response:
        points = plot_context(self._library.events(self._library.session(request.path_params["session"]).session))
        return _plot([point.step for point in points], [p.entered for p in points], [p.kept_out for p in points])

    def savings(self, request: Request) -> Response:
        grouping = request.query_params.get("by", "tool")
        if grouping not in GROUPINGS:
            raise BadRequest(f"by must be one of: {', '.join(GROUPINGS)}.")
        records = self._library.sessions()
        rows = sum_savings(records, grouping)
        costs = [record.counters.bill.costs(self._prices) for record in records]
        page = AnswerPage(len(rows), read_number(request, "page", 1), ROWS_PER_PAGE)
        return self._showing.page(
            "savings.html",
            rows=rows[page.start : page.end],
            page=page,
            grouping=grouping,
            groupings=GROUPINGS,
            kept_tokens=sum(found.kept_tokens for _, found in rows),
            shown_tokens=sum(found.shown_tokens for _, found in rows),
            costs={name: sum(each[name] for each in costs) for name in Bill().costs(self._prices)},
        )

    def days(self, request: Request) -> Response:
        times = sum_times(self._library.sessions())
        return _plot([at for at, _ in times], [found.shown_tokens for _, found in times], [s.saved_tokens for _, s in times])

    def recorded_reply(self, request: Request) -> Response:
        session, id, start = (request.path_params[name] for name in ("session", "id", "start"))
        try:
            data = self._library.read_reply(session, id, start)
        except HandleError:
            return self._show_reply(request, "_refused.html", 404, session=session, what=_GONE)
        reader = BytesReader(data)
        window = make_window(reader, View(reader), read_number(request, "from"))
        shown = decode(data[window.start : window.end])
        return self._show_reply(request, "_reply.html", session=session, id=id, start=start, window=window, shown=shown)

    def rebuilt_reply(self, request: Request) -> Response:
        item = self._library.find(request.path_params["session"], request.path_params["file"])
        return self._show_reply(
            request, "_rebuilt.html", session=item.kept.session, shown=_rebuild_reply(self._library.open(item))
        )

    def _show_reply(self, request: Request, part: str, status: int = 200, **values: Any) -> Response:
        if "hx-request" in request.headers:
            return self._showing.page(part, **values)  # htmx does not show answers with an error status
        return self._showing.page("reply.html", status, part=part, **values)


def _rebuild_reply(stored: StoredOutput) -> str:
    """Return what today's defaults would show. Empty if the output is damaged, not plain text, or stored by the host itself."""
    kept = stored.kept
    if stored.damage or kept.media != "text" or kept.reason == "requested":
        return ""
    try:
        drafts = draft_handle(kept, OutputText(stored.reader, stored.shown.size), Settings())
    except OverspillError:
        return ""
    return clean(drafts[0].text)


def _format_time(milliseconds: int) -> str:
    return to_datetime(milliseconds).strftime("%Y-%m-%d %H:%M:%S")


def _format_money(dollars: float) -> str:
    return f"{'−' if dollars < 0 else ''}${abs(dollars):,.{2 if abs(dollars) >= 1 else 4}f}"


def _format_seconds(milliseconds: int) -> str:
    return f"{milliseconds} ms" if abs(milliseconds) < 1000 else f"{milliseconds / 1000:,.1f} s"


def _plot(steps: list[int], entered: list[int], kept_out: list[int]) -> JSONResponse:
    return JSONResponse({"steps": steps, "entered": entered, "keptOut": kept_out})
