"""`overspill extract` on files that are not plain text: it reads them or says why not, and never prints garbage."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Place
from compressed import COMPRESS
from pdfs import make_pdf

LOG = "".join(f"INFO step {i} done\n" for i in range(300)) + "ERROR step 300 failed: kein Platz für Müller übrig\n"
ANSWER = "ERROR step 300 failed: kein Platz für Müller übrig"
QUESTION = "why did step 300 fail"
WHERE = "Lines, positions and quotes refer to the decoded text."


def write(data: bytes, name: str = "app.log") -> str:
    """The name says nothing: what a file is shows in its bytes."""
    Path(name).write_bytes(data)
    return name


@pytest.mark.parametrize(
    ("data", "how"),
    [
        *[(compress(LOG.encode()), name) for name, compress in COMPRESS.items()],
        (LOG.encode("utf-16"), "UTF-16LE"),
        (LOG.encode("utf-16-be"), "UTF-16BE (a guess)"),
        (LOG.encode("utf-32"), "UTF-32LE"),
        (LOG.encode("latin-1"), "windows-1252 (a guess)"),
        (gzip.compress(LOG.encode("latin-1")), "gzip, then windows-1252 (a guess)"),
        (make_pdf(LOG), "PDF"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_is_decoded_and_says_how(place: Place, data: bytes, how: str):
    done = place.overspill("extract", QUESTION, write(data), "--max-tokens", "300")
    assert (done.code, done.err) == (0, f"overspill: Decoded from {how}. {WHERE}\n")
    assert ANSWER in done.out


def test_standard_input_is_decoded(place: Place):
    done = place.process("extract", QUESTION, input=gzip.compress(LOG.encode()), capture_output=True)
    assert (done.returncode, done.stderr.decode()) == (0, f"overspill: Decoded from gzip. {WHERE}\n")
    assert ANSWER in done.stdout.decode()


def test_json_says_how_the_text_was_decoded(place: Place):
    done = place.overspill("extract", QUESTION, write(gzip.compress(LOG.encode("utf-16"))), "--json")
    found = json.loads(done.out)
    assert found["decoding"] == {
        "formats": ["gzip", "UTF-16LE"], "guessed": False, "bytes": len(LOG.encode()), "remarks": [],
    }  # fmt: skip
    for excerpt in found["excerpts"]:
        assert LOG.encode()[excerpt["start_byte"] : excerpt["end_byte"]].decode() == excerpt["text"]
    assert json.loads(place.overspill("extract", QUESTION, write(LOG.encode()), "--json").out)["decoding"] is None


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"\x89PNG\r\n\x1a\n" + bytes(range(256)), "a PNG image. It was not searched."),
        (b"PK\x03\x04" + bytes(range(256)), "a ZIP archive. It was not searched. Unpack it and search the files in it."),
        (bytes(range(256)) * 9, "data in an unknown format. It was not searched."),
        (gzip.compress(b"\x7fELF" + bytes(range(256))), "an ELF program or library inside gzip. It was not searched."),
        (gzip.compress(LOG.encode())[:12], "gzip data that cannot be decompressed: the data is incomplete. "
         "It was not searched."),
    ],
    ids=["an image", "an archive", "unknown", "a program", "incomplete"],
)  # fmt: skip
@pytest.mark.parametrize("option", [(), ("--json",), ("--mode", "truncate")])
def test_what_is_not_text_ends_with_exit_code_2(place: Place, data: bytes, what: str, option: tuple[str, ...]):
    done = place.overspill("extract", "anything", write(data, "x.bin"), *option)
    assert done == (2, "", f"overspill: error: x.bin is {what}\n")


def test_standard_input_that_is_not_text_ends_with_exit_code_2(place: Place):
    done = place.process("extract", "anything", input=bytes(range(256)), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"overspill: error: The input is data in an unknown format. It was not searched.\n"


def test_where_decoding_stopped_is_a_warning_and_no_match_is_about_the_rest(place: Place):
    done = place.overspill("extract", "zebra crossing", write(gzip.compress(LOG.encode())[:-100], "a.gz"))
    assert (done.code, done.out) == (1, "")
    assert ": the data is incomplete. What follows was not searched.\n" in done.err
    assert "overspill: No match in the part of a.gz that was searched." in done.err


def test_without_the_package_a_pdf_names_the_extra_to_install(place: Place):
    done = place.without("pypdf", "extract", "anything", write(make_pdf("hello"), "a.pdf"))
    assert (done.code, done.out) == (2, "")
    assert done.err == (
        "overspill: error: This is a PDF, which was not searched. Reading it needs the package pypdf, which is not installed or "
        "too old. In a clone of Overspill: `pip install '.[pdf]'`.\n"
    )


@pytest.mark.slow
def test_nothing_is_left_behind(place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    done = place.process("extract", QUESTION, write(gzip.compress(LOG.encode() * 500)), "--max-tokens", "50", capture_output=True)
    assert done.returncode == 0
    assert list(temporary.iterdir()) == []


@pytest.mark.slow
def test_plain_text_loads_nothing_that_decodes(place: Place):
    watch = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"sys.argv = ['overspill', 'extract', {QUESTION!r}, {write(LOG.encode())!r}]\n"
        "from overspill.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", watch], capture_output=True, text=True, timeout=60, check=True)
    assert not set(done.stderr.split()) & {"charset_normalizer", "pypdf", "backports.zstd"}
