"""Chats of several months between two people, with questions that others asked about them, and issues of more standards."""

from __future__ import annotations

import io
import json
import zipfile
from typing import Any

from benchmarks.questions.conversations import list_turns, threads_of_chats, threads_of_issues
from benchmarks.questions.sources import Repository, Sources

CHATS = Repository("snap-research/locomo", "e76cdff4a04fce19090596d49862fe87a5c15aaa", "not stated")
ISSUES = {
    repository.name: repository
    for repository in (
        Repository("cfrg/draft-irtf-cfrg-hpke", "4f8b7e7ccf8a2933a7655cc4a69f75a8dbaa2958", "IETF Trust"),
        Repository("ietf-rats-wg/architecture", "1c85d51c4d3d72f80dfd59789f748d9d6292bd91", "IETF Trust"),
        Repository("mlswg/mls-protocol", "9a91cdc585009d50a6a40cb17c6261dae63874c1", "IETF Trust"),
        Repository("quicwg/multipath", "d7d8cbcaa3300eaec808b9a744d8c56332bf6632", "IETF Trust"),
        Repository("tlswg/tls13-spec", "06e9a20d9fb85ac41e55c9608bf7177efbd95454", "IETF Trust"),
    )
}


def load_chat(sources: Sources, document: str) -> dict[str, Any]:
    """With the time of a session in each of its turns."""
    with zipfile.ZipFile(io.BytesIO(sources.git(CHATS).read_bytes("data/locomo10.zip"))) as files:
        chat: dict[str, Any] = json.loads(files.read(f"data/multimodal_dialog/locomo10_v2/{document}.json"))
    for turn in list_turns(chat):
        session = turn["dia_id"].removeprefix("D").partition(":")[0]
        turn |= {"date_time": chat[f"session_{session}_date_time"], "clean_text": turn["text"]}
    return chat


THREADS = {"conversation": threads_of_chats(CHATS, load_chat), "issues": threads_of_issues(ISSUES)}
