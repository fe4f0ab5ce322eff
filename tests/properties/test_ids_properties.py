import string
from uuid import UUID

from hypothesis import example, given
from hypothesis import strategies as st

from overspill import handles
from overspill.errors import MalformedHandle

# From September 2001, when milliseconds got their 13th digit, to the end of 48 bits.
milliseconds = st.integers(10**12, 2**48 - 1)
version_7 = st.builds(
    lambda time, high, low: str(UUID(int=time << 80 | 7 << 76 | high << 64 | 2 << 62 | low)),
    milliseconds,
    st.integers(0, 2**12 - 1),
    st.integers(0, 2**62 - 1),
)


@given(version_7)
def test_both_spellings_of_an_output_name_the_same_output(file: str):
    assert handles.parse(handles.artifact_id(file)) == handles.parse(file) == (None, file)


@given(version_7, version_7)
def test_a_handle_survives_being_written_and_read(session: str, file: str):
    assert handles.parse(handles.handle(session, file)) == (session, file)


@given(version_7, version_7)
def test_different_outputs_have_different_artifact_ids(one: str, other: str):
    assert (handles.artifact_id(one) == handles.artifact_id(other)) == (one == other)


@given(version_7, version_7)
def test_ids_sort_by_the_time_they_were_made(one: str, other: str):
    if handles.created_ms(one) < handles.created_ms(other):
        assert one < other


@given(version_7)
def test_an_artifact_id_begins_with_the_time(file: str):
    assert handles.artifact_id(file).split("_")[1] == str(handles.created_ms(file))


@given(st.text() | st.text(alphabet=string.hexdigits + "_-/artsession", max_size=90))
@example("art_9999999999999_0000000000000000000")
def test_any_text_is_read_as_an_output_or_refused(text: str):
    try:
        session, file = handles.parse(text)
    except MalformedHandle:
        return
    assert handles.is_uuid(file)
    assert session is None or handles.is_uuid(session)
