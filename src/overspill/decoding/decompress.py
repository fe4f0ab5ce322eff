"""Decompress step by step, within limits, and say where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple, Protocol, cast

from msgspec import Struct

from overspill.decoding.formats import Compression, find_compression
from overspill.decoding.limits import MAX_WINDOW_BYTES, MAX_WINDOW_LOG, Allowance, Sink
from overspill.store.protocols import Reader
from overspill.store.readers import BytesReader
from overspill.text.humanize import format_size

_INPUT_BYTES = 64 * 1024
_MAGIC_BYTES = 16  # more than any format needs to be recognised
_MIN_STEP_BYTES = 64
_MAX_STEP_BYTES = 256 * 1024
_STEP_SHARE = 64
"""A step that fails loses its bytes, so each is at most this fraction of what is already decoded."""


class Decompressed(Struct, frozen=True):
    reader: BytesReader
    stopped: str = ""
    """Where and why; empty if everything was decompressed."""
    why: str = ""
    """The reason alone, as the end of a sentence."""


class _Stream(Protocol):
    """One compressed stream, as `bz2`, `lzma` and `compression.zstd` have it. A file may have several in a row."""

    def decompress(self, data: bytes, max_length: int) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...


class _Format(NamedTuple):
    open: Callable[[], _Stream]
    errors: tuple[type[Exception], ...]


def decompress(reader: Reader, compression: Compression, allowance: Allowance) -> Decompressed:
    """Blocks."""
    with Sink() as sink:
        work = _Decompression(reader, compression, allowance, sink)
        stopped = work.run()
        return Decompressed(sink.reader(), stopped, work.why)


class _Decompression:
    def __init__(self, reader: Reader, compression: Compression, allowance: Allowance, sink: Sink) -> None:
        self._reader = reader
        self._name = compression
        self._allowance = allowance
        self._sink = sink
        self._at = 0
        self.why = ""
        self._format = _FORMATS[compression]()

    def run(self) -> str:
        """Why it stopped before the end; empty if it did not."""
        rest = b""
        while True:
            stream = self._format.open()
            try:
                if stopped := self._read(stream, rest):
                    return stopped
            except self._format.errors as error:
                return self._describe_stop(_explain(error))
            rest = stream.unused_data.lstrip(b"\0")  # padding, as tapes and `xz` have it
            while len(rest) < _MAGIC_BYTES and (data := self._next()):
                rest = (rest + data).lstrip(b"\0")
            if not rest:
                return ""
            if find_compression(rest) != self._name:
                left = len(rest) + self._reader.size - self._at
                return f"{left:,} bytes after the end of the {self._name} data were not read."

    def _read(self, stream: _Stream, data: bytes) -> str:
        data = data or self._next()
        while not stream.eof:
            if excess := self._allowance.find_excess(self._at, self._sink.size):
                return self._describe_stop(excess)
            if stream.needs_input and not data:
                data = self._next()
            step = min(max(self._sink.size // _STEP_SHARE, _MIN_STEP_BYTES), _MAX_STEP_BYTES)
            decoded = stream.decompress(data, min(step, self._allowance.limits.bytes - self._sink.size))
            if not (data or decoded or stream.eof) and stream.needs_input:
                return self._describe_stop("the data is incomplete")
            self._sink.add(decoded)
            data = b""
        return ""

    def _next(self) -> bytes:
        data = self._reader.read(self._at, self._at + _INPUT_BYTES)
        self._at += len(data)
        return data

    def _describe_stop(self, why: str) -> str:
        self.why = why
        return f"Decompressing {self._name} stopped after {self._sink.size:,} bytes: {why}. What follows was not searched."


def _explain(error: Exception) -> str:
    words = str(error)
    if "emory" in words or "indow" in words:
        return f"it takes more than {format_size(MAX_WINDOW_BYTES)} of memory"
    return "it needs a dictionary that is not in it" if "ictionary" in words else "the data is damaged"


class _GzipStream:
    """`zlib` keeps input that it has not used yet apart, unlike the others."""

    def __init__(self, zlib: Any) -> None:
        self._stream = zlib.decompressobj(wbits=31)  # with the header and checksum of gzip

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._stream.decompress(self._stream.unconsumed_tail + data, max_length)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return not self._stream.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data


def _gzip() -> _Format:
    zlib = import_module("zlib")
    return _Format(lambda: _GzipStream(zlib), (zlib.error,))


def _bzip2() -> _Format:
    return _Format(import_module("bz2").BZ2Decompressor, (OSError, ValueError))


def _xz() -> _Format:
    lzma = import_module("lzma")
    return _Format(lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, MAX_WINDOW_BYTES), (lzma.LZMAError,))


def _zstandard() -> _Format:
    zstd = cast("Any", _import_zstandard())
    options = {zstd.DecompressionParameter.window_log_max: MAX_WINDOW_LOG}
    return _Format(lambda: zstd.ZstdDecompressor(options=options), (zstd.ZstdError,))


def _import_zstandard() -> object:
    try:
        return import_module("compression.zstd")  # since Python 3.14
    except ImportError:
        return import_module("backports.zstd")


_FORMATS: dict[Compression, Callable[[], _Format]] = {"gzip": _gzip, "bzip2": _bzip2, "xz": _xz, "Zstandard": _zstandard}
