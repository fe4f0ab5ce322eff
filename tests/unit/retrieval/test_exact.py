"""One bounded answer about one stored output: content first, the way to the rest last."""

from __future__ import annotations

import base64
from functools import partial

import pytest
from frames import parted, unmarked

from overspill import handles
from overspill.errors import BadRequest
from overspill.reading import Bound, Passage
from overspill.retrieval import exact, pages
from overspill.retrieval.definitions import GetArtifact, GetToolOutput, Slice
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.pages import Page, add_note
from overspill.store.memory import MemoryStore
from overspill.types import Kept, Media, Size

SESSION = "01a1dd7b-0000-7000-8000-000000000001"
FILE = "01a1dd7b-13a4-7c37-a821-1e5e402e61f9"
ID = "art_1794717193124_30de8211e5e402e61f9"
WIDE = Bound(100_000)


def stored(data: bytes | str, media: Media = "text") -> StoredOutput:
    shelf = MemoryStore().open_shelf(SESSION)
    writer = shelf.create(FILE)
    writer.append(data if isinstance(data, bytes) else data.encode("utf-8", "surrogatepass"))
    writer.commit()
    kept = Kept(SESSION, FILE, "tool", "size_cap", Size(writer.size, 0, 0, 0), "", 0, media=media, source="tool")
    return StoredOutput(kept, shelf.open(FILE))


LINES = "".join(f"line {number:03}\n" for number in range(1, 101))


def artifact(asked: GetArtifact, bound: Bound = WIDE, data: bytes | str = LINES, media: Media = "text") -> Page:
    return exact.read_artifact(stored(data, media), asked, bound)


def output(asked: GetToolOutput, bound: Bound = WIDE, data: bytes | str = LINES, media: Media = "text") -> Page:
    return exact.read_output(stored(data, media), asked, bound)


@pytest.mark.parametrize(
    ("asked", "text", "span"),
    [
        (GetArtifact(), LINES, (0, 900)),
        (GetArtifact(lines="2-3"), "line 002\nline 003\n", (9, 27)),
        (GetArtifact(start_line=100), "line 100\n", (891, 900)),
        (GetArtifact(end_line=1), "line 001\n", (0, 9)),
        (GetArtifact(start_line=99, end_line=1000), "line 099\nline 100\n", (882, 900)),
        (GetArtifact(bytes="0-3"), "line", (0, 4)),
        (GetArtifact(bytes="895-2000"), " 100\n", (895, 900)),
    ],
)
def test_what_fits_is_given_as_it_is(asked: GetArtifact, text: str, span: tuple[int, int]):
    page = artifact(asked)
    assert (page.text, page.id, page.start, page.end) == (text, FILE, *span)


def test_an_empty_output_is_an_empty_page():
    assert artifact(GetArtifact(), data="").text == ""


@pytest.mark.promise("nothing-silently-cut")
def test_what_does_not_fit_says_where_it_stands_and_how_to_go_on():
    page = artifact(GetArtifact(), Bound(612))
    shown = "".join(f"line {number:03}\n" for number in range(1, 12))
    assert unmarked(page.text) == (
        f"[untrusted data N]\n{shown}\n[end of untrusted data N]\n"
        "[Characters 0-99, lines 1-11, bytes 0-99 of 900. 801 bytes of what you asked for did not fit. "
        f'Next: get_artifact(id="{ID}", lines="12-100")]'
    )
    assert (page.start, page.end) == (0, 99)


def test_one_long_line_goes_on_by_bytes():
    page = artifact(GetArtifact(), Bound(520), "é" * 1000)
    assert unmarked(page.text) == (
        "[untrusted data N]\néééé\n[end of untrusted data N]\n"
        "[Characters 0-4, lines 1-1, bytes 0-8 of 2000. 1992 bytes of what you asked for did not fit. "
        f'Next: get_artifact(id="{ID}", bytes="8-1999")]'
    )


