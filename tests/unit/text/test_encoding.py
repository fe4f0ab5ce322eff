"""Bytes as text: every byte keeps its place."""

import pytest

from overspill.text import encoding


@pytest.mark.parametrize(
    ("data", "decoded"),
    [
        (b"plain", "plain"),
        ("€ 😀".encode(), "€ 😀"),
        (b"a\xffb", "a\ufffdb"),
        (b"\xe2\x82", "\ufffd\ufffd"),
        (b"a\xed\xa0\x80b", "a\ud800b"),
        (b"\x80\x80", "\ufffd\ufffd"),
    ],
)
def test_decoding_gives_one_character_for_each_unit(data: bytes, decoded: str):
    assert encoding.decode(data) == decoded


def test_a_lone_surrogate_survives_the_round_trip():
    assert encoding.decode(encoding.encode("x\ud800y\udfffz")) == "x\ud800y\udfffz"


def test_a_model_never_sees_a_lone_surrogate():
    assert encoding.clean("x\ud800y") == "x\ufffdy"
    same = "naïve"
    assert encoding.clean(same) is same


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        (b"", 0),
        (b"ab", 2),
        ("a€".encode(), 4),
        ("a€".encode()[:3], 1),
        ("😀".encode()[:3], 0),
        ("😀".encode(), 4),
        (b"\x80" * 5, 5),
    ],
)
def test_whole_stops_before_an_unfinished_character(data: bytes, whole: int):
    assert encoding.complete_length(data) == whole


@pytest.mark.parametrize(("data", "readable"), [(b"", True), (b"abc\n", True), (b"a\0b", False), (b"\xff\xd8\xff", False)])
def test_text_is_what_a_model_could_read(data: bytes, readable: bool):
    assert encoding.is_text(data) is readable
