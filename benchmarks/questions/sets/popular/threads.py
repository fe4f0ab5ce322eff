"""Mailing lists by year, an IRC channel on ten days, transcripts of a committee's meetings, and TV dialogues.

Questions about the meetings and the dialogues are those of their data sets. Questions from the lists and the channel are
rephrased, because their original words are in the document.
"""

from __future__ import annotations

import io
import json
from collections import defaultdict
from importlib import import_module
from typing import Any

from benchmarks.questions.material import Threads
from benchmarks.questions.sources import Repository, SourceMissing, Sources

LISTS = Repository("r-mailing-lists/data", "95bebefea52272ad51c84b206b9c483970ffee61", "MIT")
IRC = Repository("jkkummerfeld/irc-disentanglement", "82ed04f9627a45d0d6f2ec3c8683c88eb408a0d5", "CC-BY-4.0")
MEETINGS = Repository("Yale-LILY/QMSum", "83d7768c1f2b4dfeb091385d3dc7e239b8e5bb7e", "MIT")
DIALOGUES = Repository("emorynlp/FriendsQA", "9ce6c98a6acf13c87d96b6811e4409b5de43bdfe", "Apache-2.0")


def read_list(sources: Sources, document: str) -> str:
    """The threads of a list in a year, in the order in which they began."""
    try:
        parquet: Any = import_module("pyarrow.parquet")
    except ImportError:
        raise SourceMissing("The mailing lists are Parquet files. Install pyarrow to read them.") from None
    name, _, time = document.rpartition(" ")
    packed = sources.git(LISTS).read_bytes(f"data/messages/{name}.parquet")
    rows: list[dict[str, Any]] = parquet.read_table(io.BytesIO(packed)).to_pylist()
    threads: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: (str(row["date"]), row["id"])):
        if str(row["month"]).startswith(time):
            threads[row["thread_id"]].append(row)
    return "\n".join(f"Thread: {thread[0]['subject']}\n\n" + "\n".join(map(write_message, thread)) for thread in threads.values())


def write_message(row: dict[str, Any]) -> str:
    return f"{row['from_name']}, {str(row['date'])[:16]}:\n{row['body']}\n"


def read_channel(sources: Sources, document: str) -> str:
    git = sources.git(IRC)
    return "".join(git.read(path) for path in git.list(f"data/{document}") if path.endswith(".raw.txt"))


def read_meeting(sources: Sources, document: str) -> str:
    git = sources.git(MEETINGS)
    meetings = [json.loads(git.read(path)) for path in git.list("data/ALL/test") if f"/{document}_" in path]
    turns = (turn for meeting in meetings for turn in meeting["meeting_transcripts"])
    return "".join(f"{turn['speaker']}: {turn['content']}\n" for turn in turns)


def read_dialogue(sources: Sources, document: str) -> str:
    scenes: list[dict[str, Any]] = json.loads(sources.git(DIALOGUES).read(f"dat/friendsqa_{document}.json"))["data"]
    parts: list[str] = []
    for scene in sorted(scenes, key=lambda scene: scene["title"]):
        for paragraph in scene["paragraphs"]:
            lines = (f"{', '.join(turn['speakers'])}: {turn['utterance']}\n" for turn in paragraph["utterances:"])
            parts.append("".join(lines))
    return "\n".join(parts)


THREADS = {
    "list": Threads(lambda _: LISTS, read_list, is_named_by_list=True),
    "irc": Threads(lambda _: IRC, read_channel),
    "meeting": Threads(lambda _: MEETINGS, read_meeting),
    "dialogue": Threads(lambda _: DIALOGUES, read_dialogue),
}
