"""The pages about all sessions, one session, and what was saved."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from overspill.errors import BadRequest
from overspill.view.asking import AnswerPage, read_number, read_words
from overspill.view.charts import GROUPINGS, plot_context, sum_days, sum_savings
from overspill.view.library import Library
from overspill.view.records import SessionRecord
from overspill.view.showing import Showing
from overspill.view.timeline import make_timeline

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


class ViewerPages:
    def __init__(self, library: Library, showing: Showing) -> None:
        self._library = library
        self._showing = showing

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
        )

    def context(self, request: Request) -> Response:
        points = plot_context(self._library.events(self._library.session(request.path_params["session"]).session))
        return _plot([point.step for point in points], [p.entered for p in points], [p.kept_out for p in points])

    def savings(self, request: Request) -> Response:
        grouping = GROUPINGS.get(request.query_params.get("by", "tool"))
        if grouping is None:
            raise BadRequest(f"by must be one of: {', '.join(GROUPINGS)}.")
        rows = sum_savings(self._library.sessions(), grouping)
        page = AnswerPage(len(rows), read_number(request, "page", 1), ROWS_PER_PAGE)
        return self._showing.page(
            "savings.html",
            rows=rows[page.start : page.end],
            page=page,
            grouping=grouping,
            groupings=GROUPINGS,
            kept_tokens=sum(found.kept_tokens for _, found in rows),
            shown_tokens=sum(found.shown_tokens for _, found in rows),
        )

    def days(self, request: Request) -> Response:
        days = sum_days(self._library.sessions())
        return _plot([day for day, _ in days], [found.shown_tokens for _, found in days], [s.saved_tokens for _, s in days])


def _plot(steps: list[int], entered: list[int], kept_out: list[int]) -> JSONResponse:
    return JSONResponse({"steps": steps, "entered": entered, "keptOut": kept_out})
