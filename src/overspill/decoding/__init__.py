"""Reads bytes as text: decompresses them, converts other encodings, and reads PDFs. Does not change the stored bytes.

Recognises formats by their bytes, never by a name. Valid UTF-8 is never mistaken for anything else.
"""

from overspill.decoding.decode import Decoded, decode, describe, redecode
from overspill.decoding.formats import HEAD_BYTES

__all__ = ["HEAD_BYTES", "Decoded", "decode", "describe", "redecode"]
