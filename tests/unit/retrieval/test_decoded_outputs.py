"""A stored output keeps its bytes. Questions and searches see the text decoded from them, and say so."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re

import pytest
from compressed import COMPRESS
from frames import parted
from pdfs import make_pdf

from overspill import Output, Session, Settings
from overspill.errors import NotText
from overspill.record.events import OutputExtracted, Quote
from overspill.retrieval.archive import Archive
from overspill.store.memory import MemoryStore
from overspill.types import Kept

pytestmark = pytest.mark.anyio

LOG = "".join(f"INFO step {i} done\n" for i in range(300)) + "ERROR step 300 failed: kein Platz für Müller übrig\n"
PACKED = gzip.compress(LOG.encode("utf-16"), mtime=0)
PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20
NOTE = "Decoded from gzip, then UTF-16LE. Lines, positions and quotes refer to the decoded text."


async def ask(session: Session, kept: Kept, mode: str, **args: object) -> tuple[str, bool]:
    reply = await session.invoke("get_tool_output", {"id": kept.artifact_id, "mode": mode, **args})
    return reply.text, reply.is_error


@pytest.mark.promise("nothing-lost")
async def test_the_stored_bytes_stay_as_they_are():
    async with Session() as session:
        kept = await session.keep(PACKED)
        await session.extract(kept.handle, "why did step 300 fail")
        with session.open(kept.handle) as stored:
            assert stored.bytes() == PACKED
            assert stored.decoded().reader.read(0, 1 << 20) == LOG.encode()
        assert kept.sha256 == hashlib.sha256(PACKED).hexdigest()


@pytest.mark.promise("every-quote-checked")
async def test_an_extraction_refers_to_the_decoded_text():
    async with Session() as session:
        kept = await session.keep(PACKED)
        found = await session.extract(kept.handle, "why did step 300 fail")
    assert "kein Platz für Müller übrig" in found.text
    assert found.decoding is not None
    assert (found.decoding.formats, found.decoding.guessed, found.decoding.bytes) == (
        ("gzip", "UTF-16LE"), False, len(LOG.encode()),
    )  # fmt: skip
    assert (found.source_hash, found.warnings) == (kept.sha256, ())
    assert found.excerpts
    for excerpt in found.excerpts:
        assert LOG.encode()[excerpt.start_byte : excerpt.end_byte].decode() == excerpt.text
        assert LOG[excerpt.start_char : excerpt.end_char] == excerpt.text


async def test_a_model_is_told_that_the_text_was_decoded():
    async with Session() as session:
        kept = await session.keep(PACKED)
        reply = await session.invoke("tool_output", {"handle": kept.handle, "extract": "why did step 300 fail"})
        assert f"\nNOTE: {NOTE}\n" in reply.text
        snippets = json.loads((await ask(session, kept, "extract", query="why did step 300 fail"))[0])
    assert snippets["note"] == NOTE
    assert snippets["decoding"]["formats"] == ["gzip", "UTF-16LE"]


async def test_grep_searches_the_decoded_text():
    async with Session() as session:
        kept = await session.keep(PACKED)
        text, is_error = await ask(session, kept, "grep", pattern="Müller", context=0)
    assert not is_error
    assert "301:ERROR step 300 failed: kein Platz für Müller übrig" in text
    assert f"1 of 1 matching lines in bytes 0-{len(LOG.encode())} of {len(LOG.encode())}." in text
    assert text.endswith(f"[{NOTE}]")


async def test_lines_are_those_of_the_decoded_text():
    async with Session() as session:
        kept = await session.keep(PACKED)
        text, is_error = await ask(session, kept, "slice", slice={"lines": "2-3"})
        assert (parted(text), is_error) == (("INFO step 1 done\nINFO step 2 done\n", f"[{NOTE}]"), False)
        late, is_error = await ask(session, kept, "slice", slice={"lines": "400-401"})
        assert ("start_line 400 is past the end: the output has 301 lines" in late, is_error) == (True, True)
        image = await session.keep(PNG)
        text, is_error = await ask(session, image, "slice", slice={"lines": "1-2"})
        assert ("PNG" in text, is_error) == (True, True)


@pytest.mark.promise("everything-reachable")
async def test_lines_of_decoded_text_that_do_not_fit_continue_with_the_next_line():
    log, seen, asked = "".join(f"größer {number}\n" for number in range(3_000)), "", "1-3000"
    async with Session() as session:
        kept = await session.keep(log.encode("utf-16"))
        while asked:
            text, _ = await ask(session, kept, "slice", slice={"lines": asked})
            assert len(text.encode()) <= session.settings.answer_max_bytes
            shown, notes = parted(text)
            seen += shown
            following = re.search(r'Next: get_tool_output\(id="\w+", mode="slice", slice=\{"lines": "(\d+-\d+)"\}\)', notes)
            asked = following[1] if following else ""
    assert seen == log


@pytest.mark.promise("everything-reachable")
async def test_a_line_of_decoded_text_that_does_not_fit_continues_with_grep():
    async with Session() as session:
        kept = await session.keep(("é" * 30_000).encode("utf-16"))
        shown, notes = parted((await ask(session, kept, "slice", slice={"lines": "1-1"}))[0])
        following = re.search(r'Next: get_tool_output\(id="\w+", mode="grep", pattern="\.", context=0, from=(\d+)\)', notes)
        assert following is not None
        assert (set(shown), 2 * len(shown)) == ({"é"}, int(following[1]))
        rest, _ = await ask(session, kept, "grep", pattern=".", context=0, **{"from": int(following[1])})
    first = re.match(r"1 \(byte (\d+), char \d+\):…é", parted(rest)[0])
    assert first is not None
    assert int(first[1]) <= int(following[1])  # nothing between them is left out


async def test_a_guess_and_a_break_are_named():
    async with Session() as session:
        latin = await session.keep((LOG * 2).encode("latin-1"))
        assert "[Decoded from windows-1252 (a guess). " in (await ask(session, latin, "grep", pattern="Müller"))[0]
        broken = await session.keep(gzip.compress(LOG.encode())[:-100])
        text, _ = await ask(session, broken, "grep", pattern="Müller")
        found = await session.extract(broken.handle, "why did step 300 fail")
    assert "No match in bytes 0-" in text
    assert "the data is incomplete. What follows was not searched.]" in text
    assert found.warnings[0].startswith("Decompressing gzip stopped after ")


async def test_a_query_sees_json_in_compressed_data():
    async with Session() as session:
        kept = await session.keep(gzip.compress(json.dumps({"items": [{"name": "Müller"}]}).encode()))
        text, is_error = await ask(session, kept, "query", query="/items/0/name")
    assert not is_error
    assert "Müller" in text
    assert "[Decoded from gzip. " in text


@pytest.mark.parametrize("mode", ["raw", "slice"])
async def test_exact_reading_says_what_the_bytes_are(mode: str):
    async with Session() as session:
        kept = await session.keep(PACKED)
        text, _ = await ask(session, kept, mode)
        first, _ = await ask(session, kept, "slice", slice={"start": 0, "length": 3})
    assert text.startswith(f"Gzip data ({len(PACKED)} bytes) is stored but not shown, because it is not plain text.\n")
    assert f'\nSearch the text in it with get_tool_output(id="{kept.name}", mode="ask", query="what to extract").\n' in text
    assert first == f"[base64 of bytes 0-2 of {len(PACKED)}]\nH4sI"


async def test_what_is_not_text_is_named_and_not_searched():
    async with Session() as session:
        kept = await session.keep(PNG)
        with pytest.raises(NotText, match=r"^The stored output is a PNG image\. It was not searched\.$"):
            await session.extract(kept.handle, "anything")
        reply = await session.invoke("tool_output", {"handle": kept.handle, "extract": "anything"})
        assert (reply.is_error, reply.text.splitlines()[-1]) == (True, "The stored output is a PNG image. It was not searched.")
        for mode in ("grep", "query", "extract"):
            text, is_error = await ask(session, kept, mode, pattern="a", query="/a")
            assert is_error
            assert "The stored output is a PNG image. It was not searched." in text


async def test_a_tool_that_returns_compressed_data_is_answered_with_what_it_is():
    async with Session(Settings(preset="overspill")) as session:
        reply = await session.call("download", {}, lambda: PACKED)
        assert reply.kept is not None
        assert reply.text.startswith("Gzip data (")
        ask = f'get_tool_output(id="{reply.kept.name}", mode="ask", query="what to extract")'
        assert f"Search the text in it with {ask}." in reply.text


async def test_an_embedded_file_that_is_compressed_can_be_searched():
    blob = base64.b64encode(PACKED).decode()
    block = {"type": "resource", "resource": {"uri": "file:///a.gz", "mimeType": "application/gzip", "blob": blob}}
    async with Session(Settings(maxInlineBlob=100)) as session:
        reply = await session.call("download", {}, lambda: Output([block]))
        assert reply.kept is not None
        assert reply.text.startswith(
            "Resource application/gzip (736 bytes) is stored but not shown, because it is not plain text."
        )
        found = await session.invoke("tool_output", {"handle": reply.kept.handle, "extract": "why did step 300 fail"})
    assert "kein Platz für Müller übrig" in found.text


@pytest.mark.promise("every-quote-checked")
@pytest.mark.parametrize(
    "data", [PACKED, (LOG * 2).encode("latin-1"), make_pdf(*LOG.splitlines()[-2:])], ids=["gzip", "latin", "PDF"]
)
async def test_verify_decodes_again_to_check_quotes(data: bytes):
    store = MemoryStore()
    async with Session(store=store) as session:
        kept = await session.keep(data)
        found = await session.extract(kept.handle, "why did step 300 fail")
        assert found.excerpts
        archive = Archive([store])
        assert [check.problem for check in archive.verify(archive.items())] == [""]
        assert found.decoding is not None
        wrong = OutputExtracted(
            0, "op", kept.id, "extract", "auto", quotes=(Quote(0, 5, "no such hash"),), decoded=found.decoding.formats
        )
        session.note(wrong)
        names = ", ".join(found.decoding.formats)
        assert [check.problem for check in archive.verify(archive.items())] == [
            f"1 quoted passages are not in the text decoded from it ({names})"
        ]


async def test_an_output_is_decoded_once():
    async with Session() as session:
        kept = await session.keep(PACKED)
        with session.open(kept.handle) as one, session.open(kept.handle) as two:
            assert one.decoded() is two.decoded()


@pytest.mark.parametrize("name", COMPRESS)
async def test_every_compression_can_be_asked(name: str):
    async with Session() as session:
        kept = await session.keep(COMPRESS[name](LOG.encode()))
        found = await session.extract(kept.handle, "why did step 300 fail")
    assert "kein Platz für Müller übrig" in found.text
    assert found.decoding is not None
    assert found.decoding.formats == (name,)


@pytest.mark.parametrize(
    ("data", "is_plain"), [("Größe\n" * 100_000, True), ("Größe\n".encode("latin-1") * 100_000, False), (PACKED, False)]
)
async def test_plain_text_is_noted_while_it_is_stored(data: str | bytes, is_plain: bool):
    async with Session() as session:
        kept = await session.keep(data)
        assert kept.is_plain == is_plain
        with session.open(kept.handle) as stored:
            assert (stored.decoded().reader is stored.reader) == is_plain


async def test_a_pdf_that_is_text_says_so_in_every_answer():
    async with Session() as session:
        kept = await session.keep(make_pdf("hello", binary=False, compress=False))
        found = await session.extract(kept.handle, "hello")
        assert kept.is_plain
    assert found.warnings == ("It looks like a PDF file, but it is valid UTF-8, so its source was searched, not its pages.",)
