import time

import pytest

from overspill import handles
from overspill.errors import MalformedHandle

SESSION = "019a8000-0000-7000-8000-000000000001"
FILE = "019a8421-b2c3-7abc-9def-0123456789ab"
ARTIFACT = "art_1763153392323_2af1def0123456789ab"


def test_a_handle_names_the_session_and_the_output():
    assert handles.handle(SESSION, FILE) == "session-019a8000-0000-7000-8000-000000000001/019a8421-b2c3-7abc-9def-0123456789ab"


def test_a_handle_is_read_back_into_its_two_parts():
    assert handles.parse(handles.handle(SESSION, FILE)) == (SESSION, FILE)


def test_an_artifact_id_is_the_milliseconds_and_the_random_bits_of_the_output():
    assert handles.artifact_id(FILE) == ARTIFACT


def test_an_artifact_id_is_read_back_into_the_same_output_and_no_session():
    assert handles.parse(ARTIFACT) == (None, FILE)


def test_a_bare_id_is_an_output_and_no_session():
    assert handles.parse(FILE) == (None, FILE)


@pytest.mark.parametrize(
    ("before", "after"), [(" ", ""), ("", "\n"), ('"', '"'), ("`", "`"), ("'\t", "\r\n'"), ("\u201c", "\u201d")]
)
@pytest.mark.parametrize("spelling", [FILE, ARTIFACT, handles.handle(SESSION, FILE)])
def test_what_models_put_around_an_id_is_ignored(before: str, spelling: str, after: str):
    assert handles.parse(before + spelling + after) == handles.parse(spelling)
    assert handles.parse(before + spelling.upper() + after) == handles.parse(spelling)


def test_a_new_id_is_a_version_7_uuid_of_this_moment():
    before = time.time_ns() // 1_000_000
    fresh = handles.new()
    after = time.time_ns() // 1_000_000

    assert handles.is_uuid(fresh)
    assert before <= handles.created_ms(fresh) <= after


def test_two_new_ids_differ():
    assert len({handles.new() for _ in range(1000)}) == 1000


def test_the_creation_time_is_in_the_id():
    assert handles.created_ms(FILE) == 1_763_153_392_323


@pytest.mark.parametrize(
    "spelling",
    [
        pytest.param("", id="nothing"),
        pytest.param("x9", id="a word"),
        pytest.param(f"{FILE} {FILE}", id="two ids"),
        pytest.param(FILE.replace("-", ""), id="no hyphens"),
        pytest.param("019a8421-b2c3-4abc-9def-0123456789ab", id="version 4"),
        pytest.param("019a8421-b2c3-7abc-cdef-0123456789ab", id="another variant"),
        pytest.param(f"{SESSION}/{FILE}", id="handle without its first word"),
        pytest.param(f"session-{SESSION}", id="session alone"),
        pytest.param(f"session-{SESSION}/../{FILE}", id="path"),
        pytest.param(f"session-{SESSION}/{FILE}/more", id="handle and more"),
        pytest.param("art_1763153392323_2af1def0123456789a", id="too few random digits"),
        pytest.param("art_176315339232_2af1def0123456789ab", id="too few milliseconds"),
        pytest.param("art_281474976710656_2af1def0123456789ab", id="more than 48 bits of time"),
        pytest.param("art_1763153392323_4000000000000000000", id="more than 74 random bits"),
        pytest.param("art_١٧٦٣١٥٣٣٩٢٣٢٣_2af1def0123456789ab", id="digits of another script"),
    ],
)
def test_anything_else_is_malformed(spelling: str):
    with pytest.raises(MalformedHandle):
        handles.parse(spelling)


def test_a_malformed_handle_is_told_what_handles_look_like():
    with pytest.raises(MalformedHandle) as raised:
        handles.parse("x9")
    assert str(raised.value) == (
        "'x9' is not a handle. A handle looks like session-<uuid>/<uuid>, a name like out_3f7k9q, "
        "an artifact id like art_<milliseconds>_<hex>."
    )
    assert raised.value.code == 400


def test_a_long_malformed_handle_is_shown_in_part():
    with pytest.raises(MalformedHandle) as raised:
        handles.parse("x" * 10_000)
    assert str(raised.value).startswith(f"'{'x' * 97}...' is not a handle.")


@pytest.mark.parametrize(("text", "answer"), [(FILE, True), (ARTIFACT, False), (f"{FILE}0", False), ("", False)])
def test_only_a_version_7_uuid_in_lower_case_is_an_id(text: str, answer: bool):
    assert handles.is_uuid(text) is answer
