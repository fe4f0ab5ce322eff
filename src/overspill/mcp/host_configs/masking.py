"""Entries of a client's file as they are shown: without what may be a secret."""

from __future__ import annotations

import re
from itertools import pairwise

from overspill.mcp.host_configs.entries import may_hold_secret
from overspill.text import jsonc
from overspill.text.regex import regex

HIDDEN = '"…"'
_SECRET_WORDS = regex(r"(?i)token|secret|passw|credential|api.?key|auth|bearer|header")


def mask(entry: str) -> str:
    """Hide the values of `env` and `headers`, and URLs and arguments that may hold a secret."""
    node = jsonc.scan(entry, "the entry")
    parts = [part for key in ("env", "headers") if (part := node.get(key))]
    hidden = [value for part in parts for value in part.children or (part,) if value.raw != "{}"]
    url, args = node.get("url"), node.get("args")
    hidden += [url] if url and may_hold_secret(str(url.value)) else []
    words = args.children if args else ()
    texts = ["", *(str(word.value) for word in words)]
    hidden += [word for word, (before, text) in zip(words, pairwise(texts), strict=True) if _is_secret(before, text)]
    return jsonc.apply_edits(entry, [jsonc.replace(value, HIDDEN) for value in hidden])


def _is_secret(before: str, word: str) -> bool:
    if "://" in word and may_hold_secret(word):
        return True
    if before in ("--header-env", "--url-env"):
        return False
    is_announced = bool(before.startswith("-") and _SECRET_WORDS.search(before) and not word.startswith("-"))
    return is_announced or bool(_SECRET_WORDS.search(word) and re.search(r"[=: ]", word))
