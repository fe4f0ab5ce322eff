"""Listen on this machine only, and serve until told to stop."""

from __future__ import annotations

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import anyio
import anyio.to_thread
import uvicorn
from markupsafe import escape

from overspill.record.events import Entry
from overspill.retrieval.archive import Archive
from overspill.store.files.scratch import ScratchFolder
from overspill.view.application import build_application
from overspill.view.guard import Entrance
from overspill.view.library import Library
from overspill.view.live import POLL_SECONDS, LivePages
from overspill.view.searches import Searches
from overspill.web.addresses import bracket, is_loopback, open_listener
from overspill.web.descriptors import Descriptors
from overspill.web.server import WebServer

_GRACE_SECONDS = 2


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
    """The page over an archive. `link` opens it, once. Journals of live sessions are looked at every `poll_seconds`."""

    def __init__(self, archive: Archive, address: Address, poll_seconds: float = POLL_SECONDS) -> None:
        self.entrance = Entrance()
        self.address = address
        self.link = address.origin + self.entrance.start_path
        self._searches = Searches()
        library = Library(archive)
        self._live = LivePages(library, poll_seconds)
        app = build_application(library, self._live, self._searches, self.entrance, address.hosts, address.port)
        super().__init__(
            uvicorn.Config(
                app,
                ws="none",
                lifespan="off",
                proxy_headers=False,
                log_config=None,
                log_level="critical",  # invalid requests from strangers would fill the log, and addresses may hold the token
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            ),
            address.listener,
            Descriptors(lambda _: None),
        )

    def observe(self, session: str, event: Entry) -> None:
        """Give this to a session in the same process, `Session(observers=[viewer.observe])`, and open pages follow it at once."""
        self._live.bells.observe(session, event)

    async def serve_until(self, stop: anyio.Event) -> None:
        await super().serve_until(stop)
        await anyio.to_thread.run_sync(self._searches.close)


@contextmanager
def hold_start_file(link: str) -> Generator[Path]:
    """A file that only you can read, and that leads a browser to the link: what a program is started with, all users can see."""
    with ScratchFolder("overspill-view-") as folder:
        file = folder / "start.html"
        fd = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR)
        with open(fd, "w", encoding="utf-8") as page:
            page.write(
                '<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">'
                f'<meta http-equiv="refresh" content="0;url={escape(link)}"><title>Overspill</title>'
            )
        yield file
