"""What a caller looks for is searched with limited work or for a limited time, and what began late goes on for the next reply."""

from __future__ import annotations

import subprocess
import sys
from threading import Event
from typing import Any

import anyio
import pytest
from msgspec.structs import replace
from waiting import until

from overspill import Settings
from overspill.gate.intent import Intent
from overspill.gate.passages import MAX_SEARCHES, IntentAnswers, Passages
from overspill.gate.replies import ReplyDraft
from overspill.lexical.index import QUICK, Work
from overspill.types import LIKELY, Kept, Size

pytestmark = pytest.mark.anyio

KEPT = Kept("s", "01a1dd7b-13a4-7c37-a821-1e5e402e61f9", "t", "size_cap", Size(50_000, 50_000, 500, 12_000), "ab" * 32, 0)
DRAFTS = [ReplyDraft(("handle and preview",)), ReplyDraft(("handle",))]
ASKED = Intent(("which failed",), is_explicit=True)
FOUND = Passages("[L3]\na failed", "(matched 1 record, all shown)", 0.9, 1, "log", 50_000)


class HeldSearch:
    """Finds something as soon as it is let go."""

    def __init__(self, found: Passages = FOUND) -> None:
        self.found = found
        self.may_end = Event()
        self.begun = self.ended = self.recorded = 0
        self.work: Work | None = None

    def find(self, kept: Kept, question: str, max_tokens: int, work: Work | None) -> Passages:
        self.begun += 1
        self.work = work
        assert self.may_end.wait(30)
        self.ended += 1
        return self.found

    def record(self, kept: Kept, found: Passages, milliseconds: int) -> None:
        self.recorded += 1


