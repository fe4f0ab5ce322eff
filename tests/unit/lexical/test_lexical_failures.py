"""What a log says about a failure, and what only sounds like one."""

from __future__ import annotations

import pytest

from overspill.lexical.failures import read_signs
from overspill.lexical.index import build
from overspill.lexical.select import select


def test_a_cause_is_read_before_the_first_sign_of_giving_up() -> None:
    lines = [f"step {number} went well" for number in range(300)]
    lines[100:100] = ["the valve was left open", "pump overheated", "exited with code 3", "cleaning up"]
    selection = select(build("\n".join(lines).encode()), "why did it fail", max_tokens=120)
    assert "the valve was left open\npump overheated\nexited with code 3" in selection.text
    assert selection.confidence >= 0.5


def test_errors_counted_as_none_are_no_failure() -> None:
    index = build(b"0 errors\nno failures here\nerrors: 0\nall went well\nlibgpg-error.so loaded\nold error-prone path\n")
    assert read_signs(index).failing == {}
    assert read_signs(build(b"GET /orders/0 ERROR\nthread 0 ERROR\n0 failed\n0 error(s)\n")).failing.keys() == {0, 1}
    assert read_signs(index).evidence == 0.0
    assert read_signs(index).before == [5, 4, 3, 2, 1, 0]


@pytest.mark.parametrize(
    ("line", "fails"),
    [
        ("ERROR no space left on device", True),
        ("main.c:3:1: error: no member named 'size'", True),
        ("FAILED none of the mirrors answered", True),
        ("error: null pointer passed to copy", True),
        ("errors: none", False),
        ("error: null", False),
        ('{"error": null, "status": 200}', False),
        ("failed: no; retried: no", False),
        ("error=null status=200", False),
        ("failed=0 changed=3", False),
    ],
)
def test_only_a_value_of_its_own_says_that_nothing_failed(line: str, fails: bool) -> None:
    assert bool(read_signs(build(f"began\n{line}\nended\n".encode())).failing) == fails


@pytest.mark.parametrize(
    "event",
    [
        "{} {} no space left on device",
        "2026-03-01T08:00:{:05} {} no space left on device",
        "08:00:01,{:03} [{}] no space left on device",
        "[worker-{}] {} disk: no space left on device",
        "{} | {} | no space left on device",
        'ts={} level={} msg="no space left on device"',
        '{{"id": {}, "severity": "{}", "message": "no space left on device"}}',
    ],
)
@pytest.mark.parametrize("place", [3, 2_000, 3_999])
def test_an_event_of_a_failing_level_says_why_it_failed(event: str, place: int) -> None:
    fine = event.replace("no space left on device", "all is well")
    lines = [fine.format(number, "INFO") for number in range(4_000)]
    lines[place] = event.format(place, "ERROR")
    selection = select(build("\n".join(lines).encode()), "why did it fail", max_tokens=300)
    assert lines[place] in selection.text
    assert selection.confidence >= 0.5


def test_what_came_before_a_report_is_shown_with_it() -> None:
    lines = [f"Mar 01 08:00:{number % 60:02} host app[{number}]: request served" for number in range(3_000)]
    lines[1_700:1_702] = ["Mar 01 08:28:20 host disk: replica 3 is detached", "Mar 01 08:28:20 host app[9]: ERROR journal lost"]
    selection = select(build("\n".join(lines).encode()), "why did it fail", max_tokens=150)
    assert "replica 3 is detached\nMar 01 08:28:20 host app[9]: ERROR journal lost" in selection.text


@pytest.mark.parametrize("size", [3_000, 120_000])
@pytest.mark.parametrize("question", ["why did it fail", "why is it not working?", "what caused the outage"])
def test_what_only_may_be_a_failure_comes_nearest_if_nothing_certainly_is(size: int, question: str) -> None:
    lines = [f"Mar 01 08:00:{number % 60:02} host app[{number}]: request served" for number in range(size)]
    lines[size // 2] = "Mar 01 08:28:20 host app[9]: could not write the journal"
    selection = select(build("\n".join(lines).encode()), question, max_tokens=200)
    assert lines[size // 2] in selection.text
    assert selection.confidence < 0.08


def test_lines_that_a_program_writes_again_and_again_are_left_out_even_if_there_is_room() -> None:
    lines = [f"2026-03-01 08:{number // 60 % 60:02}:{number % 60:02} INFO fine" for number in range(20_000)]
    lines[12_345] = "2026-03-01 09:00:00 ERROR no space left on device"
    selection = select(build("\n".join(lines).encode()), "why did it fail", max_tokens=2_000)
    assert [line for line in selection.text.splitlines() if "INFO" in line] == []
    assert lines[12_345] in selection.text
    assert "repeated lines left out" in selection.text.splitlines()[-1]


def test_lines_of_a_program_that_say_different_things_are_shown_around_a_failure() -> None:
    steps = ["opened the valve", "started the pump", "read the pressure", "closed the valve"]
    lines = [f"step {number}: {step}" for number, step in enumerate(steps)]
    selection = select(build("\n".join([*lines, "exited with code 3"]).encode()), "why did it fail", max_tokens=2_000)
    assert all(line in selection.text for line in lines)
    assert "left out" not in selection.text
