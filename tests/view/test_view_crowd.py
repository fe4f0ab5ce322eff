"""The viewer among others on the machine who hold connections, and over a store in which somebody has put links."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import Barrier, Thread

import pytest
from viewers import Client, fill, output_path, running_viewer

from overspill.types import Kept


def test_half_open_requests_of_others_do_not_keep_the_owner_out(tmp_path: Path):
    with running_viewer(tmp_path) as viewer, ExitStack() as opened:
        owner = Client(viewer).enter()
        for first in (b"", b"GET / HTTP/1.1\r\nHost: ", b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"):
            for _ in range(70):
                stranger = opened.enter_context(socket.create_connection(("127.0.0.1", viewer.address.port), timeout=60))
                stranger.sendall(first)
            assert owner.get().status == 200


def test_streams_that_are_asked_for_together_are_counted_before_they_open(tmp_path: Path):
    asking, statuses, limit = 40, list[int](), 16
    session = fill(tmp_path, large="line\n" * 5000)[0].session
    with running_viewer(tmp_path, poll_seconds=3600) as viewer, ExitStack() as opened:
        owner, together, answered = Client(viewer).enter(), Barrier(asking), Barrier(asking + 1)

        def ask() -> None:
            together.wait(60)
            with owner.listen(f"/live?session={session}") as answer:
                statuses.append(answer.status)
                answered.wait(60)

        threads = [Thread(target=ask) for _ in range(asking)]
        opened.callback(lambda: [each.join(60) for each in threads])
        for each in threads:
            each.start()
        answered.wait(60)
    assert sorted(statuses) == [200] * limit + [503] * (asking - limit)


def test_a_stream_that_could_not_open_takes_no_place(tmp_path: Path):
    unknown = "01a1ebdb-fdc1-7f27-a368-e3d5e6b92419"
    with running_viewer(tmp_path) as viewer:
        owner = Client(viewer).enter()
        assert {owner.get(f"/live?session={unknown}").status for _ in range(20)} == {404}
        with owner.listen("/live") as answer:
            assert answer.status == 200


def link_output(kept: Kept, store: Path) -> None:
    file = next(store.rglob(kept.id))
    file.unlink()
    file.symlink_to("/etc/passwd")


def link_session(kept: Kept, store: Path) -> None:
    folder = next(store.rglob(f"session-{kept.session}"))
    folder.rename(store.parent / "elsewhere")
    folder.symlink_to(store.parent / "elsewhere")


def link_journal(kept: Kept, store: Path) -> None:
    journal = next(store.rglob("journal.jsonl"))
    journal.rename(store.parent / "elsewhere")
    journal.symlink_to(journal)


@pytest.mark.parametrize("link", [link_output, link_session, link_journal])
def test_a_symbolic_link_in_the_store_is_not_followed_and_the_page_says_so(tmp_path: Path, link: Callable[[Kept, Path], None]):
    store = tmp_path / "store"
    kept = fill(store, large="line\n" * 5000)[0]
    link(kept, store)
    with running_viewer(store) as viewer:
        owner = Client(viewer).enter()
        assert owner.get().status == 200
        for page in ("", "/raw", "/window?start=0", "/reply", "/image", "/search?words=line"):
            answer = owner.get(output_path(kept) + page)
            assert (page, answer.status) == (page, 404)
            assert "symbolic link" in answer.words