def answers(search: HeldSearch) -> IntentAnswers:
    return IntentAnswers(lambda text: len(text) // 4, search)


async def extend(made: IntentAnswers, intent: Intent = ASKED, **settings: Any) -> list[str]:
    with anyio.fail_after(20):
        drafts = await made.extend(DRAFTS, KEPT, intent, Settings(**settings), None)
    return [draft.text for draft in drafts]


async def test_passages_come_before_the_other_drafts() -> None:
    search = HeldSearch()
    search.may_end.set()
    texts = await extend(answers(search), intentWithinSecs=20)
    assert texts[0].startswith('handle\n\nPassages found for "which failed"')
    assert texts[1:] == ["handle and preview", "handle"]
    assert search.recorded == 1


async def test_passages_that_fill_their_room_are_searched_once() -> None:
    class FullSearch(HeldSearch):
        def find(self, kept: Kept, question: str, max_tokens: int, work: Work | None) -> Passages:
            closing = FOUND.closing
            self.found = replace(
                FOUND, kind="history", confidence=0.4, text="x" * (4 * max_tokens - len(closing) - 1)
            )  # the engine counts both
            return super().find(kept, question, max_tokens, work)

    search = FullSearch()
    search.may_end.set()
    texts = await extend(answers(search), intentWithinSecs=20, intentTokens=500)
    assert 4 * 470 < len(texts[0]) <= 4 * 500 + len("handle\n\n")
    assert search.begun == 1


async def test_a_late_search_is_not_waited_for_and_goes_on() -> None:
    search = HeldSearch()
    texts = await extend(answers(search), intentWithinSecs=0.2)
    late = (
        'Not searched for "which failed" yet, because that takes more than 0.2 s. '
        'Search all of it with get_tool_output(id="out_sfrw20", mode="ask", query="what to extract").'
    )
    assert texts == [f"handle and preview\n\n{late}", f"handle\n\n{late}", "handle"]
    await until(lambda: search.begun)
    search.may_end.set()
    await until(lambda: search.ended)
    assert search.recorded == 0


async def test_without_a_time_the_search_is_waited_for_however_long_it_takes_and_its_work_is_limited() -> None:
    search = HeldSearch()
    made, texts = answers(search), list[str]()

    async def reply() -> None:
        texts.extend(await extend(made))

    async with anyio.create_task_group() as group:
        group.start_soon(reply)
        await until(lambda: search.begun)
        assert texts == []
        search.may_end.set()
    assert texts[0].startswith('handle\n\nPassages found for "which failed"')
    assert search.work == QUICK


async def test_what_a_late_search_found_is_in_the_next_reply() -> None:
    search = HeldSearch()
    made = answers(search)
    assert "Not searched" in (await extend(made, intentWithinSecs=0.2))[0]
    await until(lambda: search.begun)
    search.may_end.set()
    await until(lambda: made._finished)
    search.may_end.clear()  # nobody has to search again
    assert (await extend(made, intentWithinSecs=0.2))[0].startswith("handle\n\nPassages found")
    assert (search.begun, search.recorded, search.work) == (1, 1, None)


AFTER_THE_MAIN_THREAD = """
import threading
from overspill import SyncSession

def read_log():
    return "alpha is fine\\n" * 20_000 + "The password of the moon is cheese.\\n"

def work():
    with SyncSession(store="memory://") as session:
        is_open.set()
        threading.main_thread().join()
        print(session.call("read_log", {}, read_log, intent="what is the password of the moon?").text)

is_open = threading.Event()
threading.Thread(target=work).start()
is_open.wait()
"""


def test_a_session_in_another_thread_finds_passages_after_the_main_thread_has_ended() -> None:
    run = subprocess.run([sys.executable, "-c", AFTER_THE_MAIN_THREAD], capture_output=True, text=True, timeout=60, check=True)
    assert "is cheese." in run.stdout


@pytest.mark.promise("nothing-silently-cut")
async def test_a_reply_says_if_only_the_beginning_was_searched_and_how_to_search_all() -> None:
    how = 'Search all of it with get_tool_output(id="out_sfrw20", mode="ask", query="what to extract").'
    search = HeldSearch(replace(FOUND, searched_bytes=40_000, left_bytes=10_000))
    search.may_end.set()
    assert (await extend(answers(search)))[0].endswith(f"shown)\nOnly the first 40,000 bytes were searched. {how}")
    search.found = Passages("", "", 0.0, 0, "log", 40_000, 10_000)
    nothing = f'Nothing in its first 40,000 bytes matches "which failed" by its words. {how}'
    assert (await extend(answers(search)))[0] == f"handle and preview\n\n{nothing}"


@pytest.mark.parametrize(("size", "asked"), [(600_000, 3), (900_000, 2), (20_000_000, 1), (200_000_000, 1)])
async def test_the_larger_an_output_the_fewer_guesses_are_searched(size: int, asked: int) -> None:
    search = HeldSearch(replace(FOUND, confidence=0.1))
    search.may_end.set()
    kept = replace(KEPT, size=Size(size, size, 500, 12_000))
    await answers(search).extend(DRAFTS, kept, Intent(("one", "two", "three")), Settings(), None)
    assert search.begun == asked


async def test_late_searches_do_not_pile_up() -> None:
    search = HeldSearch()
    made = answers(search)
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(lambda: extend(made, intentWithinSecs=0.2))
    assert search.begun <= MAX_SEARCHES
    search.may_end.set()
    await until(lambda: search.ended == search.begun)
    assert (await extend(made, intentWithinSecs=20))[0].startswith("handle\n\nPassages found")


async def test_a_guess_that_fails_says_nothing_and_one_that_was_not_searched_says_so() -> None:
    search = HeldSearch()
    texts = await extend(answers(search), Intent(("which failed",)), intentWithinSecs=0.05)
    assert texts[0].startswith('handle and preview\n\nNot searched for "which failed" yet')
    search.may_end.set()
    unsure = HeldSearch(Passages("[L3]\nfailed", "(matched 1 record, all shown)", LIKELY - 0.01, 1, "log", 50_000))
    unsure.may_end.set()
    assert await extend(answers(unsure), Intent(("which failed",)), intentWithinSecs=20) == ["handle and preview", "handle"]


@pytest.mark.promise("no-answer-over-budget")
async def test_without_room_for_passages_nothing_is_searched() -> None:
    search = HeldSearch()
    drafts = await answers(search).extend(DRAFTS, KEPT, ASKED, Settings(), 40)
    assert [draft.text for draft in drafts] == [draft.text for draft in DRAFTS]
    assert await extend(answers(search), toolResponseMaxBytes=100) == ["handle and preview", "handle"]
    assert search.begun == 0


async def test_an_answer_that_does_not_fit_is_not_denied() -> None:
    for found in (replace(FOUND, text="x" * 9000), replace(FOUND, text="", confidence=0.0, matched=3)):
        search = HeldSearch(found)
        search.may_end.set()
        call = 'get_tool_output(id="out_sfrw20", mode="ask", query="what to extract")'
        note = f'What matches "which failed" does not fit into this reply. Search all of it with {call}.'
        texts = await extend(answers(search), intentWithinSecs=20)
        assert texts == [f"handle and preview\n\n{note}", f"handle\n\n{note}", "handle"]