def test_get_tool_output_goes_on_by_characters():
    page = output(GetToolOutput(ID, "slice", slice=Slice(start=10, length=500)), Bound(520), "é" * 1000)
    assert unmarked(page.text) == (
        "[untrusted data N]\néééé\n[end of untrusted data N]\n"
        "[Characters 10-14, lines 1-1, bytes 20-28 of 2000. 992 bytes of what you asked for did not fit. "
        f'Next: get_tool_output(id="{ID}", mode="slice", slice={{"start": 14, "length": 496}})]'
    )
    page = output(GetToolOutput(ID, "raw"), Bound(520), "é" * 1000)
    assert page.text.endswith(f'Next: get_tool_output(id="{ID}", mode="slice", slice={{"start": 4, "length": 996}})]')
    page = output(GetToolOutput(ID, "raw"), Bound(522))
    assert page.text.endswith(f'Next: get_tool_output(id="{ID}", mode="slice", slice={{"lines": "2-100"}})]')


@pytest.mark.parametrize(
    ("slice", "text"),
    [
        (Slice(), LINES),
        (Slice(start=895), " 100\n"),
        (Slice(start=0, length=4), "line"),
        (Slice(lines="3-4"), "line 003\nline 004\n"),
        (Slice(lines="100"), "line 100\n"),
    ],
)
def test_a_slice(slice: Slice, text: str):
    assert output(GetToolOutput(ID, "slice", slice=slice)).text == text


@pytest.mark.parametrize(
    ("slice", "ways"),
    [
        (Slice(start=5, anchor="line"), "anchor and start"),
        (Slice(lines="1-2", anchor="line"), "lines and anchor"),
        (Slice(lines="1-2", start=5), "lines and start"),
        (Slice(lines="1-2", start=0), "lines and start"),
    ],
)
@pytest.mark.parametrize("media", ["text", "binary"])
def test_a_slice_that_asks_for_two_things_is_refused(slice: Slice, ways: str, media: Media):
    with pytest.raises(BadRequest) as refused:
        output(GetToolOutput(ID, "slice", slice=slice), media=media)
    assert str(refused.value) == f"slice has {ways}. Give one of them: lines, anchor or start."


def test_a_start_at_the_beginning_says_nothing_beside_an_anchor():
    assert "line 050" in output(GetToolOutput(ID, "slice", slice=Slice(start=0, anchor="line 050", window=26))).text


def test_without_a_slice_the_output_is_read_from_its_beginning():
    assert output(GetToolOutput(ID, "slice")).text == LINES


def test_an_anchor_is_shown_in_its_surroundings_with_its_place():
    page = output(GetToolOutput(ID, "slice", slice=Slice(anchor="line 050", window=26)))
    assert parted(page.text) == ("line 049\nline 050\nline 051", "[Characters 432-458, lines 49-51, bytes 432-458 of 900.]")
    page = output(GetToolOutput(ID, "slice", slice=Slice(anchor="line", window=10, match_index=1)))
    assert "The anchor occurs 100 times.]" in page.text


def test_an_anchor_whose_window_does_not_fit_names_both_continuations():
    page = output(GetToolOutput(ID, "slice", slice=Slice(anchor="x", window=900)), Bound(700), "a" * 500 + "x" + "b" * 500)
    assert page.text.count(f'get_tool_output(id="{ID}", mode="slice", slice={{"start": ') == 2
    assert len(page.text.encode()) <= 700


