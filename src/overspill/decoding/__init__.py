"""Bytes as text: decompressed, from another encoding, or from a PDF. A view: what is stored stays as it is.

What something is shows in its bytes, never in its name. Text that is valid UTF-8 is never taken for anything else.
"""

from overspill.decoding.decode import Decoded, decode, describe, redecode
from overspill.decoding.formats import HEAD_BYTES

__all__ = ["HEAD_BYTES", "Decoded", "decode", "describe", "redecode"]
