"""The same output again: the tool runs, nothing is stored twice, and the model is told where it has seen it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from overspill import ContextBudget, Session, Settings
from overspill.mcp.proxy.options import PROXY_DEFAULTS, SHARED_DEFAULTS
from overspill.record.events import OutputStored, ToolCalled
from overspill.settings import load
from overspill.settings.keys import PresetName
from overspill.text import tokens
from overspill.types import Output, Reply

LARGE = "".join(f"line {number} of many\n" for number in range(4000))


def give(text: Any) -> Callable[..., Any]:
    return lambda **_: text


async def call(session: Session, text: Any = LARGE, path: str = "a.txt", **options: Any) -> Reply:
    return await session.call("read_file", {"path": path}, give(text), **options)


async def test_a_repeated_output_is_a_stub_that_names_the_call_to_see_it_again():
    async with Session() as session:
        first, again = await call(session), await call(session)
        assert first.kept is not None
        assert again.kept == first.kept
        size, name = first.kept.size, first.kept.name
        assert again.text == (
            f"Same output as before, stored as {name} ({size.bytes} bytes, {size.lines} lines, about 27000 tokens).\n"
            f'To see it again, call get_tool_output(id="{name}", mode="slice").'
        )
        assert tokens.count(again.text).tokens * 10 <= size.tokens
        shown = await session.invoke("get_tool_output", {"id": name, "mode": "slice"})
        assert LARGE[:5000] in shown.text


@pytest.mark.promise("nothing-lost")
async def test_a_repeat_is_stored_once_and_its_call_is_in_the_journal(tmp_path: Path):
    ran: list[str] = []

    def read(path: str) -> str:
        ran.append(path)
        return LARGE

    async with Session(Settings(storeDir=str(tmp_path))) as session:
        for path in ("a.txt", "b.txt", "a.txt"):
            await session.call("read_file", {"path": path}, read)
        events = list(session._life.parts.ledger.events())
        calls = [event for event in events if isinstance(event, ToolCalled)]
        (stored,) = [event.kept for event in events if isinstance(event, OutputStored)]
        assert ran == ["a.txt", "b.txt", "a.txt"]
        assert [event.id for event in calls] == [stored.id] * 3
        assert [path.stat().st_size for path in tmp_path.rglob(stored.id)] == [len(LARGE)]
        files = [path for path in tmp_path.rglob("session-*/*") if path.stat().st_size >= len(LARGE)]
        assert len(files) == 1


async def test_a_repeat_from_elsewhere_says_where_the_first_came_from():
    async with Session() as session:
        await call(session)
        again = await call(session, path="b.txt")
    assert again.text.startswith("Same output as read_file: a.txt gave before, stored as out_")


@pytest.mark.parametrize("kind", ["text", "stream", "json", "large"])
async def test_a_repeat_is_recognised_whatever_the_tool_returns(kind: str):
    results: dict[str, Callable[[], Any]] = {
        "text": lambda: LARGE,
        "stream": lambda: (line for line in LARGE.splitlines(keepends=True)),
        "json": lambda: {"lines": LARGE.splitlines()},
        "large": lambda: LARGE * 50,
    }
    async with Session() as session:
        first, again = [await session.call("read", {}, results[kind]) for _ in range(2)]
    assert first.kept is not None
    assert again.kept == first.kept
    assert len(again.text) < 300


async def test_what_fits_passes_however_often_it_comes():
    async with Session() as session:
        replies = [await call(session, "small") for _ in range(3)]
    assert [reply.text for reply in replies] == ["small"] * 3


async def test_other_content_of_the_same_size_is_no_repeat():
    async with Session() as session:
        first, other = await call(session), await call(session, LARGE.replace("line 17 ", "line 71 "))
    assert first.kept is not None
    assert other.kept is not None
    assert other.kept.id != first.kept.id
    assert "Same output" not in other.text


async def test_an_output_of_another_server_or_with_other_blocks_is_no_repeat():
    """A reference to a server's output is not allowed for the tools of another."""
    blocks = [{"type": "text", "text": LARGE[:1000]}, {"type": "text", "text": LARGE[1000:]}]
    async with Session() as session:
        replies = [await call(session), await call(session, server="one"), await call(session, Output(blocks))]
    assert len({reply.kept.id for reply in replies if reply.kept}) == 3
    assert not any("Same output" in reply.text for reply in replies)


