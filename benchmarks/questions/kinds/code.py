"""Source code and search results over it: a fix's message asks, the lines it changed answer.

The document is the code before the fix: the file, with the others of its folder if it is short, or, for every other fix, what
`git grep` finds for a word of the changed line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from benchmarks.questions.checks import MIN_DOCUMENT_BYTES
from benchmarks.questions.material import QuestionSet
from benchmarks.questions.picks import read_picks
from benchmarks.questions.question import Entry, Question
from benchmarks.questions.sources import Git, Repository, Sources

MIN_LINE_CHARACTERS = 15  # shorter lines say too little to be an answer
MAX_EXPLANATION_CHARACTERS = 300
MAX_FOUND_BYTES = 600_000
ENOUGH_CHARACTERS = 80_000  # a file of this length is enough by itself
MAX_FOLDER_CHARACTERS = 400_000
TRAILER = re.compile(r"^([A-Z][\w-]+-by|closes|fix(es)? #|ref|bug|see also)\b|^[*#>`-]", re.IGNORECASE)
ISSUE = re.compile(r"\s*[(\[]?((should )?fix(es)?|closes)?\s*#\d+[)\]]?", re.IGNORECASE)
COMMENT = re.compile(r"^(#|//|/\*|\*|\"\"\")")


@dataclass(frozen=True)
class Fix:
    message: str
    changed: tuple[str, ...]


def build(sources: Sources, chosen: QuestionSet) -> list[Entry]:
    picks = enumerate(read_picks(chosen.name, "code"))
    return [as_entry(pick, sources, chosen.code_licences[pick["repo"]], is_search=bool(number % 2)) for number, pick in picks]


def as_entry(pick: dict[str, Any], sources: Sources, licence: str, *, is_search: bool) -> Entry:
    name, commit, path = pick["repo"], pick["commit"], pick["path"]
    git = sources.git(Repository(name, commit, licence))
    fix = read_fix(git, path)
    found = find_word(git, fix.changed[0]) if is_search else ""
    identity = f"code-{name.replace('/', '-')}-{commit[:10]}"
    text = found or read_with_neighbours(git, path)
    question = Question(
        id=identity,
        kind="code",
        source=name,
        licence=licence,
        doc=f"docs/{identity}.{'grep.txt' if found else 'txt'}",
        question=f"Which line has to change for this? {fix.message}",
        answers=tuple(line for line in fix.changed if line in text),
        tool_name="search_code" if found else "read_file",
        note=f"{path} before {commit}",
    )
    return Entry(question, text)


def read_fix(git: Git, path: str) -> Fix:
    before = git.read(path, f"{git.commit}^")
    commits = (f"{git.commit}^", git.commit)
    difference = git.run("diff", "--no-ext-diff", "--no-textconv", "-U0", *commits, "--", path).decode("utf-8", "replace")
    return Fix(clean_message(git.run("log", "-1", "--format=%B", git.commit).decode()), changed_lines(difference, before))


def read_with_neighbours(git: Git, path: str) -> str:
    """The file or, if it is short, the files of its kind in its folder, with their names as `tail` prints them."""
    before, earlier = f"{git.commit}^", Git(git.folder, f"{git.commit}^")
    own = git.read(path, before)
    if len(own) >= ENOUGH_CHARACTERS:
        return own
    folder, suffix = str(PurePosixPath(path).parent), PurePosixPath(path).suffix
    files = {path: own}
    for other in earlier.list("" if folder == "." else f"{folder}/"):
        is_neighbour = str(PurePosixPath(other).parent) == folder and other.endswith(suffix)
        if is_neighbour and other != path and sum(map(len, files.values())) < MAX_FOLDER_CHARACTERS:
            files[other] = earlier.read(other)
    return "\n".join(f"==> {name} <==\n{content}" for name, content in sorted(files.items()))


def changed_lines(difference: str, before: str) -> tuple[str, ...]:
    """What the fix removed and is there only once, without indentation."""
    removed = (line[1:].strip() for line in difference.splitlines() if line.startswith("-") and not line.startswith("---"))
    return tuple(
        line for line in removed if len(line) >= MIN_LINE_CHARACTERS and before.count(line) == 1 and not COMMENT.match(line)
    )


def clean_message(message: str) -> str:
    """The subject without numbers of pull requests, and the first paragraph that explains it."""
    subject, _, body = message.strip().partition("\n")
    subject = ISSUE.sub("", subject).strip(" ,:.")
    paragraph: list[str] = []
    for line in body.strip().splitlines():
        if not line.strip() or TRAILER.match(line.strip()):
            break
        paragraph.append(line.strip())
    explanation = "" if paragraph and paragraph[-1].endswith(":") else " ".join(paragraph)
    if len(explanation) > MAX_EXPLANATION_CHARACTERS:
        explanation = explanation[:MAX_EXPLANATION_CHARACTERS].rpartition(" ")[0] + " …"
    return f"{subject}. {explanation}" if explanation else subject


def find_word(git: Git, line: str) -> str:
    """Search results for the word of the line that gives the fewest, but enough; empty if no word does."""
    best = ""
    for word in sorted(set(re.findall(r"[A-Za-z_]\w{3,}", line))):
        found = git.run("grep", "-n", "-I", "-w", "-F", word, f"{git.commit}^").decode("utf-8", "replace")
        found = re.sub(rf"^{git.commit}\^:", "", found, flags=re.MULTILINE)
        if MIN_DOCUMENT_BYTES < len(found) < MAX_FOUND_BYTES and line in found and (not best or len(found) < len(best)):
            best = found
    return best
