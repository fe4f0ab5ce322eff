"""Counters: figures kept current event by event."""

from overspill.record.counters import MAX_TRACKED_OUTPUTS, Counters
from overspill.record.events import (
    JobChanged,
    ModelCalled,
    OutputExtracted,
    OutputInspected,
    OutputRetrieved,
    OutputStored,
    ReferenceUsed,
    TextShown,
    TokensReported,
    ToolCalled,
)
from overspill.store.keep import Opening
from overspill.types import Kept, Size

FILE = "01a1dd7b-13a4-7c37-a821-1e5e402e61f9"
OTHER = "01a1dd7b-13a4-7c37-a821-1e5e402e61fa"


def kept(id: str = FILE, size: int = 1000) -> OutputStored:
    return OutputStored(1, Kept("s", id, "tool", "size_cap", Size(size, size, 10, 400), "ab", 1))


def counted(*events: object) -> Counters:
    counters = Counters()
    for event in events:
        counters.add(event)  # type: ignore[arg-type]
    return counters


def test_nothing_happened_yet():
    counters = Counters()
    assert (counters.truncation_rate, counters.tokens_kept_out, counters.retrieved_in_full) == (0.0, 0, 0)


def test_each_counter_has_separate_figures():
    one = counted(kept())
    assert (one.sizes, Counters().sizes) == ({FILE: 1000}, {})


def test_calls_are_counted_with_what_was_shown_in_place_of_outputs():
    counters = counted(
        ToolCalled(1, "a", chars_out=50),
        ToolCalled(1, "a", status="failed", chars_out=9),
        ToolCalled(1, "a", chars_out=120, id=FILE, reason="size_cap", truncated=True),
        kept(),
    )
    assert (counters.calls, counters.failed_calls, counters.truncated, counters.shown_chars) == (3, 1, 1, 120)
    assert counters.truncation_rate == 1 / 3
    assert (counters.kept, counters.kept_bytes, counters.kept_tokens) == (1, 1000, 400)
    assert counters.tokens_kept_out == 400 - 120 // 4


def test_tokens_kept_out_are_never_negative():
    assert counted(ToolCalled(1, "a", chars_out=9000, truncated=True), kept()).tokens_kept_out == 0


def test_retrievals_are_counted_by_output():
    counters = counted(
        kept(),
        OutputRetrieved(1, "get_artifact", "", "ok", FILE, 0, 400, 400),
        OutputRetrieved(1, "get_artifact", "", "failed"),
        OutputRetrieved(1, "wait_for_tool_output", ""),
        OutputRetrieved(1, "get_tool_output", "grep", "ok", FILE, 0, 0, 90),
    )
    assert (counters.retrievals, counters.failed_retrievals, counters.retrieved_chars) == (2, 1, 490)
    assert counters.retrieved == {FILE: 2}
    assert counters.seen == {FILE: [(0, 400)]}
    assert counters.retrieved_in_full == 0


def test_an_output_counts_as_retrieved_in_full_when_its_parts_cover_it():
    parts = [(600, 1000), (0, 300), (250, 500), (500, 600)]
    counters = counted(kept(), kept(OTHER), *(OutputRetrieved(1, "t", "slice", "ok", FILE, *part) for part in parts))
    assert counters.seen == {FILE: [(0, 1000)]}
    assert counters.retrieved_in_full == 1


def test_estimates_are_recorded_beside_reported_tokens():
    counters = counted(TokensReported(1, 100, 110), TokensReported(1, 50, 45))
    assert (counters.estimated_tokens, counters.reported_tokens) == (150, 155)


def test_references_extractions_and_model_calls_are_counted():
    counters = counted(
        ReferenceUsed(1, "t", FILE, 10),
        OutputExtracted(1, "op", FILE, "tool_output", "auto", "truncate"),
        OutputExtracted(1, "op", FILE, "tool_output", "auto", status="failed"),
        ModelCalled(1, "op", "p/m", input_tokens=10, output_tokens=2, cost=0.5),
        ModelCalled(1, "op", "p/m", status="failed"),
    )
    assert (counters.refs, counters.extractions, counters.model_calls, counters.failed_model_calls) == (1, 1, 2, 1)
    assert (counters.input_tokens, counters.output_tokens, counters.cost) == (10, 2, 0.5)


def test_opening_jobs_and_sub_agent_steps_change_no_figures():
    assert counted(Opening("s"), JobChanged(1, FILE, "t", "ready"), OutputInspected(1, "op", "Grep")) == Counters()


def test_only_the_latest_outputs_are_tracked_and_no_count_is_lost():
    counters = Counters()
    for number in range(MAX_TRACKED_OUTPUTS + 10):
        id = f"{number:08d}"
        counters.add(OutputStored(1, Kept("s", id, "t", "size_cap", Size(5, 5, 1, 1), "", 1)))
        counters.add(OutputRetrieved(1, "get_artifact", "", "ok", id, 0, 5))
    assert len(counters.sizes) == len(counters.seen) == len(counters.retrieved) == MAX_TRACKED_OUTPUTS
    assert counters.kept == counters.retrieved_in_full == MAX_TRACKED_OUTPUTS + 10


def test_what_a_turn_delivers_of_an_output_was_shown_and_a_notice_was_not_kept():
    counters = counted(kept(), TextShown(1, "notice", 500), TextShown(1, "news", 300), TextShown(1, "output", 400, FILE))
    assert (counters.shown_chars, counters.tokens_kept_out) == (400, 300)
