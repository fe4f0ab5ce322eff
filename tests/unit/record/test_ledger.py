"""The ledger: one journal; log lines and accounting entries are views of it."""

import logging
from threading import Event, Thread

import pytest

from overspill.budget import ContextBudget
from overspill.errors import StoreError
from overspill.handles import artifact_id
from overspill.record import events
from overspill.record.events import (
    EventsDropped,
    JobChanged,
    ModelCalled,
    OutputRetrieved,
    OutputStored,
    TokensReported,
    ToolCalled,
)
from overspill.record.ledger import MAX_UNWRITTEN_EVENTS, Ledger
from overspill.record.logs import compose_name, provider
from overspill.record.op_tree import accounting
from overspill.types import Kept, Reason, Size

SESSION = "01a1dd7b-0000-7000-8000-000000000001"
FILE = "01a1dd7b-13a4-7c37-a821-1e5e402e61f9"
HANDLE = f"session-{SESSION}/{FILE}"


def stored(reason: Reason = "size_cap", server: str = "filesystem") -> OutputStored:
    kept = Kept(SESSION, FILE, "read_file", reason, Size(45678, 45000, 1234, 8900), "ab", 1, server=server)
    return OutputStored(1, kept, "mcp" if server else "function")


class Journal:
    def __init__(self) -> None:
        self.writes: list[bytes] = []
        self.broken = False

    def write(self, lines: bytes) -> None:
        if self.broken:
            raise StoreError("the disk is gone.")
        self.writes.append(lines)

    @property
    def events(self) -> list[events.Entry]:
        return list(events.decode_events(b"".join(self.writes).splitlines()))


def test_calls_and_retrievals_wait_and_are_written_together():
    journal, asked = Journal(), []
    ledger = Ledger(SESSION, journal.write)
    ledger.schedule_flush = lambda: asked.append(True)
    ledger.record(ToolCalled(1, "a"))
    ledger.record(OutputRetrieved(2, "get_artifact", ""))
    assert (journal.writes, asked) == ([], [True])
    ledger.flush()
    assert len(journal.writes) == 1
    assert journal.events == [ToolCalled(1, "a"), OutputRetrieved(2, "get_artifact", "")]
    ledger.record(OutputRetrieved(3, "get_artifact", ""))
    assert asked == [True, True]


def test_nothing_waiting_writes_nothing():
    journal = Journal()
    Ledger(SESSION, journal.write).flush()
    assert journal.writes == []


def test_stored_outputs_are_written_immediately_after_waiting_events():
    journal = Journal()
    ledger = Ledger(SESSION, journal.write)
    ledger.record(ToolCalled(1, "a"))
    ledger.record(stored())
    assert journal.events == [ToolCalled(1, "a"), stored()]
    ledger.record(JobChanged(2, FILE, "a", "ready"))
    assert len(journal.writes) == 2


def test_at_most_256_events_wait():
    journal = Journal()
    ledger = Ledger(SESSION, journal.write)
    for _ in range(255):
        ledger.record(ToolCalled(1, "a"))
    assert journal.writes == []
    ledger.record(ToolCalled(1, "a"))
    assert len(journal.events) == 256


def test_the_counters_include_events_that_wait():
    ledger = Ledger(SESSION, Journal().write)
    ledger.record(ToolCalled(1, "a"))
    assert ledger.counters.calls == 1


def test_a_journal_that_fails_stops_nothing_and_warns_once(caplog: pytest.LogCaptureFixture):
    journal = Journal()
    journal.broken = True
    ledger = Ledger(SESSION, journal.write)
    ledger.record(JobChanged(1, FILE, "a", "ready"))
    ledger.record(JobChanged(2, FILE, "a", "ready"))
    assert ledger.failure == "the disk is gone."
    assert [record.getMessage() for record in caplog.records] == [
        f"Cannot write to the journal of session {SESSION}: the disk is gone. It will be tried again."
    ]


def test_events_that_could_not_be_written_are_written_in_order_once_the_journal_works_again(caplog: pytest.LogCaptureFixture):
    journal = Journal()
    journal.broken = True
    ledger = Ledger(SESSION, journal.write)
    ledger.record(ToolCalled(1, "a"))
    ledger.record(JobChanged(2, FILE, "a", "ready"))
    journal.broken = False
    ledger.record(TokensReported(3, 4, 5))
    assert journal.events == [ToolCalled(1, "a"), JobChanged(2, FILE, "a", "ready"), TokensReported(3, 4, 5)]
    assert ledger.failure == ""
    assert caplog.messages[-1] == f"The journal of session {SESSION} can be written again; 0 events were lost."


