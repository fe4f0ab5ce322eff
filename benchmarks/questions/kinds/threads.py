"""Chat histories and threads: questions that people asked in them or about them, and the words that answered.

Mailing lists by year, an IRC channel on ten days, transcripts of a committee's meetings, and TV dialogues. Questions about the
meetings and the dialogues are those of their data sets. Questions of the lists and the channel are told in other words, because
the words they were asked in are in the document. A quote in `picks/threads.jsonl` marks the answer.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections import defaultdict
from collections.abc import Callable
from importlib import import_module
from typing import Any

from benchmarks.questions.picks import read_picks
from benchmarks.questions.question import Entry, Question
from benchmarks.questions.sources import Repository, SourceMissing, Sources

LISTS = Repository("r-mailing-lists/data", "95bebefea52272ad51c84b206b9c483970ffee61", "MIT")
IRC = Repository("jkkummerfeld/irc-disentanglement", "82ed04f9627a45d0d6f2ec3c8683c88eb408a0d5", "CC-BY-4.0")
MEETINGS = Repository("Yale-LILY/QMSum", "83d7768c1f2b4dfeb091385d3dc7e239b8e5bb7e", "MIT")
DIALOGUES = Repository("emorynlp/FriendsQA", "9ce6c98a6acf13c87d96b6811e4409b5de43bdfe", "Apache-2.0")


def build(sources: Sources) -> list[Entry]:
    readers: dict[str, tuple[Repository, Callable[[Sources, str], str]]] = {
        "list": (LISTS, read_list),
        "irc": (IRC, read_channel),
        "meeting": (MEETINGS, read_meeting),
        "dialogue": (DIALOGUES, read_dialogue),
    }
    texts: dict[tuple[str, str], str] = {}
    entries: list[Entry] = []
    for pick in read_picks("threads"):
        repository, read = readers[pick["from"]]
        key = (pick["from"], pick["document"])
        if key not in texts:
            texts[key] = read(sources, pick["document"])
        entries.append(as_entry(pick, repository, texts[key]))
    return entries


def as_entry(pick: dict[str, Any], repository: Repository, text: str) -> Entry:
    name = f"{pick['from']}-{re.sub(r'[^0-9A-Za-z]+', '-', pick['document'])}"
    is_list = pick["from"] == "list"
    question = Question(
        id=f"threads-{name}-{hashlib.sha256(pick['question'].encode()).hexdigest()[:8]}",
        kind="threads",
        source=f"{repository.name} {pick['document'].rpartition(' ')[0]}" if is_list else repository.name,
        licence=repository.licence,
        doc=f"docs/threads-{name}.txt",
        question=pick["question"],
        answers=tuple(found for quote in pick["quotes"] if (found := find_quote(text, quote))),
        tool_name="read_thread",
        note=pick.get("note", ""),
    )
    return Entry(question, text)


def find_quote(text: str, quote: str) -> str | None:
    """The quote as the text breaks its lines."""
    found = re.search(r"\s+".join(map(re.escape, quote.split())), text)
    return found.group() if found else None


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
