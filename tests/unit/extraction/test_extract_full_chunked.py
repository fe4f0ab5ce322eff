"""Map, reduce, what goes wrong in between, and what is said about it."""

import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from hashlib import sha256

import anyio
import asking
import pytest
from asking import nonce, once
from trio.testing import MockClock

from overspill.errors import BadRequest
from overspill.extraction import Cache, ExtractionFailed, Policy, extract
from overspill.models.protocol import ModelError, Request, Response
from overspill.models.targets import Targets
from overspill.store.meter import size_of
from overspill.testing import ScriptedModel
from overspill.text import tokens
from overspill.types import ToolCall

LINES = [f"{number:05d} GET /items/{number} 200 in {number % 97} ms" for number in range(1200)]
NEEDLE = "00901 GET /items/901 500 in 28 ms: connection reset by peer"
LINES[901] = NEEDLE
LOG = "\n".join(LINES) + "\n"
NO_FALLBACK = Policy(fallback=())
stored = partial(asking.stored, tool="fetch_logs", args='{"since":"1h"}')


def wrapped(request: Request, content: str) -> str:
    return f'<ai-agent-{nonce(request)}-FINAL format="text">{content}</ai-agent-{nonce(request)}-FINAL>'


def is_reduce(request: Request) -> bool:
    return "CHUNK OUTPUTS" in request.system


def chunk_number(request: Request) -> int:
    found = re.search(r"- Index: (\d+) of", request.system)
    assert found
    return int(found[1])


def finds_the_needle(request: Request) -> str:
    if is_reduce(request):
        return wrapped(request, f"Request 901 failed.\nQUOTES:\n> {NEEDLE}\nCONFIDENCE: 90")
    if NEEDLE in request.messages[0].text:
        return wrapped(request, f"901 failed.\nQUOTES:\n> {NEEDLE}")
    return wrapped(request, "NO RELEVANT DATA FOUND\nSuccessful requests.")


def small_model(reply: Callable[[Request], object] = finds_the_needle, **more: float) -> ScriptedModel:
    return ScriptedModel(reply, name="test/gpt-4o", context_window=4_500, max_output_tokens=500, **more)  # type: ignore[arg-type]


def on_a_clock_that_jumps() -> pytest.MarkDecorator:
    """To the next deadline, once everything has waited for half a second: no machine is too slow for the time it gives."""
    backend = ("trio", {"clock": MockClock(autojump_threshold=0.5)})
    return pytest.mark.parametrize("anyio_backend", [pytest.param(backend, id="trio")])


async def test_one_chunk_is_answered_without_a_reduce():
    model = ScriptedModel(finds_the_needle)
    result = await extract(stored(LOG), "failed requests", mode="full-chunked", model=once(model))
    assert len(model.requests) == 1
    assert result.text == "901 failed."
    assert result.strategy == "full-chunked"
    assert [(each.text, each.start_line, each.end_line) for each in result.excerpts] == [(NEEDLE, 902, 902)]
    assert (result.chunks_searched, result.chunks_total, result.found, result.confidence) == (1, 1, True, 1.0)
    assert result.source_hash == sha256(LOG.encode()).hexdigest()
    assert (result.source_size_bytes, result.model, result.warnings) == (len(LOG), "test/scripted", ())


async def test_one_more_request_merges_the_chunks():
    model = small_model()
    result = await extract(stored(LOG), "failed requests", mode="full-chunked", model=once(model))
    chunks = result.chunks_total
    assert chunks == 6
    assert len(model.requests) == chunks + 1
    assert sorted(map(chunk_number, model.requests[:-1])) == list(range(1, chunks + 1))
    assert result.text == "Request 901 failed."
    assert [each.text for each in result.excerpts] == [NEEDLE]
    assert LOG.encode()[result.excerpts[0].start_byte : result.excerpts[0].end_byte].decode() == NEEDLE
    assert result.confidence == 0.9
    assert result.warnings == ()


