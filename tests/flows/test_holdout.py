"""`holdoutPercent`: a share of conversations goes on as without Overspill, and `overspill stats` compares both groups."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Place

from overspill import ContextBudget, Session, Settings
from overspill.retrieval.archive import Archive
from overspill.session.opening import draw_untouched
from overspill.store.files.store import FileStore
from overspill.store.memory import MemoryStore

LARGE = "".join(f"line {number} of many\n" for number in range(4000))
HELD_OUT = Settings(holdoutPercent=50, retention="keep")


def find_name(untouched: bool) -> str:
    return next(name for name in map(str, range(100)) if draw_untouched(HELD_OUT, name).off is untouched)


async def test_an_untouched_conversation_gets_everything_and_no_tools():
    rules = {"servers": {"db": {"async": True}}, "truncation": {"overrides": {"read": {"off": False, "async": True}}}}
    settings = Settings(holdoutPercent=50, retention="keep", **rules)
    store = MemoryStore()
    async with Session(settings, store=store, name=find_name(True)) as session:
        for tool in ("read", "other"):
            reply = await session.call(tool, {}, lambda: LARGE, server="db")
            assert (reply.text, reply.kept, session.tools()) == (LARGE, None, [])
    ((_, counters),) = Archive([store]).counters()
    assert counters.bill.is_untouched


async def test_all_other_conversations_are_as_always():
    async with Session(HELD_OUT, store=MemoryStore(), name=find_name(False)) as session:
        assert (await session.call("read", {}, lambda: LARGE)).kept
        assert session.tools() == Session().tools()


@pytest.mark.promise("nobody-elses")
async def test_secrets_stay_hidden_in_an_untouched_conversation():
    settings = Settings(holdoutPercent=50, redact={"shown": "on"})
    secrets = {"TOKEN": "correct-horse-battery-staple-9"}
    async with Session(settings, store=MemoryStore(), name=find_name(True), secrets=secrets) as session:
        reply = await session.call("read", {}, lambda: "token correct-horse-battery-staple-9")
    assert "battery" not in reply.text


def test_the_share_is_drawn_once_and_comes_out_right():
    names = [f"conversation {number}" for number in range(5_000)]
    settings, again, without = Settings(holdoutPercent=10), Settings(holdoutPercent=10), Settings()
    drawn = [draw_untouched(settings, name).off for name in names]
    assert 0.08 < sum(drawn) / len(drawn) < 0.12
    assert drawn == [draw_untouched(again, name).off for name in names]
    assert not any(draw_untouched(without, name).off for name in names[:500])


def test_whoever_counts_a_window_is_never_left_without_its_protection():
    session = Session(HELD_OUT, store=MemoryStore(), name=find_name(True), budget=ContextBudget(window=8_000))
    assert not session.settings.off


async def test_stats_compares_both_groups_with_sessions_that_kept_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    place = Place(tmp_path, monkeypatch, capsys)
    store = FileStore(tmp_path)
    for _ in range(12):
        async with Session(HELD_OUT, store=store, family="proxy-1") as session:
            await session.call("read", {}, lambda: LARGE if session.settings.off else "small")
    store.close()
    shown = json.loads(place.overspill("stats", "--json", "--set", f"storeDir={tmp_path}").out)["sessions"]
    untouched = [each for each in shown if each["untouched"]]
    assert len(shown) == 12
    assert 0 < len(untouched) < 12
    assert all(each["money"]["spent"] > 0 and each["money"]["offered"] == 0 for each in untouched)
    printed = place.overspill("stats", "--set", f"storeDir={tmp_path}").out
    assert f"Untouched conversations\t{len(untouched)}: $" in printed
    assert f"Other conversations\t{12 - len(untouched)}: $" in printed
    assert "the difference may be chance" in printed
