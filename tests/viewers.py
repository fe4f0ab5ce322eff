"""For tests of the viewer: the real server on a real socket, in a thread, and a client that shows everything it gets."""

from __future__ import annotations

import http.client
import re
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

import anyio
import anyio.from_thread

from overspill.redaction.policy import Redaction
from overspill.retrieval.archive import Archive
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.files.store import FileStore
from overspill.store.protocols import Store
from overspill.types import Kept
from overspill.view.live import POLL_SECONDS
from overspill.view.serve import Address, Viewer

T = TypeVar("T")


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    @property
    def words(self) -> str:
        """What a reader sees, without tags."""
        return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", self.text))


class Client:
    """Sends exactly these headers. After `enter` it has the cookie, like a browser."""

    def __init__(self, viewer: Viewer) -> None:
        self.viewer = viewer
        self.root = viewer.entrance.folder
        self.host = f"127.0.0.1:{viewer.address.port}"
        self.cookie = ""

    def ask(self, path: str, *, method: str = "GET", headers: dict[str, str] | None = None, body: bytes | None = None) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.viewer.address.port, timeout=60)
        given = {"Host": self.host, **({"Cookie": self.cookie} if self.cookie else {}), **(headers or {})}
        try:
            connection.request(method, path, body=body, headers={name: value for name, value in given.items() if value})
            answer = connection.getresponse()
            return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())
        finally:
            connection.close()

    def enter(self) -> Client:
        link = urlsplit(self.viewer.link)
        answer = self.ask(f"{link.path}?{link.query}")
        assert answer.status == 303
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        return self

    @contextmanager
    def listen(self, path: str) -> Generator[http.client.HTTPResponse]:
        """An answer that goes on, such as that of server-sent events."""
        connection = http.client.HTTPConnection("127.0.0.1", self.viewer.address.port, timeout=60)
        try:
            connection.request("GET", self.root + path, headers={"Host": self.host, "Cookie": self.cookie})
            yield connection.getresponse()
        finally:
            connection.close()

    def get(self, path: str = "/", **headers: str) -> Answer:
        return self.ask(self.root + path, headers={name.replace("_", "-"): value for name, value in headers.items()})


@contextmanager
def running_viewer(
    *places: Path | Store, poll_seconds: float = POLL_SECONDS, redaction: Redaction | None = None
) -> Generator[Viewer]:
    stores = [FileStore(each) if isinstance(each, Path) else each for each in places]
    viewer = Viewer(Archive(stores, redaction=redaction), Address(), poll_seconds)
    thread = Thread(target=lambda: anyio.run(_serve, viewer))
    thread.start()
    try:
        yield viewer
    finally:
        viewer.should_exit = True
        thread.join(30)
        assert not thread.is_alive()


async def _serve(viewer: Viewer) -> None:
    await viewer.serve_until(anyio.Event())


def fill(root: Path, *, name: str = "", tool: str = "fetch", server: str = "", **outputs: Any) -> list[Kept]:
    """A session that is over and kept. Its tool returned these, one after the other."""

    async def run() -> list[Kept]:
        store = FileStore(root)
        async with Session(Settings(retention="keep"), store=store, name=name, preload=False) as session:
            for each in outputs.values():
                await session.call(tool, {}, lambda each=each: each, server=server)
            kept = session.kept()
        store.close()
        return kept

    return run_apart(run)


def run_apart(work: Callable[[], Awaitable[T]]) -> T:
    """On an event loop in a thread of its own: what drives a browser has one in this thread."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(anyio.run, work).result()


def output_path(kept: Kept) -> str:
    return f"/output/{kept.session}/{kept.id}"


class Window:
    """A browser window. `check` fails if a script of somebody else ran, or anything but the viewer was asked for something."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.troubles: list[str] = []
        self._origin = ""
        page.add_init_script("window.ran = 0")
        page.on("dialog", self._note_dialog)
        page.on("request", self._note_request)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("console", lambda said: said.type == "error" and self.troubles.append(f"console: {said.text}"))

    def enter(self, viewer: Viewer) -> Window:
        self._origin = viewer.address.origin
        self.page.goto(viewer.link)
        return self

    def enter_by_file(self, viewer: Viewer, file: Path) -> None:
        """As `--open` does."""
        self._origin = viewer.address.origin
        self.page.goto(file.as_uri())
        self.page.wait_for_url(f"{self._origin}{viewer.entrance.folder}/")
        self.troubles[:] = [each for each in self.troubles if file.as_uri() not in each]

    def go(self, viewer: Viewer, path: str) -> Window:
        self.page.goto(f"{self._origin}{viewer.entrance.folder}{path}")
        assert self.page.evaluate("window.ran || 0") == 0
        return self

    def check(self) -> None:
        assert self.troubles == []
        assert self.page.evaluate("window.ran || 0") == 0

    def _note_dialog(self, dialog: Any) -> None:
        self.troubles.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _note_request(self, request: Any) -> None:
        if not request.url.startswith(f"{self._origin}/"):
            self.troubles.append(f"request: {request.url}")
