from __future__ import annotations

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overspill.errors import SettingsError
from overspill.models.protocol import Message, ModelError, Request, Response, Usage
from overspill.models.targets import Targets
from overspill.record.events import ModelCalled
from overspill.testing import ScriptedModel
from overspill.types import ToolCall

QUESTION = Request("sys", (Message("user", "héllo"),))


class Clock:
    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


def busy(retry_after: float | None = None) -> ModelError:
    return ModelError("a/m: the rate limit is reached (HTTP 429).", is_transient=True, retry_after=retry_after)


DENIED = ModelError("a/m: the API key was not accepted (HTTP 401).", is_transient=False)


def test_no_model_at_all_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"^There is no model to ask\. Name at least one target"):
        Targets([])


def test_targets_have_the_smallest_limits_of_their_models() -> None:
    targets = Targets(
        [
            ScriptedModel(name="a/m", context_window=1000, max_output_tokens=10),
            ScriptedModel(context_window=500, max_output_tokens=20),
        ]
    )
    assert (targets.name, targets.context_window, targets.max_output_tokens) == ("a/m", 500, 10)


@pytest.mark.anyio
async def test_the_first_that_answers_is_the_one_that_answered() -> None:
    second = ScriptedModel()
    response = await Targets([ScriptedModel(["yes"], name="a/m"), second]).ask(QUESTION)
    assert response == Response("yes", model="a/m")
    assert second.requests == []


@pytest.mark.anyio
async def test_a_passing_failure_is_tried_again_after_doubling_waits() -> None:
    clock = Clock()
    model = ScriptedModel([busy(), busy(), busy(), "yes"])
    targets = Targets([model], retries=3, sleep=clock.sleep, chance=lambda: 0.5)
    assert (await targets.ask(QUESTION)).text == "yes"
    assert clock.slept == [1.0, 2.0, 4.0]


@pytest.mark.anyio
async def test_the_wait_a_provider_asks_for_is_honoured_up_to_a_minute() -> None:
    clock = Clock()
    model = ScriptedModel([busy(7.5), busy(3600), busy(0.1), "yes"])
    await Targets([model], retries=3, sleep=clock.sleep, chance=lambda: 0.0).ask(QUESTION)
    assert clock.slept == [7.5, 60.0, 2.0]


@pytest.mark.anyio
async def test_a_permanent_failure_moves_to_the_next_target_without_waiting() -> None:
    clock = Clock()
    first, second = ScriptedModel([DENIED]), ScriptedModel(["yes"], name="b/m")
    assert (await Targets([first, second], sleep=clock.sleep).ask(QUESTION)).model == "b/m"
    assert (len(first.requests), clock.slept) == (1, [])


@pytest.mark.anyio
async def test_when_all_failed_the_error_says_what_each_said() -> None:
    clock = Clock()
    down = ModelError("b/m: no connection to http://127.0.0.1:1/v1.", is_transient=True)
    targets = Targets([ScriptedModel([DENIED]), ScriptedModel([down, down, busy(9)])], sleep=clock.sleep)
    with pytest.raises(ModelError) as failed:
        await targets.ask(QUESTION)
    assert str(failed.value) == (
        "None of 2 models answered. a/m: the API key was not accepted (HTTP 401). a/m: the rate limit is reached (HTTP 429)."
    )
    assert (failed.value.is_transient, failed.value.retry_after) == (True, 9)
    assert len(clock.slept) == 2


@pytest.mark.anyio
async def test_one_target_fails_with_its_own_error() -> None:
    with pytest.raises(ModelError) as failed:
        await Targets([ScriptedModel([DENIED])], retries=0).ask(QUESTION)
    assert failed.value is DENIED


def must_be_yes(response: Response) -> str:
    return "" if response.text == "yes" else "did not say yes."


