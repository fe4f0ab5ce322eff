"""What the model saw, opened in the timeline: with the keyboard alone, while the session goes on, and whatever it says."""

from __future__ import annotations

from pathlib import Path

import anyio
import anyio.from_thread
import pytest
from hostile_pages import CONTENTS
from viewers import Window, run_apart, running_viewer

from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.files.store import FileStore

pytestmark = pytest.mark.slow
RECORDING = Settings(retention="keep", record="replies")


def record(root: Path, *outputs: str) -> str:
    async def run() -> str:
        store = FileStore(root)
        async with Session(RECORDING, store=store, preload=False) as session:
            for text in outputs:
                await session.call("fetch", {}, lambda text=text: text)
            id = session.id
        store.close()
        return id

    return run_apart(run)


@pytest.mark.parametrize(
    "window",
    [{"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"}, {"viewport": {"width": 360, "height": 700}}],
    indirect=True,
    ids=["wide and dark", "narrow and light"],
)
def test_with_the_keyboard_a_reply_opens_in_place_and_is_accessible(window: Window, root: Path, axe: str):
    session = record(root, "  two pods\n\nare running", "row\n" * 9_000)
    with running_viewer(root) as viewer:
        page = window.enter(viewer).page
        window.go(viewer, f"/session/{session}")
        for number in range(2):
            page.locator(".saw summary").nth(number).focus()
            page.keyboard.press("Enter")
            page.wait_for_selector(f".saw >> nth={number} >> pre")
        assert page.locator(".saw pre").first.text_content() == "  two pods\n\nare running"
        assert "36000 bytes" in (page.locator(".saw pre").nth(1).text_content() or "")
        found = page.evaluate(f"{axe}\naxe.run().then(r => r.violations.filter(v => ['serious','critical'].includes(v.impact)))")
        assert [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found] == []
        assert page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") <= 0


def test_an_open_reply_stays_open_while_the_session_goes_on(window: Window, root: Path):
    async def run(ids: list[str], ready: anyio.Event, more: anyio.Event, done: anyio.Event) -> None:
        store = FileStore(root)
        async with Session(RECORDING, store=store, preload=False) as session:
            await session.call("first", {}, lambda: "the first reply")
            ids.append(session.id)
            ready.set()
            await more.wait()
            await session.call("second", {}, lambda: "the second reply")
            await done.wait()
        store.close()

    with anyio.from_thread.start_blocking_portal() as portal:
        ready, more, done = (portal.call(anyio.Event) for _ in range(3))
        ids: list[str] = []
        running = portal.start_task_soon(run, ids, ready, more, done)
        portal.call(ready.wait)
        try:
            with running_viewer(root) as viewer:
                page = window.enter(viewer).page
                window.go(viewer, f"/session/{ids[0]}")
                page.wait_for_selector(".saw summary")
                page.locator(".saw summary").first.click()
                page.wait_for_selector(".saw pre:has-text('the first reply')")
                portal.call(more.set)
                page.wait_for_selector(".timeline :text('second')")
                assert page.locator(".saw[open] pre").all_text_contents() == ["the first reply"]
                window.check()
                page.goto("about:blank")
        finally:
            portal.call(more.set)
            portal.call(done.set)
            running.result(60)
    window.troubles[:] = [each for each in window.troubles if "about:blank" not in each]


@pytest.mark.promise("nobody-elses")
def test_hostile_replies_are_shown_as_text(window: Window, root: Path):
    session = record(root, *CONTENTS.values())
    with running_viewer(root) as viewer:
        page = window.enter(viewer).page
        window.go(viewer, f"/session/{session}")
        count = page.locator(".saw").count()
        assert count == len(CONTENTS) >= 40
        for number in range(count):
            page.locator(".saw summary").nth(number).click()
            page.wait_for_selector(f".saw >> nth={number} >> pre")
        window.check()
        assert page.locator(".saw pre *").count() == 0
