"""`overspill jobs`: what runs in live sessions, seen from outside."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from commands import Place

from overspill.session.sync import SyncSession
from overspill.settings import Settings
from overspill.store.files.store import FileStore
from overspill.testing import SlowTool


@contextmanager
def live(place: Place) -> Iterator[SyncSession]:
    with SyncSession(Settings(maxRunning=1), store=FileStore(place.store)) as session:
        yield session


def test_jobs_of_live_sessions_are_listed_in_the_order_of_their_requests(place: Place):
    slow = SlowTool()
    with live(place) as session:
        failed = session.start("failed", {}, SlowTool(ValueError("no \x1b[31m host")).blocking)
        assert place.overspill("jobs").code == 0
        running = session.start("running", {}, slow)
        jobs = json.loads(place.overspill("jobs", "--json").out)
        assert [(job["id"], job["tool"], job["error"]) for job in jobs] == [(failed, "failed", ""), (running, "running", "")]
        assert jobs[1]["state"] == "queued"
        assert all(job["seconds"] >= 0 and job["asked_for"].endswith("+00:00") for job in jobs)
        session.abort()
        code, out, _ = place.overspill("jobs")
        assert code == 0
        assert out.splitlines()[0] == "ID\tTool\tState\tSeconds\tRequested\tSession\tError"
        assert "\x1b" not in out
    assert place.overspill("jobs") == (0, "No background jobs in live sessions.\n", "")


def test_an_error_is_shown_without_its_control_characters(place: Place):
    def fail() -> None:
        raise ValueError("no \x1b[31m host")

    with live(place) as session:
        session.start("failed", {}, fail)
        session.invoke("wait_for_tool_output", {})
        assert "ValueError: no \\x1b[31m host" in place.overspill("jobs").out
