"""Which encoding a text is in: known by a mark, seen by its pattern, or guessed and then named."""

from __future__ import annotations

import random

import pytest
from compressed import COMPRESS

from overspill.decoding import Decoded, decode
from overspill.decoding.limits import Limits
from overspill.errors import NotText
from overspill.store.readers import BytesReader

LOG = "".join(f"2026-11-15 INFO request {number} served\n" for number in range(2000))
ENGLISH = "ERROR step 3000 failed: no space left on device\n" * 3
RUSSIAN = "Ошибка подключения к серверу базы данных: отказано в доступе\n" * 3
JAPANESE = "データベースへの接続に失敗しました。再試行してください。\n" * 3
GERMAN = "FEHLER: kein Platz für Müller übrig, Straße gesperrt\n"


def open_bytes(data: bytes, limits: Limits = Limits()) -> Decoded:  # noqa: B008
    return decode(BytesReader(data), limits)


def read(decoded: Decoded) -> str:
    return decoded.reader.read(0, decoded.reader.size).decode()


@pytest.mark.parametrize("text", [ENGLISH, RUSSIAN, JAPANESE, LOG + GERMAN, "hi\n", "x"])
@pytest.mark.parametrize("name", ["UTF-16LE", "UTF-16BE", "UTF-32LE", "UTF-32BE"])
@pytest.mark.parametrize("marked", [True, False])
def test_utf_16_and_utf_32_are_read_with_and_without_a_mark(text: str, name: str, marked: bool):
    found = open_bytes((("\ufeff" if marked else "") + text).encode(name))
    assert (found.decoding.formats, found.decoding.guessed, found.decoding.remarks) == ((name,), not marked, ())
    assert read(found) == text
    assert found.decoding.bytes == len(text.encode())


@pytest.mark.parametrize(
    ("text", "codec", "name"),
    [
        (GERMAN, "latin-1", "windows-1252"),
        (LOG + GERMAN, "latin-1", "windows-1252"),
        (LOG * 20 + "Gesamt: 12 € für Müller\n", "cp1252", "windows-1252"),
        ("La contraseña del señor Núñez caducó ayer.\n", "latin-1", "windows-1252"),
        ("It’s “quoted” – and the café’s closed…\n", "cp1252", "windows-1252"),
        ("Chyba připojení k databázi: přístup odepřen, zkuste to později.\n" * 3, "cp1250", "windows-1250"),
        ("Veritabanına bağlanılamadı: erişim reddedildi, lütfen şifreyi giriniz\n" * 3, "cp1254", "windows-1254"),
        ("Σφάλμα σύνδεσης με τη βάση δεδομένων\n" * 3, "cp1253", "windows-1253"),
        (RUSSIAN, "cp1251", "windows-1251"),
        (RUSSIAN, "koi8-r", "KOI8-R"),
        (RUSSIAN, "cp866", "IBM866"),
        (JAPANESE, "shift_jis", "Shift_JIS"),
        (JAPANESE, "euc_jp", "EUC-JP"),
        ("数据库连接失败,请稍后重试。错误代码\n" * 3, "gb18030", "GB18030"),
        ("資料庫連線失敗,請稍後重試。錯誤代碼\n" * 3, "big5", "Big5"),
        ("데이터베이스 연결에 실패했습니다. 다시 시도하십시오.\n" * 3, "euc_kr", "EUC-KR"),
    ],
)
def test_older_encodings_are_guessed_and_named(text: str, codec: str, name: str):
    found = open_bytes(text.encode(codec))
    assert (found.decoding.formats, found.decoding.guessed, found.decoding.remarks) == ((name,), True, ())
    assert read(found) == text


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        GERMAN.encode(),
        "\ufeffwith a mark".encode(),
        "\ud800 half a pair".encode("utf-8", "surrogatepass"),
        b"BZh91AY&SY is how bzip2 files begin\n",
        b"GIF89a is how GIF images begin\n",
        b"ID3 is how MP3 recordings begin\n",
        b"\x7fELF and PK\x03\x04 are others\n",
        b"see %PDF-1.7 for the header\n",
        b"+AOk- is UTF-7, and ~{<:Ky2;~} is HZ",
        "日本".encode("iso2022_jp"),
        b"\x1b[31mcoloured\x1b[0m",
        b"a log with zeros after a crash\n" * 50 + bytes(4096) + b"restarted\n",
        b"./one\0./two\0./three\0",
        b"ab\0cd\0ef\0gh\0" * 100,
        b"\x01\x02\x03\x04" * 100,
        RUSSIAN.encode()[:-3],  # cut inside a character
        b"x" * ((1 << 20) - 1) + GERMAN.encode(),
        b"x" * ((1 << 20) - 1) + "ü".encode() + b"\0",
    ],
    ids=lambda data: str(data[:20]),
)
def test_valid_utf8_is_never_taken_for_anything_else(data: bytes):
    reader = BytesReader(data)
    found = decode(reader)
    assert found.reader is reader
    assert (found.decoding.formats, found.decoding.remarks) == ((), ())


def test_a_byte_of_another_encoding_is_seen_wherever_it_is():
    text = "x\n" * (3 << 20) + GERMAN
    found = open_bytes(text.encode("latin-1"))
    assert found.decoding.formats == ("windows-1252",)
    assert read(found).endswith(GERMAN)


@pytest.mark.parametrize("text", ["Das kostet fünf Pfund, sagt der Müller. Ende: ü", "un café"])
def test_a_letter_of_another_encoding_at_the_end_is_no_cut_off_character(text: str):
    found = open_bytes(text.encode("latin-1"))
    assert (found.decoding.formats, read(found)) == (("windows-1252",), text)


@pytest.mark.parametrize("damage", [b"\xff", b"\xc3", b"\xe4"])
def test_utf8_with_a_damaged_byte_stays_utf8_and_says_so(damage: bytes):
    data = RUSSIAN.encode() + damage + b" and more\n" + RUSSIAN.encode()
    reader = BytesReader(data)
    found = decode(reader)
    assert found.reader is reader
    assert found.decoding.remarks == ("It is not valid UTF-8 throughout. Each invalid byte reads as U+FFFD.",)


def test_characters_that_cannot_be_decoded_are_counted():
    data = ENGLISH.encode("utf-16") + b"\x00\xdc" + "end".encode("utf-16-le")
    found = open_bytes(data)
    assert read(found) == ENGLISH + "\ufffdend"
    assert found.decoding.remarks == ("1 character could not be decoded as UTF-16LE. U+FFFD marks the place.",)


def test_decoding_stops_at_the_limit():
    found = open_bytes(("x" * (8 << 20)).encode("utf-16"), Limits(bytes=1 << 20))
    assert found.reader.size < 3 << 20
    assert found.decoding.remarks[0].endswith("no more than 1.0 MB are decoded. What follows was not searched.")


def test_compression_and_encoding_go_together():
    for name, compress in COMPRESS.items():
        found = open_bytes(compress(RUSSIAN.encode("utf-16")))
        assert (found.decoding.formats, read(found)) == ((name, "UTF-16LE"), RUSSIAN)


@pytest.mark.parametrize(
    "data",
    [bytes(range(256)) * 100, bytes(range(128, 256)) * 40, random.Random(7).randbytes(100_000)],  # noqa: S311
    ids=["every byte", "high bytes", "random"],
)
def test_what_is_no_text_is_not_guessed_to_be_one(data: bytes):
    with pytest.raises(NotText, match=r"^The stored output is data in an unknown format\. It was not searched\.$"):
        open_bytes(data)
