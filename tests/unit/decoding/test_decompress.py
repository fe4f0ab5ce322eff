"""Compressed bytes are read up to the end, or to where they break, and never further than the limits."""

from __future__ import annotations

import pytest
from compressed import COMPRESS, make_xz_with_dictionary, make_zstandard_with_dictionary, make_zstandard_with_window, nest

from overspill.decoding import Decoded, decode
from overspill.decoding.limits import Limits
from overspill.errors import NotText
from overspill.store.readers import BytesReader

TEXT = "".join(f"INFO Schritt {number} für Müller erledigt\n" for number in range(10_000)).encode()
formats = pytest.mark.parametrize("name", COMPRESS)


def open_bytes(data: bytes, limits: Limits = Limits()) -> Decoded:  # noqa: B008
    return decode(BytesReader(data), limits)


def read(decoded: Decoded) -> bytes:
    return decoded.reader.read(0, decoded.reader.size)


@formats
@pytest.mark.parametrize("size", [0, 1, 100, len(TEXT)])
def test_every_byte_comes_out(name: str, size: int):
    found = open_bytes(COMPRESS[name](TEXT[:size]))
    assert read(found) == TEXT[:size]
    assert (found.decoding.formats, found.decoding.bytes, found.decoding.remarks) == ((name,), size, ())


@formats
def test_streams_in_a_row_are_one_text(name: str):
    parts = [COMPRESS[name](line) for line in TEXT[:3000].splitlines(keepends=True)]
    found = open_bytes(b"".join(parts))
    assert (read(found), found.decoding.remarks) == (TEXT[:3000], ())


def test_zeros_after_the_end_are_padding():
    found = open_bytes(COMPRESS["gzip"](b"one\n") + bytes(100_000) + COMPRESS["gzip"](b"two\n") + bytes(512))
    assert (read(found), found.decoding.remarks) == (b"one\ntwo\n", ())


@formats
def test_what_follows_the_end_is_counted_and_not_read(name: str):
    found = open_bytes(COMPRESS[name](TEXT) + b"something else")
    assert read(found) == TEXT
    assert found.decoding.remarks == (f"14 bytes after the end of the {name} data were not read.",)


@formats
def test_of_an_incomplete_file_what_there_is_is_read(name: str):
    packed = COMPRESS[name](TEXT)
    found = open_bytes(packed[: -len(packed) // 4] if name != "bzip2" else packed[:-5])
    assert found.reader.size > 0
    assert TEXT.startswith(read(found))
    assert found.decoding.remarks == (
        f"Decompressing {name} stopped after {found.reader.size:,} bytes: the data is incomplete. What follows was not searched.",
    )


@formats
def test_of_a_damaged_file_what_is_before_the_damage_is_read(name: str):
    packed = bytearray(COMPRESS[name](TEXT))
    packed[-6] ^= 0xFF  # in the checksum, the end mark or the last block
    found = open_bytes(bytes(packed))
    assert found.reader.size > 0.9 * len(TEXT) if name != "Zstandard" else found.reader.size
    assert TEXT.startswith(read(found))
    (remark,) = found.decoding.remarks
    assert remark == (
        f"Decompressing {name} stopped after {found.reader.size:,} bytes: the data is damaged. What follows was not searched."
    )


@formats
def test_a_file_of_which_nothing_can_be_read_is_no_text(name: str):
    head = COMPRESS[name](TEXT)[:16]
    with pytest.raises(NotText) as caught:
        open_bytes(head + b"\xff" * 64 if name in ("gzip", "xz") else head)
    assert f"{name} data that cannot be decompressed: the data " in str(caught.value)
    assert str(caught.value).endswith(". It was not searched.")


@formats
@pytest.mark.slow
def test_a_bomb_stops_at_the_ratio(name: str):
    """Each of them has 20 MB in a few kilobytes."""
    found = open_bytes(COMPRESS[name](b"a" * 20_000_000))
    assert Limits().unchecked_ratio_bytes < found.reader.size < 1.1 * Limits().unchecked_ratio_bytes
    (remark,) = found.decoding.remarks
    assert remark.endswith(
        f"it is more than {Limits().ratio} times as large as what it is compressed to. What follows was not searched."
    )


@formats
def test_nothing_gets_larger_than_the_limit(name: str):
    found = open_bytes(COMPRESS[name](TEXT), Limits(bytes=100_000))
    assert read(found) == TEXT[:100_000]
    assert found.decoding.remarks == (
        f"Decompressing {name} stopped after 100,000 bytes: no more than 100 KB are decoded. What follows was not searched.",
    )


@formats
def test_decompressing_stops_in_time(name: str):
    packed = COMPRESS[name](TEXT)
    open_bytes(packed)  # importing what decompresses takes time too
    found = open_bytes(packed * 200, Limits(seconds=0.01))
    assert 0 < found.reader.size < 200 * len(TEXT)
    assert found.decoding.remarks[0].endswith("it took more than 0.01 seconds. What follows was not searched.")


def test_layers_are_taken_off_up_to_a_depth():
    found = open_bytes(nest(4, TEXT))
    assert (read(found), found.decoding.formats) == (TEXT, ("gzip",) * 4)
    with pytest.raises(NotText) as caught:
        open_bytes(nest(5, TEXT))
    assert str(caught.value) == (
        "The stored output is compressed more than 4 times (gzip inside gzip inside gzip inside gzip). It was not searched."
    )


def test_a_bomb_inside_a_bomb_stops_as_well():
    found = open_bytes(nest(3, b"a" * 20_000_000))
    assert found.reader.size < 1.1 * Limits().unchecked_ratio_bytes
    assert "times as large" in found.decoding.remarks[0]


def test_an_incomplete_layer_is_named_and_not_what_it_breaks():
    found = open_bytes(COMPRESS["xz"](COMPRESS["gzip"](TEXT)[:-4000]))
    assert found.decoding.formats == ("xz", "gzip")
    assert [remark.split(" stopped")[0] for remark in found.decoding.remarks] == ["Decompressing gzip"]


@pytest.mark.parametrize(
    ("name", "packed"),
    [("Zstandard", make_zstandard_with_window(30, b"a" * 5000)), ("xz", make_xz_with_dictionary(40, b"a" * 5000))],
    ids=["Zstandard", "xz"],
)
def test_a_file_that_asks_for_much_memory_gets_none(name: str, packed: bytes):
    with pytest.raises(NotText) as caught:
        open_bytes(packed)
    assert str(caught.value) == (
        f"The stored output is {name} data that cannot be decompressed: it takes more than 134.2 MB of memory. "
        "It was not searched."
    )


def test_a_file_that_needs_a_dictionary_says_so():
    with pytest.raises(NotText, match="cannot be decompressed: it needs a dictionary that is not in it"):
        open_bytes(make_zstandard_with_dictionary(TEXT[:1000]))


def test_a_file_of_the_strongest_presets_is_read():
    found = open_bytes(make_zstandard_with_window(27, TEXT))
    assert read(found) == TEXT


def test_many_small_streams_are_read():
    found = open_bytes(COMPRESS["gzip"](b"x\n") * 20_000)
    assert found.reader.size == 40_000


def test_bzip2_is_not_found_in_a_text_about_it():
    found = open_bytes(b"BZh91AY&SY is how bzip2 files begin.\n")
    assert (found.decoding.formats, found.reader.size) == ((), 37)
