"""Whether static word vectors would help the built-in engine on running text: prose, mail threads and chats.

    python benchmarks/engine_semantic.py SET [--half seen|unseen] [--weights 0,0.25,0.5,1]

Needs `wordllama`, which Overspill does not. Each record of running text gets, beside its score, the best score times a weight
times how near its vector is to that of the question. Only documents of running text are asked about.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import wordllama
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from benchmarks.engine_recall import BUDGETS, Question, holds, mean, run
from overspill.lexical.boost import Boost, Signal
from overspill.lexical.index import Index, build
from overspill.lexical.query import Query
from overspill.lexical.rank import Ranking
from overspill.lexical.render import render
from overspill.lexical.signals import SIGNALS

PACKAGE = Path(wordllama.__file__).parent
WEIGHTS = next(iter(load_file(str(PACKAGE / "weights" / "l2_supercat_256.safetensors")).values()))
TOKENIZER = Tokenizer.from_file(str(PACKAGE / "tokenizers" / "l2_supercat_tokenizer_config.json"))
MAX_RECORD_BYTES = 2_000


def embed(texts: list[str]) -> Any:
    """One unit vector a text: the mean of those of its tokens."""
    vectors = np.zeros((len(texts), WEIGHTS.shape[1]), dtype=np.float32)
    for number, encoding in enumerate(TOKENIZER.encode_batch(texts, add_special_tokens=False)):
        if encoding.ids:
            vectors[number] = WEIGHTS[encoding.ids].mean(axis=0)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths == 0, 1, lengths)


@lru_cache(maxsize=1)
def embed_records(index: Index) -> Any:
    starts, ends = index.outline.starts, index.outline.ends
    pairs = zip(starts, ends, strict=True)
    return embed([render(index, start, min(end, start + MAX_RECORD_BYTES)) for start, end in pairs])


def is_running_text(index: Index) -> bool:
    return index.traits.has_context and not index.traits.is_markup and not index.traits.is_code


def boost_by_vectors(weight: float) -> Signal:
    def boost(index: Index, query: Query, ranking: Ranking) -> Boost | None:
        if not weight or not is_running_text(index):
            return None
        nearness = embed_records(index) @ embed([query.text])[0]
        top = max(ranking.scores.values(), default=1.0)
        least = float(np.sort(nearness)[-min(len(nearness), 200)])
        scores = dict(ranking.scores)
        for record in np.nonzero(nearness >= least)[0].tolist():
            scores[record] = scores.get(record, 0.0) + weight * top * float(nearness[record])
        return Boost(raised=scores)

    return boost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="SET", type=Path)
    parser.add_argument("--half", choices=["seen", "unseen"], default="seen")
    parser.add_argument("--weights", default="0,0.25,0.5,1")
    given = parser.parse_args()
    rows = [json.loads(line) for line in (given.folder / "questions.jsonl").open(encoding="utf-8")]
    asked: list[Question] = [row for row in rows if row.get("half", given.half) == given.half]
    kinds = {doc: build((given.folder / doc).read_bytes()) for doc in sorted({row["doc"] for row in asked})}
    asked = [row for row in asked if is_running_text(kinds[row["doc"]])]
    print("| kind | n | weight | " + " | ".join(map(str, BUDGETS)) + " | seconds |\n|---|---|---|" + "---|" * (len(BUDGETS) + 1))
    for kind in sorted({row["kind"] for row in asked}):
        chosen = [row for row in asked if row["kind"] == kind]
        for weight in map(float, given.weights.split(",")):
            signals = (boost_by_vectors(weight), *SIGNALS)
            start = time.process_time()
            results = run(given.folder, chosen, BUDGETS, holds, signals)
            cells = (f"{mean(each.recalled for each in results if each.budget == budget):.1f}" for budget in BUDGETS)
            took = time.process_time() - start
            print(f"| {kind} | {len(chosen)} | {weight:g} | " + " | ".join(cells) + f" | {took:.0f} |", flush=True)


if __name__ == "__main__":
    main()
