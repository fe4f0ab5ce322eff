"""Chats in sessions with questions about them, and archived issues of a repository."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.questions.kinds.threads import TITLE
from benchmarks.questions.material import Asked, Threads
from benchmarks.questions.sources import Repository, SourceMissing, Sources


def list_turns(chat: dict[str, Any]) -> list[dict[str, Any]]:
    sessions = sorted((name for name in chat if re.fullmatch(r"session_\d+", name)), key=lambda name: int(name.partition("_")[2]))
    return [turn for name in sessions for turn in chat[name]]


def write_chat(chat: dict[str, Any]) -> str:
    return "".join(f"[{turn['date_time']}] {turn['speaker']}: {turn['clean_text']}\n" for turn in list_turns(chat))


def ask_about(chat: dict[str, Any], number: int) -> Asked:
    """The answer in the words of the turn given as evidence."""
    asked: dict[str, Any] = chat["qa"][number]
    evidence = [turn["clean_text"] for turn in list_turns(chat) if turn["dia_id"] in asked["evidence"]]
    answer = re.compile(re.escape(str(asked["answer"]).strip(" .")), re.IGNORECASE)
    return Asked(asked["question"], tuple(found.group() for text in evidence if (found := answer.search(text))))


def write_issue(issue: dict[str, Any]) -> str:
    comments = (f"{comment['author']}, {comment['createdAt'][:16]}:\n{comment['body']}\n" for comment in issue["comments"])
    opened = f"{issue['author']}, {issue['createdAt'][:16]}:\n{issue['body']}\n"
    return f"Issue {issue['number']} ({issue['state'].lower()})\n{TITLE}{clean_title(issue)}\n\n{opened}\n" + "\n".join(comments)


def ask_issue(issues: list[dict[str, Any]], number: int) -> Asked:
    for issue in issues:
        if issue["number"] == number:
            return Asked(clean_title(issue))
    raise SourceMissing(f"The archive has no issue {number}.")


def clean_title(issue: dict[str, Any]) -> str:
    return " ".join(issue["title"].split())


def threads_of_chats(chats: Repository, load: Callable[[Sources, str], dict[str, Any]]) -> Threads:
    return Threads(
        lambda _: chats,
        lambda sources, document: write_chat(load(sources, document)),
        lambda sources, document, number: ask_about(load(sources, document), number),
    )


def threads_of_issues(repositories: Mapping[str, Repository]) -> Threads:
    """Each with an archive of its issues."""

    def load(sources: Sources, document: str) -> list[dict[str, Any]]:
        return json.loads(sources.git(repositories[document]).read("archive.json"))["issues"]

    return Threads(
        repositories.__getitem__,
        lambda sources, document: "\n".join(map(write_issue, load(sources, document))),
        lambda sources, document, number: ask_issue(load(sources, document), number),
    )