def test_the_footer_of_a_very_large_output_stays_within_the_bound():
    """Figures of ten digits and two continuations."""
    footer = pages.describe_place(
        Passage("", 10**12, 10**12, 10**12, 10**12, 10**12, 10**12, 10**12, omitted=10**12, matches=1000),
        [f'get_tool_output(id="{ID}", mode="slice", slice={{"start": {10**12}, "length": {10**12}}})'] * 2,
    )
    assert len(footer) + 2 <= pages.FOOTER_BYTES


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (GetArtifact(start_line=0), "start_line must be at least 1, not 0."),
        (GetArtifact(start_line=-5), "start_line must be at least 1, not -5."),
        (GetArtifact(start_line=101), "start_line 101 is past the end: the output has 100 lines."),
        (GetArtifact(lines="5-3"), "The range from start_line 5 to end_line 3 is empty."),
        (GetArtifact(lines=""), "lines must look like \"100-200\", not ''."),
        (GetArtifact(lines="abc"), "lines must look like \"100-200\", not 'abc'."),
        (GetArtifact(bytes=""), "bytes must look like \"100-200\", not ''."),
        (GetArtifact(bytes="900-901"), "start 900 is past the end: the output has 900 bytes."),
        (GetArtifact(bytes="10-5"), "The range from start 10 to end 6 is empty."),
    ],
)
def test_a_bad_range_is_refused_with_its_reason(asked: GetArtifact, message: str):
    with pytest.raises(BadRequest) as caught:
        artifact(asked)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (GetToolOutput(ID, "query"), "Query required for query mode."),
        (GetToolOutput(ID, "grep"), "Pattern required for grep mode."),
        (GetToolOutput(ID, "slice", slice=Slice(anchor="nowhere")), "Anchor not found in content"),
        (GetToolOutput(ID, "slice", slice=Slice(start=-1)), "start must be at least 0, not -1."),
        (GetToolOutput(ID, "slice", slice=Slice(start=0, length=0)), "length must be at least 1, not 0."),
        (GetToolOutput(ID, "slice", slice=Slice(anchor="l", window=0)), "window must be at least 1, not 0."),
        (GetToolOutput(ID, "grep", pattern="l", from_=-1), "from must be at least 0, not -1."),
        (GetToolOutput(ID, "grep", pattern="l", context=-1), "context must be at least 0, not -1."),
    ],
)
def test_a_request_that_cannot_be_served_says_why(asked: GetToolOutput, message: str):
    with pytest.raises(BadRequest) as caught:
        output(asked)
    assert str(caught.value) == message


def test_grep_shows_lines_and_what_was_searched():
    page = output(GetToolOutput(ID, "grep", pattern="05[01]", context=0))
    assert parted(page.text) == ("50:line 050\n51:line 051", "[2 of 2 matching lines in bytes 0-900 of 900.]")
    assert (page.id, page.start, page.end) == (FILE, 0, 0)


def test_grep_without_a_match_says_what_was_searched():
    assert output(GetToolOutput(ID, "grep", pattern="nowhere")).text == "[No match in bytes 0-900 of 900.]"


def test_grep_that_does_not_fit_says_where_to_go_on():
    first = output(GetToolOutput(ID, "grep", pattern="line", context=0), Bound(1000))
    rows, footer = parted(first.text)
    assert rows.splitlines()[0] == "1:line 001"
    count = len(rows.splitlines())
    again = f'get_tool_output(id="{ID}", mode="grep", pattern="line", context=0, from={count * 9})'
    assert footer == f"[{count} of 100 matching lines in bytes 0-900 of 900. Next: {again}]"
    second = output(GetToolOutput(ID, "grep", pattern="line", context=0, from_=count * 9), Bound(1000))
    assert parted(second.text)[0].startswith(f"{count + 1}:line {count + 1:03}")


def test_a_query_gives_the_value():
    data = '{"items":[{"name":"é"},{"name":"b"}]}'
    assert output(GetToolOutput(ID, "query", query="items[].name"), data=data).text == '["é","b"]'
    assert artifact(GetArtifact(query="/items/0/name"), data=data).text == "é"


def test_a_query_that_looked_inside_a_string_says_so():
    data = '{"result":"{\\"a\\":5}"}'
    assert artifact(GetArtifact(query="/result/a"), data=data).notes == ("[Found inside a string that contains JSON.]",)


def test_a_long_text_found_by_a_query_goes_on():
    data = '{"log":"' + "x" * 5000 + '"}'
    page = output(GetToolOutput(ID, "query", query="log"), Bound(1000), data)
    text, footer = parted(page.text)
    assert footer == f'[More follows. Next: get_tool_output(id="{ID}", mode="query", query="log", from={len(text)})]'
    assert len(page.text) <= 1000
    rest = output(GetToolOutput(ID, "query", query="log", from_=len(text)), WIDE, data)
    assert text + rest.text == "x" * 5000


def test_the_notes_of_a_query_stay_within_the_bound():
    inner = '{\\"a\\":\\"' + "x" * 2000 + '\\"}'
    page = output(GetToolOutput(ID, "query", query="/result/a"), Bound(2000), f'{{"result":"{inner}"}}')
    assert len(page.text) <= 2000


BINARY = bytes(range(256)) * 4


