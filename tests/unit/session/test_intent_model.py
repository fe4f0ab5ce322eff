"""With `intentModel`, a model answers what the caller of a tool is looking for, in the first reply."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from overspill import Reply, Session, Settings
from overspill.models.protocol import ModelError, Request
from overspill.settings.load import load
from overspill.store.memory import MemoryStore
from overspill.testing import ScriptedModel
from overspill.text.tokens import count

pytestmark = pytest.mark.anyio

SERVED = "".join(f"2026-11-16 12:{n // 60:02}:{n % 60:02} INFO request {n} served\n" for n in range(900))
TIMED_OUT = "2026-11-16 13:00:00 ERROR request 99311 timed out after 30 s (upstream payments-7)"
LOG = f"{SERVED}{TIMED_OUT}\n{SERVED}"
INTENT = "requests that timed out"
ANSWER = "Request 99311 timed out."


async def call(answer: str | Callable[[Request], str], looking_for: str = INTENT, **settings: Any) -> tuple[Reply, int]:
    """The first reply, and how often the model was asked."""
    model = ScriptedModel(answer if callable(answer) else lambda _: answer)
    values = {"intentWithinSecs": 30, "asyncTimeoutSecs": 30, "extractionRetries": 0, "intentModel": True, **settings}
    with anyio.fail_after(60):
        async with Session(Settings(**values), models={model.name: model}, store=MemoryStore()) as session:
            reply = await session.call("read_logs", {}, lambda: LOG, intent=looking_for)
    return reply, len(model.requests)


async def test_a_model_answers_with_a_checked_citation_beside_the_passages():
    reply, asked = await call(f"{ANSWER}\nQUOTES:\n> {TIMED_OUT}")
    assert reply.kept
    assert reply.kept.name in reply.text
    assert asked == 1
    assert reply.text.index(ANSWER) < reply.text.index(TIMED_OUT)
    assert f"bytes {LOG.index(TIMED_OUT)}" in reply.text.replace(",", "")


@pytest.mark.parametrize("answer", ["NO RELEVANT DATA FOUND", "It was the moon.", ""])
async def test_without_support_the_engine_answers(answer: str):
    reply, asked = await call(answer)
    assert asked == 1
    assert TIMED_OUT in reply.text
    assert 'Passages found for "requests that timed out"' in reply.text


async def test_a_model_that_fails_costs_nothing_but_its_time():
    def fail(_: Request) -> str:
        raise ModelError("the server is away", is_transient=False)

    reply, _ = await call(fail)
    assert 'Passages found for "requests that timed out"' in reply.text


@pytest.mark.parametrize("most", [700, 400, 200])
async def test_however_much_a_model_says_the_passages_are_there_and_within_their_tokens(most: int):
    reply, asked = await call(f"{ANSWER * 200}\nQUOTES:\n> {TIMED_OUT}", intentTokens=most)
    assert TIMED_OUT in reply.text
    assert count(reply.text.partition("\n\n")[2]).tokens <= most
    assert asked == (most >= 400)


@pytest.mark.parametrize(("intent", "settings"), [("", {}), (INTENT, {"intentModel": False}), (INTENT, {"intent": "off"})])
async def test_no_model_is_asked_without_words_to_ask_it(intent: str, settings: dict[str, Any]):
    _, asked = await call(f"{ANSWER}\nQUOTES:\n> {TIMED_OUT}", intent, **settings)
    assert asked == 0


def test_a_file_in_the_working_directory_cannot_turn_it_on(tmp_path: Path):
    (tmp_path / ".overspill.yaml").write_text("intentModel: true\n")
    assert load(cwd=tmp_path, user_config_dir=tmp_path / "none", forgiving=True).settings.intent_model is False
