"""Listen on this machine only, and serve the pages behind the guard until it is time to stop."""

from __future__ import annotations

import errno
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
from markupsafe import escape
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from overspill.errors import OverspillError
from overspill.record.events import Entry
from overspill.retrieval.archive import Archive
from overspill.settings import PriceSettings
from overspill.store.files.scratch import ScratchFolder
from overspill.text.urls import is_loopback
from overspill.view.guard import Entrance, ViewerGuard
from overspill.view.library import Library
from overspill.view.live import POLL_SECONDS, LivePages
from overspill.view.output_pages import OutputPages
from overspill.view.pages import FOLDER, ListFacts, Showing, ViewerPages
from overspill.view.searches import Searches
from overspill.web.server import WebServer, bracket, open_listener

_OUTPUT = "/{form}/{session}/{file}"


class Address:
    """A socket that listens, and the names by which a browser may call it."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0) -> None:
        self._host = host
        self.listener = open_listener(host, port, " Choose another --port, or leave it out.")
        self.port: int = self.listener.getsockname()[1]

    @property
    def origin(self) -> str:
        return f"http://{bracket(self._host)}:{self.port}"

    @property
    def hosts(self) -> frozenset[str]:
        names = {bracket(self._host), *(("localhost",) if is_loopback(self._host) else ())}
        return frozenset(f"{name}:{self.port}" for name in names)


class Viewer(WebServer):
    """The page over an archive. `link` opens it, once. Journals of live sessions are checked every `poll_seconds`."""

    def __init__(
        self,
        archive: Archive,
        address: Address,
        poll_seconds: float = POLL_SECONDS,
        prices: PriceSettings | None = None,
        list_facts: ListFacts = tuple,
    ) -> None:
        self.entrance = Entrance()
        self.address = address
        self.link = address.origin + self.entrance.start_path
        self._searches = Searches()
        self._library = Library(archive)
        self._live = LivePages(self._library, poll_seconds)
        self._prices, self._list_facts = prices or PriceSettings(), list_facts
        super().__init__(
            self._build_application(),
            address.listener,
            lifespan="off",
            log_config=None,
            log_level="critical",  # invalid requests from strangers would fill the log, and addresses may hold the token
            server_header=False,
            timeout_graceful_shutdown=2,
        )

    def _build_application(self) -> Starlette:
        showing, folder = Showing(self.entrance.folder, self._library), self.entrance.folder
        pages = ViewerPages(self._library, showing, self._prices, self._list_facts)
        outputs = OutputPages(self._library, showing, self._searches)
        routes = [
            Route("/", pages.sessions),
            Route("/session/{session}", pages.session),
            Route("/session/{session}/context.json", pages.context),
            Route("/reply/{session}/{id}/{start:int}", pages.recorded_reply),
            Route("/citation/{session}/{op}", outputs.citation),
            Route("/live", self._live),
            Route("/savings", pages.savings),
            Route("/savings.json", pages.days),
            Mount("/static", StaticFiles(directory=FOLDER / "static")),
            Route(_OUTPUT, outputs.output),
            Route(f"{_OUTPUT}/window", outputs.window),
            Route(f"{_OUTPUT}/search", outputs.search),
            Route(f"{_OUTPUT}/raw", outputs.raw),
            Route(f"{_OUTPUT}/image", outputs.image),
            Route(f"{_OUTPUT}/reply", pages.rebuilt_reply),
        ]

        def explain(request: Request, problem: Exception) -> Response:
            match problem:
                case HTTPException():
                    return showing.page("problem.html", problem.status_code, what="There is no such page.")
                case OverspillError():
                    # Links in place of files are not followed, so the page does not exist.
                    cause = problem.__cause__
                    is_link = isinstance(cause, OSError) and cause.errno in (errno.ELOOP, errno.ENOTDIR)
                    return showing.page("problem.html", 404 if is_link else problem.code, what=str(problem))
                case _:  # a fault of ours: the reason is for a developer's log, not for a page
                    return showing.page("problem.html", 500, what="Something went wrong inside the viewer.")

        guard = Middleware(ViewerGuard, entrance=self.entrance, hosts=self.address.hosts, port=self.address.port)
        handlers = {OverspillError: explain, HTTPException: explain, Exception: explain}
        return Starlette(routes=[Mount(folder, routes=routes)], middleware=[guard], exception_handlers=handlers)

    def observe(self, session: str, event: Entry) -> None:
        """Give this to a session in the same process, `Session(observers=[viewer.observe])`, and open pages follow it live."""
        self._live.observe(session, event)

    async def serve_until(self, stop: anyio.Event) -> None:
        await super().serve_until(stop)
        await anyio.to_thread.run_sync(self._searches.close)


@contextmanager
def hold_start_file(link: str) -> Generator[Path]:
    """Write a file that only you can read and that leads a browser to the link. A program's arguments are visible to anyone."""
    with ScratchFolder("overspill-view-") as folder:
        file = folder / "start.html"
        file.touch(0o600, exist_ok=False)
        file.write_text(
            '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
            f'<meta http-equiv="refresh" content="0;url={escape(link)}"><title>Overspill</title>',
            encoding="utf-8",
        )
        yield file