def test_an_event_that_is_recorded_during_a_write_is_not_lost():
    journal = Journal()
    late = [ToolCalled(2, "late")]

    def write(lines: bytes) -> None:
        journal.write(lines)
        if late:
            ledger.record(late.pop())

    ledger = Ledger(SESSION, write)
    ledger.record(JobChanged(1, FILE, "a", "ready"))
    ledger.flush()
    assert journal.events == [JobChanged(1, FILE, "a", "ready"), ToolCalled(2, "late")]
    assert ledger.counters.calls == 1


def test_a_failed_write_schedules_another_flush():
    journal, asked = Journal(), []
    journal.broken = True
    ledger = Ledger(SESSION, journal.write)
    ledger.schedule_flush = lambda: asked.append(True)
    ledger.record(JobChanged(1, FILE, "a", "ready"))
    assert asked == [True]


def test_a_long_journal_failure_drops_and_counts_calls_but_no_stored_outputs_or_jobs():
    journal = Journal()
    journal.broken = True
    ledger = Ledger(SESSION, journal.write)
    for _ in range(100):
        ledger.record(stored())
        ledger.record(JobChanged(1, FILE, "a", "ready"))
    for _ in range(3 * MAX_UNWRITTEN_EVENTS):
        ledger.record(ToolCalled(1, "a"))
    assert len(ledger._waiting) < 200 + 2 * MAX_UNWRITTEN_EVENTS
    journal.broken = False
    ledger.close()
    gap = journal.events[0]
    calls = sum(isinstance(event, ToolCalled) for event in journal.events)
    assert isinstance(gap, EventsDropped)
    assert gap.count + calls == 3 * MAX_UNWRITTEN_EVENTS
    assert sum(isinstance(event, OutputStored | JobChanged) for event in journal.events) == 200
    assert (ledger.counters.calls, ledger.counters.dropped_events) == (3 * MAX_UNWRITTEN_EVENTS, gap.count)


def test_a_ledger_that_closes_without_its_journal_says_what_is_missing(caplog: pytest.LogCaptureFixture):
    journal = Journal()
    journal.broken = True
    ledger = Ledger(SESSION, journal.write)
    ledger.record(ToolCalled(1, "a"))
    ledger.close()
    assert caplog.messages[-1] == f"1 events are missing from the journal of session {SESSION}: the disk is gone."


def test_a_stored_output_is_logged_with_every_detail(caplog: pytest.LogCaptureFixture):
    Ledger(SESSION, Journal().write).record(stored())
    (record,) = caplog.records
    assert (record.levelname, record.name) == ("WARNING", "overspill")
    assert record.getMessage() == "Tool 'read_file' output stored for tool_output (size_cap)."
    usual = vars(logging.makeLogRecord({})).keys() | {"message", "asctime", "taskName"}
    assert {name: value for name, value in vars(record).items() if name not in usual} == {
        "tool": "mcp:filesystem/read_file",
        "tool_namespace": "filesystem",
        "provider": "mcp:filesystem",
        "tool_kind": "mcp",
        "handle": HANDLE,
        "reason": "size_cap",
        "bytes": 45678,
        "lines": 1234,
        "tokens": 8900,
        "tool_output": True,
    }


def test_what_the_host_stored_itself_is_no_warning(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO)
    Ledger(SESSION, Journal().write).record(stored("requested"))
    assert [record.levelname for record in caplog.records] == ["INFO"]


