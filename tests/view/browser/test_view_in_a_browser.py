"""The viewer as people use it: in a browser, with a mouse or only a keyboard, wide and narrow, light and dark."""

from __future__ import annotations

import re
from pathlib import Path

import anyio
import anyio.from_thread
import pytest
from hostile_pages import CONTENTS
from viewers import Window, fill, output_path, run_apart, running_viewer

from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.files.store import FileStore
from overspill.types import Kept
from overspill.view.serve import hold_start_file

pytestmark = pytest.mark.slow
LOG = (
    "".join(f"2026-01-01 10:00:{number % 60:02} INFO request {number} ok\n" for number in range(5000)) + "ERROR payment failed\n"
)


def make_example(root: Path) -> Kept:
    """A session with a call that passes, one that fails, a stored log, and a question about it."""

    async def run() -> Kept:
        store = FileStore(root)
        async with Session(Settings(retention="keep"), store=store, name="example", preload=False) as session:

            def fail() -> str:
                raise RuntimeError("connection refused")

            await session.call("list_pods", {}, lambda: "web-1\nweb-2\n", server="k8s")
            await session.call("get_secret", {}, fail, server="k8s")
            await session.call("read_log", {}, lambda: LOG, server="k8s")
            kept = session.kept()[0]
            await session.invoke("tool_output", {"handle": kept.name, "extract": "payment failed"})
        store.close()
        return kept

    return run_apart(run)


@pytest.mark.parametrize(
    "window",
    [
        {"viewport": {"width": 1280, "height": 800}, "color_scheme": "light"},
        {"viewport": {"width": 1280, "height": 800}, "color_scheme": "dark"},
        {"viewport": {"width": 360, "height": 700}, "color_scheme": "light"},
    ],
    indirect=True,
    ids=["wide and light", "wide and dark", "narrow"],
)
def test_every_page_is_accessible_and_fits(window: Window, root: Path, axe: str):
    kept = make_example(root)
    with running_viewer(root) as viewer:
        page = window.enter(viewer).page
        page.wait_for_selector("text=example")
        addresses = ["/", f"/session/{kept.session}", output_path(kept), f"{output_path(kept)}?hex", "/savings", "/none"]
        addresses += [f"{output_path(kept)}/search?way=grep&words=payment", f"{output_path(kept)}/reply"]
        window.go(viewer, f"/session/{kept.session}")
        quotes = page.get_by_role("link", name="quotes").first.get_attribute("href")
        for path in [*addresses, quotes.removeprefix(viewer.entrance.folder)]:
            window.go(viewer, path)
            page.wait_for_load_state("load")
            # axe is added as a test's own script; the page's policy would refuse it, as it refuses everything else.
            found = page.evaluate(
                f"{axe}\naxe.run().then(r => r.violations.filter(v => ['serious','critical'].includes(v.impact)))"
            )
            assert [(each["id"], [node["html"][:200] for node in each["nodes"]]) for each in found] == [], path
            overflow = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert overflow <= 0, f"{path} is {overflow} pixels too wide"
        window.troubles[:] = [each for each in window.troubles if "404" not in each]  # asked for


def test_with_the_keyboard_alone_one_gets_from_the_sessions_to_a_hit(window: Window, root: Path):
    make_example(root)
    with running_viewer(root) as viewer:
        page = window.enter(viewer).page

        def tab_to(name: str) -> None:
            for _ in range(60):
                page.keyboard.press("Tab")
                if page.evaluate("document.activeElement.textContent.trim()").startswith(name):
                    return
            raise AssertionError(name)

        tab_to("Skip to content")
        tab_to("example")
        page.keyboard.press("Enter")
        page.wait_for_selector("h1:has-text('example')")
        tab_to("out_")
        page.keyboard.press("Enter")
        page.wait_for_selector("#words")
        page.locator("#words").focus()
        page.keyboard.type("payment")
        page.keyboard.press("Enter")
        page.wait_for_selector(".hits mark")
        tab_to("Line 5,001")
        page.keyboard.press("Enter")
        page.wait_for_selector(".lines mark:has-text('payment')")
        page.wait_for_load_state()  # scripts, which handle the keys, run after the text is there
        page.keyboard.press("w")
        assert page.locator("#content.wrapped").count() == 1
        page.keyboard.press("r")
        page.wait_for_selector(".hex")


def test_a_place_in_the_address_is_scrolled_to_and_highlighted(window: Window, root: Path):
    kept = make_example(root)
    with running_viewer(root) as viewer:
        page = window.enter(viewer).page
        window.go(viewer, f"{output_path(kept)}#L4000-4001")
        page.wait_for_selector(".marked a[href='#L4001']")
        assert page.locator(".lines mark").all_text_contents() == LOG.splitlines()[3999:4001]
        page.evaluate("location.hash = '#bytes=11-14'")
        page.wait_for_selector(".lines mark:text-is('10:0')")
        assert page.evaluate("(e => { const r = e.getBoundingClientRect(); return r.top >= 0 && r.bottom <= innerHeight; })"
                             "(document.querySelector('.lines mark'))")  # fmt: skip


