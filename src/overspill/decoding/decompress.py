"""Decompresses step by step, within limits, and says where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from overspill.decoding.formats import Compression, find_compression
from overspill.decoding.limits import MAX_WINDOW_BYTES, MAX_WINDOW_LOG, Allowance, Layer
from overspill.errors import NotText
from overspill.store.protocols import Reader
from overspill.store.readers import ReaderFile, Sink
from overspill.text.humanize import format_size

_READ_BYTES = 64 * 1024
_MAGIC_BYTES = 16  # more than any format needs to be recognised
_MIN_STEP_BYTES = 64
_MAX_STEP_BYTES = 256 * 1024
_STEP_SHARE = 64
"""A failed step loses its bytes, so each step is at most this fraction of what is already decoded."""


class _Stream(Protocol):
    """One compressed stream, with the interface of `bz2`, `lzma` and `compression.zstd`. A file may have several in a row."""

    def decompress(self, data: bytes, max_length: int) -> bytes: ...
    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...


def decompress(reader: Reader, name: Compression, allowance: Allowance, inside: str) -> Layer:
    """The decompressed content. Blocks. Raises NotText if nothing can be decompressed."""
    source, rest = ReaderFile(reader), b""
    open_stream, errors = _open_format(name)
    with Sink() as sink:
        while True:
            stream = open_stream()
            try:
                why = _read(stream, rest, source, sink, allowance)
            except errors as error:
                why = _explain(error)
            if why and not sink.size:
                raise NotText(f"{name} data{inside} that cannot be decompressed: {why}")
            if why:
                stopped = f"Decompressing {name} stopped after {sink.size:,} bytes: {why}. What follows was not searched."
                return Layer(sink.reader(), stopped)
            rest = stream.unused_data.lstrip(b"\0")  # padding from tapes and `xz`
            while len(rest) < _MAGIC_BYTES and (data := source.read(_READ_BYTES)):
                rest = (rest + data).lstrip(b"\0")
            if not rest:
                return Layer(sink.reader())
            if find_compression(rest) != name:
                left = len(rest) + reader.size - source.at
                return Layer(sink.reader(), f"{left:,} bytes after the end of the {name} data were not read.")


def _read(stream: _Stream, data: bytes, source: ReaderFile, sink: Sink, allowance: Allowance) -> str:
    """Reads a stream to its end. Returns the reason if it stopped earlier."""
    data = data or source.read(_READ_BYTES)
    while not stream.eof:
        if excess := allowance.find_excess(source.at, sink.size):
            return excess
        if stream.needs_input and not data:
            data = source.read(_READ_BYTES)
        step = min(max(sink.size // _STEP_SHARE, _MIN_STEP_BYTES), _MAX_STEP_BYTES)
        decoded = stream.decompress(data, min(step, allowance.limits.bytes - sink.size))
        if not (data or decoded or stream.eof) and stream.needs_input:
            return "the data is incomplete"
        sink.add(decoded)
        data = b""
    return ""


def _explain(error: Exception) -> str:
    words = str(error)
    if "emory" in words or "indow" in words:
        return f"it takes more than {format_size(MAX_WINDOW_BYTES)} of memory"
    return "it needs a dictionary that is not in it" if "ictionary" in words else "the data is damaged"


class _GzipStream:
    """Unlike the others, `zlib` keeps unused input separately."""

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


def _open_format(name: Compression) -> tuple[Callable[[], _Stream], tuple[type[Exception], ...]]:
    """The function that opens a stream, and the errors that a damaged one raises."""
    if name == "gzip":
        zlib = import_module("zlib")
        return lambda: _GzipStream(zlib), (zlib.error,)
    if name == "bzip2":
        return import_module("bz2").BZ2Decompressor, (OSError, ValueError)
    if name == "xz":
        lzma = import_module("lzma")
        return lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, MAX_WINDOW_BYTES), (lzma.LZMAError,)
    try:
        zstd: Any = import_module("compression.zstd")  # since Python 3.14
    except ImportError:
        zstd = import_module("backports.zstd")
    options = {zstd.DecompressionParameter.window_log_max: MAX_WINDOW_LOG}
    return lambda: zstd.ZstdDecompressor(options=options), (zstd.ZstdError,)
