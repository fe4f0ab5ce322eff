"""Chat channels as HTML, issues of a project by the hundred, and the minutes of a committee and of a German association.

The topic of a chat or the title of an issue asks, and a reply answers. Questions about the minutes name an item of the agenda,
and the conclusion at the end of its discussion answers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from benchmarks.questions.kinds.threads import TITLE
from benchmarks.questions.material import Threads
from benchmarks.questions.sources import Repository, Sources

CHANNELS = Repository("leanprover-community/archive", "0774fce02825b3f31dda6b594ebfc2d52b2a3cf5", "not stated")
TRACKER = Repository("zw/bitcoin-gh-meta", "4e8e8f37a11de59229084da40a70799f760225d9", "not stated")
MINUTES = Repository("tc39/notes", "d99353f99c748f97cfa980b1c9b03e7ade3ef930", "not stated")
PROTOCOLS = Repository("fsfw-dresden/protokolle", "f57b7850483559a3397cdb4a6f2976ce646d084a", "not stated")
RESOLVED = "✔"  # begins the topic of a chat that is done
NOT_MINUTES = ("README", "summary", "toc")


def read_channel(sources: Sources, document: str) -> str:
    git = sources.git(CHANNELS)
    paths = git.list(f"zulip_json/{document}/")
    return "\n".join(f"{TITLE}{decode_topic(path)}\n\n{write_messages(json.loads(git.read(path)))}" for path in paths)


def decode_topic(path: str) -> str:
    """File names have a dot where URLs have a percent sign."""
    escaped = PurePosixPath(path).name.removesuffix(".json").encode()
    topic = re.sub(rb"\.([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), escaped).decode("utf-8", "replace")
    return " ".join(topic.removeprefix(RESOLVED).split())


def write_messages(messages: Iterable[dict[str, Any]]) -> str:
    parts: list[str] = []
    for message in messages:
        sent = datetime.fromtimestamp(message["timestamp"], UTC)
        parts.append(f"{message['sender_full_name']}, {sent:%Y-%m-%d %H:%M}:\n{message['content']}\n")
    return "\n".join(parts)


def read_tracker(sources: Sources, document: str) -> str:
    """The issues of a hundred, without pull requests, in order."""
    git = sources.git(TRACKER)
    paths = set(git.list(f"issues/{document}/"))
    numbers = sorted(int(found[1]) for path in paths if (found := re.search(r"/(\d+)\.json$", path)))
    parts: list[str] = []
    for number in numbers:
        path = f"issues/{document}/{number}"
        issue: dict[str, Any] = json.loads(git.read(f"{path}.json"))
        if issue.get("pull_request"):
            continue
        has_comments = f"{path}-comments.json" in paths
        comments: list[dict[str, Any]] = json.loads(git.read(f"{path}-comments.json")) if has_comments else []
        parts.append(f"#{number} ({issue['state']})\n{TITLE}{' '.join(issue['title'].split())}\n")
        parts += [write_comment(comment) for comment in (issue, *comments)]
    return "\n".join(parts)


def write_comment(comment: dict[str, Any]) -> str:
    author = comment["user"]["login"] if comment["user"] else "ghost"
    return f"{author}, {comment['created_at'][:16]}:\n{comment['body'] or ''}\n"


def read_minutes(sources: Sources, document: str) -> str:
    """The days of a meeting, each as it was written down."""
    git = sources.git(MINUTES)
    days = [path for path in git.list(f"meetings/{document}/") if path.endswith(".md")]
    return "\n".join(git.read(path) for path in days if not path.endswith(tuple(f"{name}.md" for name in NOT_MINUTES)))


def read_protocols(sources: Sources, document: str) -> str:
    """All that an association wrote down in a year."""
    git = sources.git(PROTOCOLS)
    return "\n".join(git.read(path) for path in git.list("protokolle/") if re.search(rf"-{document}\d{{4}}.*\.md$", path))


THREADS = {
    "channel": Threads(lambda _: CHANNELS, read_channel),
    "tracker": Threads(lambda _: TRACKER, read_tracker),
    "protocols": Threads(lambda _: PROTOCOLS, read_protocols),
    "minutes": Threads(lambda _: MINUTES, read_minutes),
}
