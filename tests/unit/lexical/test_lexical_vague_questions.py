"""Questions to logs that name what ran and not what is wanted."""

from __future__ import annotations

from overspill.lexical.index import build
from overspill.lexical.select import select


def build_log(ending: str) -> bytes:
    lines = [f"[{number:04}] fetching acme/rockets module-{number} from mirror {number % 7}" for number in range(400)]
    middle = [
        "[0400] compiling acme/rockets engine.c",
        "engine.c:12: error: unknown type name 'thrust_t'",
        "make: *** [all] Error 1",
    ]
    rest = [f"[{number:04}] storing acme/rockets cache part {number}" for number in range(401, 600)]
    return "\n".join([*lines, *(middle if ending else []), *rest, ending]).encode() + b"\n"


FAILED = build_log('The command "make" exited with 2.\nDone. Your build exited with 1.')


def test_an_event_that_has_what_is_asked_comes_first_and_alone():
    found = select(build(FAILED), "module-77 mirror", max_tokens=120)
    assert "module-77 " in found.text
    assert "thrust_t" not in found.text


def test_a_log_that_did_not_give_up_shows_the_words_of_the_question():
    found = select(build(build_log("")), "Travis acme/rockets C build extract", max_tokens=500)
    assert "acme/rockets" in found.text


def test_an_answer_that_shows_a_failure_nobody_asked_about_is_no_surer():
    index = build(FAILED)
    assert select(index, "zebra acme/rockets giraffe").confidence < 0.5