def test_binary_is_summarised_and_its_bytes_are_given_as_base64():
    summary = (
        "Binary output (1 KB) is stored but not shown, because it is not text.\n"
        f"[Artifact: {ID}] tool (1 KB)\n"
        f'Read its bytes with get_artifact(id="{ID}", bytes="0-999").'
    )
    assert artifact(GetArtifact(), data=BINARY, media="binary").text == summary
    page = artifact(GetArtifact(bytes="0-9"), data=BINARY, media="binary")
    assert page.text == f"[base64 of bytes 0-9 of 1024]\n{base64.b64encode(BINARY[:10]).decode()}"
    assert (page.start, page.end) == (0, 10)


def test_a_slice_of_a_binary_output_is_base64_counted_in_bytes():
    page = output(GetToolOutput(ID, "slice", slice=Slice(start=4, length=8)), data=BINARY, media="binary")
    assert page.text == f"[base64 of bytes 4-11 of 1024]\n{base64.b64encode(BINARY[4:12]).decode()}"
    rest = output(GetToolOutput(ID, "slice", slice=Slice(start=0)), bound=Bound(700), data=BINARY, media="binary")
    assert rest.text.endswith(f'[Next: get_tool_output(id="{ID}", mode="slice", slice={{"start": 141, "length": 883}})]')
    for start in (-1, 1024):
        with pytest.raises(BadRequest, match=rf"^There is no byte {start}: the output has 1024 bytes, counted from 0\.$"):
            output(GetToolOutput(ID, "slice", slice=Slice(start=start)), data=BINARY, media="binary")


@pytest.mark.parametrize("mode", ["raw", "slice"])
def test_binary_is_never_shown_as_text(mode: str):
    page = output(GetToolOutput(ID, mode, pattern="a"), data=BINARY, media="binary")  # type: ignore[arg-type]
    assert page.text.startswith("Binary output (1 KB) is stored but not shown")


@pytest.mark.parametrize("mode", ["grep", "query"])
def test_binary_is_not_searched_and_says_so(mode: str):
    page = output(GetToolOutput(ID, mode, pattern="a", query="/a"), data=BINARY, media="binary")  # type: ignore[arg-type]
    assert page.is_error
    assert page.text.startswith(
        "The stored output is data in an unknown format. It was not searched.\nBinary output (1 KB) is stored but not shown"
    )


@pytest.mark.parametrize("bound", [Bound(700), Bound(1 << 30, 700)])
def test_binary_that_does_not_fit_goes_on(bound: Bound):
    page = artifact(GetArtifact(bytes="0-5000"), bound, BINARY, "binary")
    assert len(page.text) <= 700
    head, encoded, _, footer = page.text.split("\n")
    size = len(base64.b64decode(encoded))
    assert head == f"[base64 of bytes 0-{size - 1} of 1024]"
    assert footer == f'[Next: get_artifact(id="{ID}", bytes="{size}-1023")]'


def test_binary_past_its_end_is_refused():
    with pytest.raises(BadRequest, match=r"^There is no byte 1024: the output has 1024 bytes, counted from 0\.$"):
        artifact(GetArtifact(bytes="1024-1030"), data=BINARY, media="binary")


def test_of_a_running_tool_a_note_follows_and_stays_within_the_bound():
    read = partial(exact.read_output, stored(LINES), GetToolOutput(ID, "slice"))
    page = add_note("[Partial.]", Bound(800), read)
    assert page.text.endswith("]\n[Partial.]")
    assert len(page.text) <= 800


def test_lone_surrogates_and_invalid_bytes_are_shown_as_replacement_characters():
    assert artifact(GetArtifact(), data=b"a\xed\xa0\x80b\xffc").text == "a\ufffdb\ufffdc"


def test_ids_of_this_file_belong_together():
    assert handles.artifact_id(FILE) == ID


@pytest.mark.promise("nothing-silently-cut")
def test_a_hit_that_does_not_fit_is_cut_and_says_so():
    asked = GetToolOutput(id=ID, mode="grep", pattern="line 077", context=2)
    for room in range(1, 600):
        page = exact.read_output(stored(LINES), asked, Bound(room))
        is_whole = "77:line 077" in page.text
        assert is_whole or "…" in page.text or "The line is cut" in page.text
        assert not (is_whole and "The line is cut" in page.text)
