"""For any text and any bytes: what is valid UTF-8 is itself, what was encoded comes back, and nothing raises anything else."""

from __future__ import annotations

import pytest
from compressed import COMPRESS
from hypothesis import given
from hypothesis import strategies as st

from overspill.decoding import decode, redecode
from overspill.errors import NotText
from overspill.store.readers import BytesReader

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))


@given(TEXT)
def test_valid_utf8_is_itself(text: str):
    reader = BytesReader(text.encode())
    found = decode(reader)
    assert found.reader is reader
    assert found.decoding.formats == ()


@given(TEXT, st.lists(st.sampled_from(sorted(COMPRESS)), max_size=3))
def test_what_was_compressed_comes_back(text: str, names: list[str]):
    data = text.encode()
    for name in names:
        data = COMPRESS[name](data)
    found = decode(BytesReader(data))
    assert found.reader.read(0, found.reader.size) == text.encode()
    assert found.decoding.formats == tuple(reversed(names))


@given(TEXT, st.sampled_from(["utf-16", "utf-32"]))
def test_marked_text_comes_back(text: str, codec: str):
    text = text.removeprefix("\ufeff")
    found = decode(BytesReader(text.encode(codec)))
    assert found.reader.read(0, found.reader.size) == text.encode()


@given(st.binary() | st.builds(lambda head, rest: head + rest, st.sampled_from(
    [compress(b"some text " * 20)[:12] for compress in COMPRESS.values()] + [b"\xff\xfe", b"BZh9", b"PK\x03\x04", b"ustar"]
), st.binary()))  # fmt: skip
def test_any_bytes_are_text_or_no_text(data: bytes):
    try:
        found = decode(BytesReader(data))
    except NotText:
        return
    text = found.reader.read(0, found.reader.size)
    if found.decoding.formats:
        text.decode(errors="replace" if any("not valid UTF-8" in each for each in found.decoding.remarks) else "strict")
        again = redecode(BytesReader(data), found.decoding.formats)
        assert again.read(0, again.size) == text
    else:
        assert text == data


@pytest.mark.parametrize("codec", ["latin-1", "cp1251", "shift_jis", "gb18030"])
@given(text=st.text(st.sampled_from("abcdefgh \n")).filter(bool))
def test_ascii_is_ascii_in_every_encoding(codec: str, text: str):
    assert decode(BytesReader(text.encode(codec))).decoding.formats == ()