async def test_an_output_that_was_removed_or_never_shown_is_shown_in_full():
    async with Session() as session:
        kept = await session.keep(LARGE, "read_file")
        first = await call(session)
        assert first.kept is not None
        assert first.kept.id != kept.id
        session._life.opening.store.empty_shelf(session.id)
        again = await call(session)
        assert again.kept is not None
        assert again.kept.id != first.kept.id
        assert "Same output" not in again.text


async def test_an_output_that_broke_off_is_no_repeat_and_not_repeated():
    def broken(**_: Any) -> Any:
        yield LARGE
        raise RuntimeError("gone")

    async with Session() as session:
        replies = [await session.call("read_file", {"path": "a.txt"}, tool) for tool in (broken, give(LARGE), broken)]
    assert not any("Same output" in reply.text for reply in replies)
    assert "RuntimeError: gone" in replies[2].text


async def test_a_session_that_is_opened_again_has_shown_nothing(tmp_path: Path):
    settings = Settings(storeDir=str(tmp_path))
    for _ in range(2):
        async with Session(settings, name="kept") as session:
            assert "Same output" not in (await call(session)).text


@pytest.mark.parametrize("preset", ["tool_output", "artifacts", "slow"])
def test_the_documents_presets_show_every_output_in_full(preset: PresetName):
    assert Settings(preset).repeats == "full"


async def test_repeats_can_be_shown_in_full():
    async with Session(Settings(repeats="full")) as session:
        replies = [await call(session) for _ in range(2)]
    assert len({reply.kept.id for reply in replies if reply.kept}) == 2
    assert not any("Same output" in reply.text for reply in replies)


def test_the_proxy_names_repeats_over_pipes_and_shows_them_in_full_over_http():
    """Over HTTP, its session may serve several conversations. The documents' presets always show them in full."""
    presets = [{"preset": preset} for preset in ("overspill", "tool_output", "artifacts", "slow")]
    over_pipes = [load(cli=preset, usual=[PROXY_DEFAULTS]).settings.repeats for preset in presets]
    over_http = [load(cli=preset, usual=[PROXY_DEFAULTS, SHARED_DEFAULTS]).settings.repeats for preset in presets]
    assert (over_pipes, over_http) == (["stub", "full", "full", "full"], ["full"] * 4)
    assert load(cli={"repeats": "full"}, usual=[PROXY_DEFAULTS]).settings.repeats == "full"


async def test_what_was_found_too_late_for_the_first_reply_is_in_a_later_one():
    log = "".join(f"2026-11-16 {number:06} request served\n" for number in range(120_000)) + "order 4711 was refused\n"
    async with Session(Settings(intentWithinSecs=0.02)) as session:
        first = await call(session, log, intent="refused orders")
        assert (
            'Not searched for "refused orders" yet, because that takes more than 0.02 s. Search all of it with get_tool_output('
            in first.text
        )
        with anyio.fail_after(60):
            while "Passages" not in (again := await call(session, log, intent="refused orders")).text:
                assert again.text.startswith("Same output as before")
        assert again.text.startswith("Same output as before")
        assert "order 4711 was refused" in again.text
        after = await call(session, log, intent="refused orders")  # shown once is enough
        assert after.text.startswith("Same output as before")
        assert "Passages" not in after.text


async def test_passages_for_which_there_was_no_room_are_in_a_later_reply():
    budget = ContextBudget(window=2_000, used=1_900)
    async with Session(budget=budget) as session:
        first = await call(session, intent="line 1234")
        assert "Passages" not in first.text
        budget.settle(0)
        again = await call(session, intent="line 1234")
    assert again.text.startswith("Same output as before")
    assert "Passages" in again.text