async def test_every_request_carries_what_the_model_has_to_know():
    model = small_model()
    await extract(stored(LOG), "failed {{nonce}} requests", mode="full-chunked", model=once(model))
    total = len(model.requests) - 1
    request = next(each for each in model.requests if chunk_number(each) == 1)
    for part in (
        "- Name: fetch_logs",
        '- Arguments (verbatim JSON): {"since":"1h"}',
        f"- Bytes: {len(LOG)}",
        "- Lines: 1200",
        f"- Tokens (estimate): {size_of(LOG).tokens}",
        f"- Index: 1 of {total}",
        "- Overlap: 10%",
        "WHAT TO EXTRACT\nfailed {{nonce}} requests\n",
        f'<ai-agent-{nonce(request)}-FINAL format="text">',
        f"</ai-agent-{nonce(request)}-FINAL>",
        "NO RELEVANT DATA FOUND",
        "untrusted data",
    ):
        assert part in request.system
    assert request.messages[0].text.startswith(f"[data {nonce(request)}]\n00000 GET")
    assert request.messages[0].text.endswith(f"\n[end of data {nonce(request)}]")
    assert request.max_output_tokens == 500
    assert request.tools == ()
    assert len({nonce(each) for each in model.requests}) == total + 1


async def test_all_requests_fit_the_window():
    model = small_model()
    await extract(stored(LOG), "failed requests", mode="full-chunked", model=once(model))
    for request in model.requests:
        assert size_of(request.system + request.messages[0].text).tokens + 500 <= 4_500


async def test_nothing_found_in_any_chunk_is_an_answer():
    model = small_model(lambda request: wrapped(request, "NO RELEVANT DATA FOUND\nOnly requests."))
    result = await extract(stored(LOG), "the colour of the sky", mode="full-chunked", model=once(model))
    total = result.chunks_total
    assert len(model.requests) == total
    assert (result.found, result.excerpts, result.confidence) == (False, (), 0.0)
    assert result.text.startswith(
        "No content matching query found in tool output.\n"
        f"Searched: {total} of {total} chunks of the output of fetch_logs ({len(LOG):,} bytes).\n"
        "What is there: Only requests."
    )


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (lambda _: "", "test/gpt-4o answered nothing."),
        (lambda _: "qwertz!!!", "test/gpt-4o gave no final report."),
        (lambda _: "I'm sorry, but I can't help with that.", "test/gpt-4o gave no final report."),
        (lambda _: "<html>502 Bad Gateway</html>", "test/gpt-4o gave no final report."),
        (lambda _: '<ai-agent-ffff-FINAL format="text">x</ai-agent-ffff-FINAL>', "test/gpt-4o gave no final report."),
        (lambda request: wrapped(request, "x" * 10_000_000), "more than a report may have (262,144)."),
        (lambda _: ToolCall("1", "Read", {}), "test/gpt-4o called a tool instead of giving its final report."),
        (lambda _: ModelError("Rate limit.", is_transient=True), "Rate limit."),
        (lambda _: ModelError("Bad key.", is_transient=False), "Bad key."),
        (lambda _: TimeoutError("no answer in 60 s"), "test/gpt-4o could not be asked (no answer in 60 s)."),
    ],
)
async def test_a_chunk_that_fails_is_reported_with_the_reason(reply: Callable[[Request], object], reason: str):
    model = small_model(
        lambda request: finds_the_needle(request) if is_reduce(request) or chunk_number(request) > 1 else reply(request)
    )
    result = await extract(stored(LOG), "failed requests", mode="full-chunked", model=once(model))
    total = result.chunks_total
    assert result.chunks_searched == total - 1
    assert result.text == "Request 901 failed."
    assert len(result.warnings) == 1
    assert result.warnings[0].startswith(f"Only {total - 1} of {total} chunks were searched. 1 could not be read: ")
    assert reason in result.warnings[0]
    assert result.confidence == pytest.approx(0.9 * (total - 1) / total)


