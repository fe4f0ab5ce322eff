"""The text of a PDF. Its pages are read by a process that can open nothing and that ends in time."""

from __future__ import annotations

import re
import zlib

import pytest
from compressed import COMPRESS
from pdfs import assemble, make_pdf, page_content, page_objects

from overspill.decoding import Decoded, decode
from overspill.decoding.limits import Limits
from overspill.errors import NotText
from overspill.store.readers import BytesReader


def open_bytes(data: bytes, limits: Limits = Limits()) -> Decoded:  # noqa: B008
    return decode(BytesReader(data), limits)


def read(decoded: Decoded) -> str:
    return decoded.reader.read(0, decoded.reader.size).decode()


def test_the_text_of_every_page_is_read():
    found = open_bytes(make_pdf("Invoice 4711\nTotal due: 99 EUR", "Müller pays late"))
    assert read(found) == "Invoice 4711\nTotal due: 99 EUR\n\n\f\nMüller pays late\n\n\f\n"
    assert (found.decoding.formats, found.decoding.guessed, found.decoding.remarks) == (("PDF",), False, ())


def test_a_compressed_pdf_is_read():
    found = open_bytes(COMPRESS["gzip"](make_pdf("Invoice 4711")))
    assert (found.decoding.formats, read(found).strip()) == (("gzip", "PDF"), "Invoice 4711")


def test_a_pdf_that_is_text_stays_text_and_says_so():
    found = open_bytes(make_pdf("Invoice 4711", binary=False, compress=False))
    assert found.decoding.formats == ()
    assert found.decoding.remarks == (
        "It looks like a PDF file, but it is valid UTF-8, so its source was searched, not its pages.",
    )


def test_pages_without_text_are_counted():
    found = open_bytes(make_pdf("one", "", "three"))
    assert found.decoding.remarks == ("Nothing was searched on 1 page of the PDF without text (perhaps images).",)


def break_page(number: int, body: bytes) -> bytes:
    """Three pages, one of which has other content."""
    objects = page_objects([page_content(text) for text in ("one", "two", "three")])
    objects[4 + 2 * number] = body
    return assemble(objects)


def is_refused(data: bytes) -> str:
    with pytest.raises(NotText) as caught:
        open_bytes(data)
    return str(caught.value)


@pytest.mark.slow
def test_a_pdf_without_text_is_not_searched():
    assert is_refused(make_pdf("", "")) == (
        "The stored output is a PDF without text (2 pages, perhaps scanned). It was not searched."
    )


@pytest.mark.slow
def test_a_bomb_in_one_page_costs_that_page_only():
    bomb = zlib.compress(zlib.compress(b"(A) Tj " * 30_000_000))
    packed = b"<< /Length %d /Filter [/FlateDecode /FlateDecode] >>\nstream\n%s\nendstream" % (len(bomb), bomb)
    found = open_bytes(break_page(1, packed))
    assert read(found).split() == ["one", "three"]
    assert found.decoding.remarks == ("Nothing was searched on 1 page of the PDF that could not be read.",)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "body"),
    [
        (2, b"<< /Type /Pages /Kids [2 0 R 2 0 R] /Count 1000000000 >>"),
        (2, b"<< /Type /Pages /Kids [4 0 R 2 0 R] /Count 2 >>"),
        (2, b"2 0 R"),
        (2, b"[" * 100_000),
        (1, b"<< /Type /Catalog /Pages 1 0 R >>"),
    ],
    ids=["pages of pages", "a page and itself", "refers to itself", "deep", "catalog"],
)
def test_objects_without_end_come_to_an_end(number: int, body: bytes):
    objects = page_objects([page_content("one")])
    objects[number - 1] = body
    assert "The stored output is a PDF " in is_refused(assemble(objects))


@pytest.mark.slow
def test_endless_content_and_endless_tables_come_to_an_end():
    assert read(open_bytes(break_page(0, b"5 0 R"))).split() == ["two", "three"]
    sound = make_pdf("one")
    table = sound.index(b"xref\n0")
    assert read(open_bytes(sound.replace(b"/Root 1 0 R ", b"/Root 1 0 R /Prev %d " % table))).split() == ["one"]


@pytest.mark.slow
def test_what_takes_too_long_is_cut_off_and_says_where():
    """A thousand pages that share their slow content, so that every one of them takes a while."""
    slow = b"BT /F1 12 Tf " + b"(A) Tj " * 50_000 + b" ET"
    objects = page_objects([page_content("first"), slow])
    kids = b" ".join([b"4 0 R"] + [b"6 0 R"] * 1000)
    objects[1] = b"<< /Type /Pages /Kids [%s] /Count 1001 >>" % kids
    found = open_bytes(assemble(objects), Limits(pdf_seconds=3))
    assert read(found).startswith("first")
    (remark,) = found.decoding.remarks
    assert re.fullmatch(
        r"Reading the PDF stopped after \d+ of 1,001 pages: it is too large or takes too long\. What follows was not searched\.",
        remark,
    )


def test_no_more_pages_are_read_than_the_limit():
    found = open_bytes(make_pdf("one", "two", "three"), Limits(pdf_pages=2))
    assert read(found).split() == ["one", "two"]
    assert found.decoding.remarks == (
        "Reading the PDF stopped after 2 of 3 pages: it is too large or takes too long. What follows was not searched.",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "data",
    [make_pdf("one")[:-150], b"%PDF-1.7\n\xff\xfe" + bytes(range(256)) * 50, b"%PDF-\xff\n"],
    ids=["cut", "noise", "nothing"],
)
def test_a_damaged_pdf_is_not_searched(data: bytes):
    assert is_refused(data) == "The stored output is a PDF that cannot be read: it is damaged. It was not searched."


@pytest.mark.slow
def test_a_pdf_that_needs_a_password_says_so():
    locked = b"/Encrypt << /Filter /Standard /V 1 /R 2 /P -4 /O <%s> /U <%s> >> /ID [<00> <00>] " % (b"11" * 32, b"22" * 32)
    data = assemble(page_objects([page_content("one")]), trailer=locked)
    assert is_refused(data) == "The stored output is a PDF that cannot be read: it needs a password. It was not searched."