@pytest.mark.anyio
async def test_an_answer_that_is_not_accepted_is_asked_for_again_without_waiting() -> None:
    clock, seen = Clock(), list[ModelCalled]()
    model = ScriptedModel([Response("no", usage=Usage(5, 6, 0.01)), "maybe", "yes"], name="a/m")
    targets = Targets([model], observe=seen.append, sleep=clock.sleep)
    assert (await targets.ask(QUESTION, must_be_yes)).text == "yes"
    assert clock.slept == []
    assert [(tried.error, tried.preview) for tried in seen] == [
        ("a/m did not say yes.", "no"),
        ("a/m did not say yes.", "maybe"),
        ("", "yes"),
    ]
    assert (seen[0].input_tokens, seen[0].output_tokens, seen[0].cost) == (5, 6, 0.01)


@pytest.mark.anyio
async def test_the_next_target_is_asked_when_one_never_gives_an_acceptable_answer() -> None:
    first, second = ScriptedModel(["no"] * 3, name="a/m"), ScriptedModel(["no", "yes"], name="b/m")
    assert (await Targets([first, second]).ask(QUESTION, must_be_yes)).model == "b/m"
    assert (len(first.requests), len(second.requests)) == (3, 2)


@pytest.mark.anyio
async def test_when_no_answer_is_accepted_the_error_says_what_was_wrong_with_each() -> None:
    models = [ScriptedModel(["no"], name="a/m"), ScriptedModel(["no"], name="b/m")]
    with pytest.raises(ModelError, match=r"^None of 2 models answered\. a/m did not say yes\. b/m did not say yes\.$"):
        await Targets(models, retries=0).ask(QUESTION, must_be_yes)


@pytest.mark.anyio
async def test_a_model_that_breaks_is_a_failed_try_like_any_other() -> None:
    clock, seen = Clock(), list[ModelCalled]()
    model = ScriptedModel([RuntimeError("broken pipe"), KeyError(), "yes"], name="a/m")
    assert (await Targets([model], observe=seen.append, sleep=clock.sleep).ask(QUESTION)).text == "yes"
    assert [tried.error for tried in seen] == [
        "a/m could not be asked (broken pipe).",
        "a/m could not be asked (KeyError).",
        "",
    ]
    assert len(clock.slept) == 2


@pytest.mark.anyio
async def test_every_attempt_is_observed() -> None:
    seen: list[ModelCalled] = []
    answer = Response("é" * 3000, usage=Usage(5, 6, 0.01), model="a/m")
    model = ScriptedModel([busy(), answer], name="a/m")
    await Targets([model], observe=seen.append, sleep=Clock().sleep).ask(QUESTION)
    failed, answered = seen
    assert (failed.status, failed.error) == ("failed", "a/m: the rate limit is reached (HTTP 429).")
    assert (answered.status, answered.model, answered.messages, answered.request_bytes) == ("ok", "a/m", 1, 9)
    assert answered.estimated_tokens == 3
    assert (answered.input_tokens, answered.output_tokens, answered.cost) == (5, 6, 0.01)
    assert answered.preview == "é" * 2048
    assert answered.latency >= 0


@pytest.mark.anyio
async def test_the_size_of_a_request_counts_tools_and_arguments() -> None:
    seen: list[ModelCalled] = []
    call = ToolCall("1", "Grep", {"pattern": "\ud800"})
    request = Request("", (Message("assistant", "\ud800", (call,)),), ({"name": "Grep", "parameters": {}},))
    await Targets([ScriptedModel(["yes"])], observe=seen.append).ask(request)
    assert seen[0].request_bytes == 3 + len('{"pattern": "\\ud800"}') + len('{"name": "Grep", "parameters": {}}')


@given(st.text(), st.integers(0, 3))
def test_a_preview_is_the_beginning_of_the_answer_within_its_bound(text: str, times: int) -> None:
    answer = text * 10**times
    seen: list[ModelCalled] = []
    anyio.run(Targets([ScriptedModel([answer])], observe=seen.append).ask, QUESTION)
    assert answer.startswith(seen[0].preview)
    assert len(seen[0].preview.encode()) <= 4096
    assert len(answer.encode()) <= 4096 or len(seen[0].preview.encode()) > 4092
    assert len(answer.encode()) > 4096 or seen[0].preview == answer