def stumbling(times: int) -> Callable[[Request], str]:
    """Garbage for the first so many tries of each request, a report for the next."""
    tries: Counter[str] = Counter()

    def stumble(request: Request) -> str:
        tries[request.system] += 1
        return finds_the_needle(request) if tries[request.system] > times else "garbage"

    return stumble


async def test_a_report_that_cannot_be_used_is_asked_for_twice_more():
    model = small_model(stumbling(2))
    result = await extract(stored(LOG), "failed requests", mode="full-chunked", model=Targets([model]))
    assert (result.text, result.warnings) == ("Request 901 failed.", ())
    assert (result.chunks_searched, len(model.requests)) == (6, 3 * 7)


async def test_the_next_target_is_asked_when_one_gives_no_usable_report():
    first, second = small_model(stumbling(3)), small_model()
    result = await extract(stored(LOG), "failed requests", mode="full-chunked", model=Targets([first, second]))
    assert (result.text, result.warnings) == ("Request 901 failed.", ())
    assert (len(first.requests), len(second.requests)) == (3 * 7, 7)


async def test_when_no_chunk_could_be_read_the_strategy_has_failed():
    model = small_model(lambda _: ModelError("Bad key.", is_transient=False))
    with pytest.raises(ExtractionFailed, match=r"full-chunked extraction failed: None of the 6 chunks could be read. Bad key."):
        await extract(stored(LOG), "failed requests", mode="full-chunked", model=once(model), policy=NO_FALLBACK)


async def test_quotes_that_are_not_there_are_dropped_and_counted():
    model = ScriptedModel(lambda request: wrapped(request, f"A\nQUOTES:\n> {NEEDLE}\n> 00902 GET /made/up 500\nCONFIDENCE: 80"))
    result = await extract(stored(LOG), "failed requests", mode="full-chunked", model=once(model))
    assert [each.text for each in result.excerpts] == [NEEDLE]
    assert result.text == "A"
    assert result.warnings == ("1 of 2 quoted passages are not in the stored output and were left out.",)
    assert result.confidence == 0.4


async def test_an_answer_without_quotes_is_kept_with_a_warning_that_it_is_unchecked():
    model = ScriptedModel(lambda request: wrapped(request, "About 1,200 requests, one of which failed."))
    result = await extract(stored(LOG), "summary", mode="full-chunked", model=once(model))
    assert result.text == "About 1,200 requests, one of which failed."
    assert result.warnings == ("The answer quotes no passage of the stored output, so none of it could be checked.",)
    assert result.confidence == 0.5


async def test_a_report_of_quotes_alone_is_answered_with_the_stored_text():
    model = ScriptedModel(lambda request: wrapped(request, f"QUOTES:\n> {NEEDLE}"))
    assert (await extract(stored(LOG), "failed", mode="full-chunked", model=once(model))).text == NEEDLE


async def test_only_checked_quotes_go_into_the_reduce():
    def reply(request: Request) -> str:
        if is_reduce(request):
            return wrapped(request, "Merged.")
        return wrapped(request, f"A\nQUOTES:\n> {NEEDLE}\n> made up by the model")

    model = small_model(reply)
    result = await extract(stored(LOG), "failed requests", mode="full-chunked", model=once(model))
    merging = model.requests[-1].messages[0].text
    assert NEEDLE in merging
    assert "made up" not in merging
    assert result.text == "Merged."
    assert [each.text for each in result.excerpts] == [NEEDLE]


async def test_a_reduce_that_finds_nothing_relevant_is_believed():
    def reply(request: Request) -> str:
        return wrapped(request, "NO RELEVANT DATA FOUND\nRequests.") if is_reduce(request) else finds_the_needle(request)

    result = await extract(stored(LOG), "failed requests", mode="full-chunked", model=once(small_model(reply)))
    assert (result.found, result.excerpts) == (False, ())


