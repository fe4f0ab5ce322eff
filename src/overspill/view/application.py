"""The pages behind the guard, and what a browser gets when something is wrong."""

from __future__ import annotations

import errno
from collections.abc import Collection

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from overspill.errors import OverspillError
from overspill.view.guard import Entrance, ViewerGuard
from overspill.view.library import Library
from overspill.view.live import LivePages
from overspill.view.output_pages import OutputPages
from overspill.view.pages import ViewerPages
from overspill.view.reply_pages import ReplyPages
from overspill.view.searches import Searches
from overspill.view.showing import FOLDER, Showing

_OUTPUT = "/output/{session}/{file}"


def build_application(
    library: Library, live: LivePages, searches: Searches, entrance: Entrance, hosts: Collection[str], port: int
) -> Starlette:
    showing = Showing(entrance.folder)
    pages, outputs = ViewerPages(library, showing), OutputPages(library, showing, searches)
    replies = ReplyPages(library, showing)
    routes = [
        Route("/", pages.sessions),
        Route("/session/{session}", pages.session),
        Route("/session/{session}/context.json", pages.context),
        Route(_OUTPUT, outputs.output),
        Route(f"{_OUTPUT}/window", outputs.window),
        Route(f"{_OUTPUT}/search", outputs.search),
        Route(f"{_OUTPUT}/raw", outputs.raw),
        Route(f"{_OUTPUT}/image", outputs.image),
        Route(f"{_OUTPUT}/reply", replies.rebuilt),
        Route("/reply/{session}/{id}/{start:int}", replies.recorded),
        Route("/citation/{session}/{op}", outputs.citation),
        Route("/live", live),
        Route("/savings", pages.savings),
        Route("/savings.json", pages.days),
        Mount("/static", StaticFiles(directory=FOLDER / "static")),
    ]

    def explain(request: Request, problem: Exception) -> Response:
        match problem:
            case HTTPException():
                return showing.page("problem.html", problem.status_code, what="There is no such page.")
            case OverspillError():
                return showing.page("problem.html", _find_status(problem), what=str(problem))
            case _:  # ours: the reason is for the log of a developer, not for a page
                return showing.page("problem.html", 500, what="Something went wrong inside the viewer.")

    return Starlette(
        routes=[Mount(entrance.folder, routes=routes)],
        middleware=[Middleware(ViewerGuard, entrance=entrance, hosts=hosts, port=port)],
        exception_handlers={OverspillError: explain, HTTPException: explain, Exception: explain},
    )


def _find_status(problem: OverspillError) -> int:
    """A link where a file should be is not followed, so there is nothing to show."""
    cause = problem.__cause__
    return 404 if isinstance(cause, OSError) and cause.errno in (errno.ELOOP, errno.ENOTDIR) else problem.code
