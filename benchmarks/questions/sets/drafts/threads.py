"""Chats of three weeks between two people, with questions that others asked about them, and issues of standards.

The title of an issue asks, and a reply to it answers.
"""

from __future__ import annotations

import json
from typing import Any

from benchmarks.questions.conversations import threads_of_chats, threads_of_issues
from benchmarks.questions.sources import Repository, Sources

CHATS = Repository("danny911kr/REALTALK", "b903e06a9770bf4e5fe9018c3e132889666d3b4a", "not stated")
ISSUES = {
    repository.name: repository
    for repository in (
        Repository("ietf-wg-ohai/oblivious-http", "2ef34e96defe61176d649f32b140b874fae2e179", "IETF Trust"),
        Repository("ietf-wg-privacypass/base-drafts", "e7a7a3229b262174ba0faa3b92e834f3afdb8f2f", "IETF Trust"),
        Repository("quicwg/datagram", "04e2f9e350d04fea36e77bf2da3321e576ea1948", "IETF Trust"),
        Repository("quicwg/load-balancers", "ab15ffffb541dfad215bb7ff7751eb2ca8204a1c", "IETF Trust"),
        Repository("quicwg/qlog", "637a6f6dace091de08a32060b70b21fae56113af", "IETF Trust"),
        Repository("tlswg/draft-ietf-tls-esni", "db491bf34e3bf6747d287b39c10e183d65165912", "IETF Trust"),
        Repository("tlswg/dtls13-spec", "0f7234654b196da14613b7eaa93060b8ed0c6f3c", "IETF Trust"),
    )
}


def load_chat(sources: Sources, document: str) -> dict[str, Any]:
    return json.loads(sources.git(CHATS).read(f"data/{document}.json"))


THREADS = {"chat": threads_of_chats(CHATS, load_chat), "issues": threads_of_issues(ISSUES)}
