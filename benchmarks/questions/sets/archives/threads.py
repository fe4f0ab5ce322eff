"""Forums: of a program for medical images by month, of a game engine by the hundred, of a tool for dialogs by board, one of
them in German. And two channels: of a research centre, and of a company that helps the users of its program.

The title of a topic asks, and a reply answers. Questions about the company's channel, which has no titles, are rephrased, because
their original words are in the document.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

from benchmarks.questions.kinds.threads import TITLE
from benchmarks.questions.material import Threads
from benchmarks.questions.sources import Repository, Sources

IMAGING = Repository("pieper/slicer-discourse-archive", "e93cda2348b80c9f151b6bd94fef9181e3b3057a", "not stated")
ENGINE = Repository("SirNate0/Urho3D-Discourse-Archive", "9a0514311fb511086df5a544e5c7c4a879b74e29", "not stated")
DIALOGS = Repository("opendcl/forum-archive", "ad10ae279fbf8f36dfcfe552356b1bfca6ecf94c", "not stated")
CHANNELS = Repository("NCAR/zulip-archive", "90994497b821acfbc3a973ea9797727e35b1c98d", "Apache-2.0")
SUPPORT = Repository("datazip-inc/olake-slack-archive", "d7a4f60c581a058e9256e16001286f34de731453", "not stated")
SUPPORT_EXPORT = "data/raw/run-2026-08-10T06:55:02"

RENDERED_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
RENDERED_POST = re.compile(r"^## Post #\d+ by @(\S+) \(([^)]*)\)\n(.*?)(?=^---$|\Z)", re.MULTILINE | re.DOTALL)
BOARD_TOPIC = re.compile(r'href="\.\./(topics/[^"]+\.html)"')
BOARD_TITLE = re.compile(r"<h1>(.*?)</h1>", re.DOTALL)
BOARD_POST = re.compile(
    r'<span class="post-author">(.*?)</span>\s*<span class="post-date muted">(.*?)</span>.*?'
    r'<div class="post-body">(.*?)</div>\s*</article>',
    re.DOTALL,
)


def write_topic(title: str, posts: Iterable[tuple[str, str, str]]) -> str:
    written = (f"{author}, {time}:\n{body.strip()}\n" for author, time, body in posts)
    return f"{TITLE}{' '.join(title.split())}\n\n" + "\n".join(written)


def read_month(sources: Sources, document: str) -> str:
    """The topics that began in a month, as Markdown with HTML in it."""
    git = sources.git(IMAGING)
    year = document.partition("-")[0]
    topics: list[str] = []
    for path in git.list(f"archive/rendered-topics/{year}/{document}/"):
        page = git.read(path)
        title = RENDERED_TITLE.search(page)
        topics.append(write_topic(title[1] if title else "", RENDERED_POST.findall(page)))
    return "\n".join(topics)


def read_hundred(sources: Sources, document: str) -> str:
    """The topics whose numbers begin so, in order."""
    git = sources.git(ENGINE)
    wanted = re.compile(rf"\.({document.removesuffix('xx')}\d\d)\.json$")
    numbered = sorted((int(found[1]), path) for path in git.list("posts/json/") if (found := wanted.search(path)))
    topics: list[str] = []
    for _, path in numbered:
        topic: dict[str, Any] = json.loads(git.read(path))
        posts = ((post["username"], post["created_at"][:16], post["cooked"]) for post in topic["post_stream"]["posts"])
        topics.append(write_topic(topic["title"], posts))
    return "\n".join(topics)


def read_board(sources: Sources, document: str) -> str:
    git = sources.git(DIALOGS)
    topics: list[str] = []
    for path in dict.fromkeys(BOARD_TOPIC.findall(git.read(f"boards/{document}.html"))):
        page = git.read(html.unescape(path))
        title = BOARD_TITLE.search(page)
        found: list[tuple[str, str, str]] = BOARD_POST.findall(page)
        posts = ((html.unescape(author), time, html.unescape(body)) for author, time, body in found)
        topics.append(write_topic(html.unescape(title[1]) if title else "", posts))
    return "\n".join(topics)


def read_channel(sources: Sources, document: str) -> str:
    git = sources.git(CHANNELS)
    return "\n".join(
        write_topic(decode_topic(path), map(read_message, json.loads(git.read(path))))
        for path in git.list(f"zulip_json/{document}/")
    )


def read_message(message: dict[str, Any]) -> tuple[str, str, str]:
    sent = datetime.fromtimestamp(message["timestamp"], UTC)
    return message["sender_full_name"], f"{sent:%Y-%m-%d %H:%M}", message["content"]


def decode_topic(path: str) -> str:
    """File names have a dot where URLs have a percent sign."""
    escaped = PurePosixPath(path).name.removesuffix(".json").encode()
    return re.sub(rb"\.([0-9A-F]{2})", lambda found: bytes([int(found[1], 16)]), escaped).decode("utf-8", "replace")


def read_export(sources: Sources, document: str) -> str:
    """The messages of a channel in order, each with what a program that lists them would give."""
    git = sources.git(SUPPORT)
    days = [path for path in git.list(f"{SUPPORT_EXPORT}/{document}/") if path.endswith(".json")]
    messages: list[dict[str, Any]] = [message for path in days for message in json.loads(git.read(path))]
    kept = [list_message(message) for message in sorted(messages, key=lambda message: message["ts"])]
    return json.dumps({"channel": document, "messages": kept}, ensure_ascii=False, indent=2)


def list_message(message: dict[str, Any]) -> dict[str, Any]:
    profile: dict[str, Any] = message.get("user_profile") or {}
    return {
        "ts": message["ts"],
        "thread_ts": message.get("thread_ts"),
        "name": profile.get("real_name", message.get("user")),
        "text": message.get("text", ""),
    }


THREADS = {
    "imaging": Threads(lambda _: IMAGING, read_month),
    "engine": Threads(lambda _: ENGINE, read_hundred),
    "board": Threads(lambda _: DIALOGS, read_board),
    "centre": Threads(lambda _: CHANNELS, read_channel),
    "support": Threads(lambda _: SUPPORT, read_export),
}
