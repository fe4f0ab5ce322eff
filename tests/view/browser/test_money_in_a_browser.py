"""What a person sees of a day with a real proxy: whose session it was, what was asked and answered, and what it saved."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Route
from viewers import Window, running_viewer
from wire import Served, config, every

pytestmark = pytest.mark.slow


def fill(root: Path) -> None:
    settings = {"record": "replies", "repeats": "stub"}
    with Served([config(every())], root, settings=settings) as wire:
        wire.hello()
        name = wire.call("lines", {"count": 3_000})["content"][0]["text"].split("out_")[1][:6]
        wire.call("tool_output", {"handle": f"out_{name}", "extract": "line 2718 of the fox"})


def test_a_session_has_the_name_of_its_client_and_server_and_its_time(window: Window, root: Path):
    fill(root)
    with running_viewer(root) as viewer:
        page = window.enter(viewer).page
        window.go(viewer, "/")
        title = page.locator("tbody th a").first.text_content() or ""
        client, server, time = title.split(" · ")
        assert (bool(client), server) == (True, "every")
        assert time[:2] == "20"
        page.locator("tbody th a").first.click()
        page.wait_for_selector("h1")
        assert page.locator("h1").text_content() == title
        page.locator("td.details a").first.click()
        page.wait_for_selector("#content")
        assert page.locator(".crumbs a").nth(1).text_content() == title


def test_the_question_is_beside_its_answer(window: Window, root: Path):
    fill(root)
    with running_viewer(root) as viewer:
        page = window.enter(viewer).page
        window.go(viewer, "/")
        page.locator("tbody th a").first.click()
        asked = page.locator(".saw", has_text="The question, and what the model saw")
        asked.locator("summary").focus()
        page.keyboard.press("Enter")
        asked.locator(".asked pre").wait_for()
        asked.locator(".seen pre").wait_for()
        assert "line 2718 of the fox" in (asked.locator(".asked pre").text_content() or "")
        assert "2718" in (asked.locator(".seen pre").text_content() or "")


def test_what_is_opened_before_the_scripts_run_is_loaded_when_they_do(window: Window, root: Path):
    fill(root)
    with running_viewer(root) as viewer:
        page = window.enter(viewer).page
        window.go(viewer, "/")
        held: list[Route] = []
        page.route("**/htmx*", lambda route: held.append(route))
        page.locator("tbody th a").first.click(no_wait_after=True)
        asked = page.locator(".saw", has_text="The question, and what the model saw")
        asked.locator("summary").focus()
        page.keyboard.press("Enter")
        assert asked.get_attribute("open") is not None
        assert asked.locator("pre").count() == 0
        held[0].continue_()
        asked.locator(".asked pre").wait_for()
        asked.locator(".seen pre").wait_for()


def test_the_chart_of_one_day_has_a_bar_for_each_hour_and_money_is_net(window: Window, root: Path, axe: str):
    fill(root)
    with running_viewer(root) as viewer:
        page = window.enter(viewer).page
        window.go(viewer, "/savings")
        page.wait_for_selector(".plot canvas")
        plot = "fetch(document.querySelector('[data-plot]').dataset.plot).then(r => r.json())"
        assert [step % 3600 for step in page.evaluate(plot)["steps"]] == [0]
        # Bars leave marks of their colour in the canvas; a single point of a line would leave next to none.
        filled = page.evaluate(
            """() => {
                const canvas = document.querySelector(".plot canvas");
                const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
                let filled = 0;
                for (let place = 3; place < data.length; place += 4) filled += data[place] > 0;
                return filled / (data.length / 4);
            }"""
        )
        assert filled > 0.02
        facts = page.locator("dl.facts").text_content() or ""
        for part in ("would have cost", "shown instead", "read back", "Our tools", "Additional requests"):
            assert part in facts
        found = page.evaluate(f"{axe}\naxe.run().then(r => r.violations.filter(v => ['serious','critical'].includes(v.impact)))")
        assert [each["id"] for each in found] == []