async def test_a_failed_reduce_leaves_what_the_chunks_gave():
    def reply(request: Request) -> object:
        return ModelError("Overloaded.", is_transient=True) if is_reduce(request) else finds_the_needle(request)

    cache = Cache()
    result = await extract(stored(LOG), "failed requests", mode="full-chunked", model=once(small_model(reply)), cache=cache)
    assert re.fullmatch(r"CHUNK \d \(bytes \d+-\d+\)\n901 failed\.", result.text)
    assert result.warnings == (
        "What the chunks gave could not be merged into one answer (Overloaded); it follows chunk by chunk.",
    )
    assert [each.text for each in result.excerpts] == [NEEDLE]
    again = small_model()
    assert (
        await extract(stored(LOG), "failed requests", mode="full-chunked", model=once(again), cache=cache)
    ).text == "Request 901 failed."
    assert len(again.requests) == 1


async def test_outputs_that_do_not_fit_are_merged_in_rounds():
    def reply(request: Request) -> str:
        if is_reduce(request):
            return wrapped(
                request, f"merged {request.messages[0].text.count('OUTPUT ')}/{request.messages[0].text.count('CHUNK ')}"
            )
        return wrapped(request, f"chunk {chunk_number(request)}: " + "some words " * (150 if chunk_number(request) > 1 else 2000))

    model = ScriptedModel(reply, name="test/gpt-4o", context_window=2_000, max_output_tokens=500)
    result = await extract(stored(LOG), "everything", mode="full-chunked", model=once(model))
    merges = [request for request in model.requests if is_reduce(request)]
    assert len(merges) > 3
    assert re.fullmatch(r"merged [2-9]\d*/0", result.text)
    assert any("(this output was too long and is not complete)" in request.messages[0].text for request in merges)
    for request in merges:
        assert size_of(request.system + request.messages[0].text).tokens + 500 <= 2_000


async def test_rounds_without_anything_relevant_end():
    def reply(request: Request) -> str:
        return wrapped(request, "NO RELEVANT DATA FOUND" if is_reduce(request) else "some words " * 150)

    model = ScriptedModel(reply, name="test/gpt-4o", context_window=2_000, max_output_tokens=500)
    assert not (await extract(stored(LOG), "everything", mode="full-chunked", model=once(model))).found


async def test_a_forced_run_reads_more_chunks_than_routing_would():
    result = await extract(stored(LOG), "failed", mode="full-chunked", model=once(small_model()), policy=Policy(max_chunks=1))
    assert result.chunks_total > 1
    assert result.strategy == "full-chunked"


async def test_asking_again_continues_where_it_stopped():
    document, cache = stored(LOG), Cache()
    model = small_model()
    policy = Policy(max_extraction_chunks=2)
    first = await extract(document, "failed requests", mode="full-chunked", model=once(model), policy=policy, cache=cache)
    total = first.chunks_total
    assert total == 6
    assert (first.chunks_searched, first.found) == (2, False)
    assert first.text.splitlines()[:2] == [
        "No content matching query found in the part of the tool output that was searched.",
        f"Searched: 2 of 6 chunks of the output of {document.tool} ({document.size.bytes:,} bytes).",
    ]
    assert first.warnings == (
        "Only 2 of 6 chunks were searched. Not searched yet: 4; ask again with the same words to continue.",
    )
    second = await extract(document, "failed requests", mode="full-chunked", model=once(model), policy=policy, cache=cache)
    third = await extract(document, "failed requests", mode="full-chunked", model=once(model), policy=policy, cache=cache)
    assert (second.chunks_searched, third.chunks_searched) == (4, 6)
    assert (third.text, third.warnings) == ("Request 901 failed.", ())
    assert len([request for request in model.requests if not is_reduce(request)]) == 6


