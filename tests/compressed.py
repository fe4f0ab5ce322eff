"""Compressed files for tests, sound and hostile."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from typing import Any

try:
    from compression import zstd  # pyright: ignore[reportMissingImports]
except ImportError:
    from backports import zstd

COMPRESS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lambda data: lzma.compress(data, preset=1),  # the default takes a second for what tests need
    "Zstandard": zstd.compress,
}


def make_zstandard_with_window(log: int, data: bytes) -> bytes:
    """A frame that asks its reader for 2**log bytes of memory."""
    library: Any = zstd
    compressor = library.ZstdCompressor(options={library.CompressionParameter.window_log: log})
    return compressor.compress(data) + compressor.flush()


def make_zstandard_with_dictionary(data: bytes) -> bytes:
    library: Any = zstd
    dictionary = library.train_dict([b"request %d served by worker %d" % (n, n % 7) for n in range(2000)], 10_000)
    return library.compress(data, zstd_dict=dictionary)


def make_xz_with_dictionary(code: int, data: bytes) -> bytes:
    """The header of the first block asks for a dictionary of 4 GiB if the code is 40. Encoding with one would take 40 GiB."""
    made = bytearray(lzma.compress(data))
    start, size = 12, (made[12] + 1) * 4
    assert made[start + 2 : start + 4] == b"\x21\x01"  # LZMA2, with one byte of properties
    made[start + 4] = code
    made[start + size - 4 : start + size] = zlib.crc32(made[start : start + size - 4]).to_bytes(4, "little")
    return bytes(made)


def nest(times: int, data: bytes) -> bytes:
    for _ in range(times):
        data = gzip.compress(data)
    return data