def test_other_events_are_not_logged(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    Ledger(SESSION, Journal().write).record(ToolCalled(1, "a"))
    assert caplog.records == []


def test_a_tools_full_name():
    assert compose_name("read_file", "filesystem", "mcp") == "mcp:filesystem/read_file"
    assert compose_name("filesystem__read_file", "filesystem", "mcp") == "mcp:filesystem/read_file"
    assert compose_name("search", "", "function") == "function/search"
    assert provider("", "rest") == "rest"


def test_the_accounting_entry_of_a_call():
    for tool in ("read_file", "filesystem__read_file"):
        (entry,) = accounting([ToolCalled(1737012800000, tool, "filesystem", "mcp", "ok", 150, 256, 345)], SESSION)
        assert entry == {
            "type": "tool",
            "timestamp": 1737012800000,
            "status": "ok",
            "latency": 150,
            "mcpServer": "filesystem",
            "command": "read_file",
            "charactersIn": 256,
            "charactersOut": 345,
        }


def test_the_accounting_entry_of_a_call_whose_output_was_stored():
    (entry,) = accounting([ToolCalled(1, "read_file", "", "mcp", "failed", 2, 3, 4, FILE, "token_budget", True)], SESSION)
    assert entry == {
        "type": "tool",
        "timestamp": 1,
        "status": "failed",
        "latency": 2,
        "mcpServer": "",
        "command": "read_file",
        "charactersIn": 3,
        "charactersOut": 4,
        "details": {"tool_output_handle": HANDLE, "tool_output_reason": "token_budget", "truncated": True},
    }


def test_the_accounting_entries_of_retrievals():
    shown = OutputRetrieved(1, "get_tool_output", "raw", "ok", FILE, 0, 9, chars_out=9, latency=2, call="c1", chars_in=60)
    first, second = accounting([shown, OutputRetrieved(3, "wait_for_tool_output", "", "failed")], SESSION)
    assert first == {
        "type": "tool",
        "timestamp": 1,
        "status": "ok",
        "latency": 2,
        "mcpServer": "",
        "command": "get_tool_output",
        "charactersIn": 60,
        "charactersOut": 9,
        "details": {"artifact_id": artifact_id(FILE), "mode": "raw"},
    }
    assert (second["command"], second["status"], "details" in second) == ("wait_for_tool_output", "failed", False)


def test_the_accounting_entries_of_a_job_that_ended():
    ready = JobChanged(2, FILE, "depot__slow", "ready", 1.5, server="depot", kept=True)
    failed = JobChanged(3, FILE, "crawl", "failed", 2.0, "no disk")
    begun = [JobChanged(1, FILE, "crawl", state) for state in ("queued", "running")]
    first, second = accounting([*begun, ready, failed], SESSION)
    assert first == {
        "type": "tool",
        "timestamp": 2,
        "status": "ok",
        "latency": 1500,
        "mcpServer": "depot",
        "command": "slow",
        "charactersIn": 0,
        "charactersOut": 0,
        "details": {"tool_output_handle": HANDLE, "tool_output_reason": "background", "truncated": True},
        "background": True,
    }
    assert (second["status"], second["latency"], second["background"]) == ("failed", 2000, True)
    assert "details" not in second


def test_the_accounting_entries_of_model_calls_tell_an_extraction_from_a_turn():
    facts = {"input_tokens": 7, "output_tokens": 8, "cost": 0.25}
    in_turn, in_extraction = accounting([ModelCalled(1, op, "openai/gpt", "ok", 5, **facts) for op in ("", "op")], SESSION)
    assert in_turn == {
        "type": "llm",
        "timestamp": 1,
        "status": "ok",
        "latency": 5,
        "provider": "openai",
        "model": "gpt",
        "tokens": {"inputTokens": 7, "outputTokens": 8},
        "costUsd": 0.25,
    }
    assert in_extraction == in_turn | {"extraction": "op"}


def test_other_events_have_no_accounting_entry():
    assert list(accounting([stored(), TokensReported(1, 2, 3)], SESSION)) == []


def test_what_the_host_settled_is_recorded_once():
    journal, budget = Journal(), ContextBudget(window=1000, used=5)
    budget.reserve(10)
    budget.settle(used=20)
    budget.settle(used=30)
    ledger = Ledger(SESSION, journal.write)
    ledger.note_settlements(budget)
    ledger.note_settlements(budget)
    assert [(event.estimated, event.reported) for event in journal.events if isinstance(event, TokensReported)] == [
        (15, 20),
        (20, 30),
    ]


def test_two_threads_that_write_at_the_same_time_neither_lose_nor_repeat_an_event():
    journal, writing, resume = Journal(), Event(), Event()

    def write(lines: bytes) -> None:
        if not writing.is_set():
            writing.set()
            resume.wait(0.2)  # ends early only if the other thread is not kept waiting
        journal.write(lines)

    def record_more() -> None:
        ledger.record(JobChanged(2, FILE, "b", "ready"))
        ledger.record(ToolCalled(3, "c"))
        resume.set()

    ledger = Ledger(SESSION, write)
    ledger.record(ToolCalled(1, "a"))
    closing, working = Thread(target=ledger.flush), Thread(target=record_more)
    closing.start()
    assert writing.wait(10)
    working.start()
    closing.join()
    working.join()
    ledger.flush()
    assert [getattr(event, "tool", "") for event in journal.events] == ["a", "b", "c"]