async def test_the_same_question_is_asked_once():
    document, cache, model = stored(LOG), Cache(), small_model()
    first = await extract(document, "failed requests", mode="full-chunked", model=once(model), cache=cache)
    asked = len(model.requests)
    assert await extract(document, "failed requests", mode="full-chunked", model=once(model), cache=cache) is first
    assert len(model.requests) == asked
    await extract(document, "other requests", mode="full-chunked", model=once(model), cache=cache)
    assert len(model.requests) > asked


async def test_another_model_is_asked_again():
    cache, other = Cache(), ScriptedModel(finds_the_needle, name="test/other")
    await extract(stored(LOG), "failed", mode="full-chunked", model=once(ScriptedModel(finds_the_needle)), cache=cache)
    await extract(stored(LOG), "failed", mode="full-chunked", model=once(other), cache=cache)
    assert len(other.requests) == 1


@on_a_clock_that_jumps()
async def test_time_ends_the_reading_but_not_the_answer():
    class HangsOnTheFirst(ScriptedModel):
        async def ask(self, request: Request) -> Response:
            if not is_reduce(request) and chunk_number(request) == 1:
                await anyio.sleep_forever()
            return await super().ask(request)

    model = HangsOnTheFirst(finds_the_needle, name="test/gpt-4o", context_window=4_500, max_output_tokens=500)
    policy = Policy(answer_within_secs=100)
    result = await extract(stored(LOG), "failed requests", mode="full-chunked", model=once(model), policy=policy)
    assert (result.text, result.chunks_searched, result.chunks_total) == ("Request 901 failed.", 5, 6)
    assert result.warnings == (
        "Only 5 of 6 chunks were searched. Not searched yet: 1; ask again with the same words to continue.",
    )


@on_a_clock_that_jumps()
async def test_without_time_for_the_reduce_the_chunks_are_given():
    class HangsInTheEnd(ScriptedModel):
        async def ask(self, request: Request) -> Response:
            if is_reduce(request):
                await anyio.sleep_forever()
            return await super().ask(request)

    model = HangsInTheEnd(finds_the_needle, name="test/gpt-4o", context_window=4_500, max_output_tokens=500)
    result = await extract(stored(LOG), "failed", mode="full-chunked", model=once(model), policy=Policy(answer_within_secs=100))
    assert result.warnings == (
        "What the chunks gave could not be merged into one answer (no time was left); it follows chunk by chunk.",
    )


async def test_without_any_time_the_extraction_fails():
    model = small_model(latency=30)
    with anyio.fail_after(10), pytest.raises(ExtractionFailed, match="There was no time to read it"):
        await extract(
            stored(LOG), "failed", mode="full-chunked", model=once(model), policy=Policy(answer_within_secs=0.05, fallback=())
        )


async def test_no_more_requests_run_at_once_than_allowed():
    running: list[int] = []
    two = anyio.Event()

    class Counting(ScriptedModel):
        now = 0

        async def ask(self, request: Request) -> Response:
            self.now += 1
            running.append(self.now)
            if self.now == 2:
                two.set()
            with anyio.fail_after(20):
                await two.wait()
            try:
                return await super().ask(request)
            finally:
                self.now -= 1

    model = Counting(finds_the_needle, name="test/gpt-4o", context_window=4_500, max_output_tokens=500)
    await extract(stored(LOG), "failed", mode="full-chunked", model=once(model), policy=Policy(concurrency=2))
    assert max(running) == 2


async def test_progress_is_reported_chunk_by_chunk():
    told: list[tuple[int, int]] = []
    await extract(stored(LOG), "failed", mode="full-chunked", model=once(small_model()), progress=lambda *step: told.append(step))
    assert told == [(done, 6) for done in range(1, 7)]


async def test_a_question_longer_than_the_window_is_a_clear_failure():
    with pytest.raises(ExtractionFailed, match=r"full-chunked extraction failed: What to extract takes [\d,]+ tokens"):
        await extract(stored(LOG), "why " * 9000, mode="auto", model=once(small_model()), policy=NO_FALLBACK)


