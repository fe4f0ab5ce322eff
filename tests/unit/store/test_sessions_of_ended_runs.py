"""A session is found while the run that it belongs to ends, whatever other threads of the same store are doing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from overspill import handles
from overspill.store.files.store import FileStore

_ROUNDS = 5


def test_a_session_is_found_while_another_thread_lists_the_run_that_has_just_ended(tmp_path: Path):
    reader = FileStore(tmp_path)
    with ThreadPoolExecutor(1) as pool:
        for _ in range(_ROUNDS):
            writer, session, is_over = FileStore(tmp_path), handles.new(), Event()
            for each in [handles.new() for _ in range(30)] + [session]:
                writer.open_shelf(each, retention="keep").close()
            writer.close()

            def list_all(until: Event = is_over) -> None:
                reader.shelves()
                until.set()

            listing = pool.submit(list_all)
            while not is_over.is_set():
                assert reader.label(session).session == session
            listing.result()