def test_scrolling_loads_on_and_the_page_stays_small(window: Window, root: Path):
    kept = fill(root, big="".join(f"line {number}\n" for number in range(60_000)))[0]
    with running_viewer(root) as viewer:
        page = window.enter(viewer).page
        window.go(viewer, output_path(kept))
        page.evaluate("document.getElementById('content').scrollIntoView({block: 'end'})")
        for _ in range(30):
            before = page.evaluate("[...document.querySelectorAll('.window')].at(-1).dataset.end")
            page.evaluate("document.getElementById('content').scrollTop = 1e9")
            page.wait_for_selector(f".window[data-start='{before}']")
        assert page.locator(".window").count() <= 13
        numbers = [int(each) for each in page.locator(".lines .no").all_text_contents()]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
        assert numbers[-1] >= 30 * 400


def test_one_gigabyte_is_scrolled_to_its_end(window: Window, root: Path):
    async def store_it() -> Kept:
        store = FileStore(root)
        async with Session(Settings(retention="keep"), store=store, preload=False) as session:
            block = b"".join(b"%07d the quick brown fox jumps over the lazy dog\n" % number for number in range(20_000))
            kept = await session.keep((block for _ in range((1 << 30) // len(block))), "big")
        store.close()
        return kept

    kept = run_apart(store_it)
    assert kept.size.bytes > 1_000_000_000
    with running_viewer(root) as viewer:
        page = window.enter(viewer).page
        window.go(viewer, output_path(kept))
        page.get_by_role("link", name="End", exact=True).click()
        page.wait_for_selector(f".lines a[href='#L{kept.size.lines}']")
        assert page.locator(".lines .t").last.text_content() == "0019999 the quick brown fox jumps over the lazy dog"


def test_a_job_that_ends_while_one_looks_is_seen_to_end(window: Window, root: Path):
    async def run(release: anyio.Event, ready: anyio.Event, ids: list[str]) -> None:
        store = FileStore(root)
        async with Session(Settings(), store=store, preload=False) as session:
            await session.start("nightly_report", {}, release.wait)
            ids.append(session.id)
            ready.set()
            await session.stop()
            await done.wait()
        store.close()

    with anyio.from_thread.start_blocking_portal() as portal:
        release, ready, done = portal.call(anyio.Event), portal.call(anyio.Event), portal.call(anyio.Event)
        ids: list[str] = []
        running = portal.start_task_soon(run, release, ready, ids)
        portal.call(ready.wait)
        try:
            with running_viewer(root) as viewer:
                page = window.enter(viewer).page
                window.go(viewer, f"/session/{ids[0]}")
                page.wait_for_selector(".jobs .tag.run:text-is('running')")
                portal.call(release.set)
                page.wait_for_selector(".jobs .tag.live:text-is('ready')")
                window.check()
                page.goto("about:blank")
        finally:
            portal.call(release.set)
            portal.call(done.set)
            running.result(60)
    window.troubles[:] = [each for each in window.troubles if "about:blank" not in each]


@pytest.mark.promise("nobody-elses")
def test_nothing_hostile_runs_asks_elsewhere_or_hides(window: Window, root: Path):
    async def store_all() -> list[Kept]:
        store = FileStore(root)
        async with Session(
            Settings(retention="keep"), store=store, name="x\"'><img src=//evil.test/n>", preload=False
        ) as session:
            for content in CONTENTS.values():

                def fail(content: str = content) -> str:
                    raise RuntimeError(content)

                many = content * (20_000 // len(content) + 1)
                await session.call(content[:300], {}, lambda many=many: many, server=content[:200])
                await session.call(f"failing {content[:100]}", {}, fail)
            kept = session.kept()
        store.close()
        return kept

    kept = run_apart(store_all)
    assert len(kept) >= len(CONTENTS) >= 40
    with running_viewer(root) as viewer:
        page = window.enter(viewer).page
        for path in (
            "/",
            f"/session/{kept[0].session}",
            "/savings",
            "/savings?by=server",
            "/?q=%3Cscript%3Ealert(1)%3C/script%3E",
        ):
            window.go(viewer, path)
        for each in kept:
            window.go(viewer, output_path(each))
            window.go(viewer, f"{output_path(each)}?rendered")
            window.check()
        window.go(viewer, output_path(kept[0]))
        page.locator("#words").fill("script")
        page.keyboard.press("Enter")
        page.wait_for_selector(".hits mark")
        shown = page.locator("body").inner_text()
        assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b]", shown)


def test_the_start_link_in_a_file_leads_to_the_page(window: Window, root: Path):
    make_example(root)
    with running_viewer(root) as viewer, hold_start_file(viewer.link) as file:
        window.enter_by_file(viewer, file)
        window.page.wait_for_selector("h1:text-is('Sessions')")
        assert "token" not in window.page.url