async def test_an_answer_over_its_limit_is_cut_with_a_warning():
    model = ScriptedModel(lambda request: wrapped(request, "word " * 3000))
    result = await extract(stored(LOG), "all", mode="full-chunked", model=once(model), policy=Policy(max_tokens=200))
    assert size_of(result.text).tokens <= 200
    assert "omitted" in result.text
    assert result.warnings[-1].startswith("The answer had 3,0")
    assert result.warnings[-1].endswith(" tokens and was cut to 200. Ask for less at a time.")


async def test_one_huge_line_is_extracted():
    content = "[" + ",".join(f'{{"id":{n},"state":"ok"}}' for n in range(4000)) + ',{"id":4000,"state":"lost"}]'

    def reply(request: Request) -> str:
        if is_reduce(request) or '"lost"' in request.messages[0].text:
            return wrapped(request, '4000 is lost.\nQUOTES:\n> {"id": 4000, "state": "lost"}\n> {"id":4000,"state":"lost"}')
        return wrapped(request, "NO RELEVANT DATA FOUND")

    result = await extract(stored(content), "lost items", model=once(small_model(reply)))
    assert result.strategy == "full-chunked"
    assert result.chunks_total > 3
    assert [each.text for each in result.excerpts] == ['{"id":4000,"state":"lost"}']


async def test_snippets_are_verbatim_and_cut_by_half_the_window():
    def reply(request: Request) -> str:
        if is_reduce(request) or NEEDLE in request.messages[0].text:
            return wrapped(request, f"QUOTES:\n> {NEEDLE}\nCONFIDENCE: 70")
        return wrapped(request, "NO RELEVANT DATA FOUND")

    model = small_model(reply)
    result = await extract(stored(LOG), "failed requests", mode="snippets", model=once(model))
    assert (result.text, result.strategy, result.confidence) == (NEEDLE, "full-chunked", 0.7)
    assert "- Overlap: 5%" in model.requests[0].system
    assert "your answer in your own words" not in model.requests[0].system
    assert max(size_of(request.messages[0].text).tokens for request in model.requests) <= 2_300


async def test_snippets_that_are_all_made_up_are_a_failure():
    model = ScriptedModel(lambda request: wrapped(request, "QUOTES:\n> this was never said"))
    with pytest.raises(ExtractionFailed, match="The model quoted no passage that is in the stored output"):
        await extract(stored(LOG), "failed requests", mode="snippets", model=once(model), policy=NO_FALLBACK)


async def test_a_document_is_cut_by_the_tokens_of_the_model_that_reads_it():
    content = "".join(f"{number} {number * 7919:x}\n" for number in range(40_000))
    seen: list[int] = []

    def reply(request: Request) -> str:
        seen.append(tokens.count(request.messages[0].text, "test/llama-2").tokens)
        return wrapped(request, "NO RELEVANT DATA FOUND")

    model = ScriptedModel(reply, name="test/llama-2", context_window=60_000, max_output_tokens=2_000)
    await extract(stored(content), "anything", mode="full-chunked", model=once(model))
    assert max(seen) + 2_500 < 60_000
    assert min(seen) > 0.8 * max(seen)


async def test_an_empty_question_cannot_be_asked():
    with pytest.raises(BadRequest, match="What to extract is missing"):
        await extract(stored(LOG), " \n", model=once(small_model()))


async def test_an_unknown_mode_is_refused_with_the_known_ones():
    with pytest.raises(
        BadRequest, match=r"There is no mode 'full'\. Allowed are auto, focused, full-chunked, .* nearest is 'full-chunked'"
    ):
        await extract(stored(LOG), "x", mode="full", model=once(small_model()))  # type: ignore[arg-type]


async def test_nothing_is_found_in_an_empty_output():
    result = await extract(stored(""), "anything", model=once(small_model()))
    assert result.text == "No content matching query found in tool output.\nThe stored output is empty."
    assert not result.found
