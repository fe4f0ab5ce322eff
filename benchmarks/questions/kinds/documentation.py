"""Documentation: a question of a project's FAQ, and the sentence below it that answers.

The document is the FAQ with other pages of the same documentation. The headings that ask are taken out, so that only the answer
can be found.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from dataclasses import dataclass

from benchmarks.questions.picks import read_picks
from benchmarks.questions.question import Entry, Question
from benchmarks.questions.sections import find_sections, without_headings
from benchmarks.questions.sources import Git, Repository, SourceMissing, Sources


@dataclass(frozen=True)
class Manual:
    repository: Repository
    faq: tuple[str, ...]
    others: tuple[str, ...] = ()  # files, or folders whose pages are all taken

    @property
    def is_markdown(self) -> bool:
        return not self.faq[0].endswith(".rst")


MANUALS = {
    manual.repository.name: manual
    for manual in (
        Manual(
            Repository("aio-libs/aiohttp", "495e778360d1924da63e16dba0f0d76baf56a56a", "Apache-2.0"),
            ("docs/faq.rst",),
            ("docs/",),
        ),
        Manual(
            Repository("borgbackup/borg", "fc74d5f643d17d5341e303cd5ed4ddeb425660f0", "BSD-3-Clause"),
            ("docs/faq.rst",),
            ("docs/",),
        ),
        Manual(
            Repository("BurntSushi/ripgrep", "3fce3b5bb0236da2df6d99672afb8a719642eca7", "MIT OR Unlicense"),
            ("FAQ.md",),
            ("GUIDE.md", "README.md"),
        ),
        Manual(
            Repository("celery/celery", "5dc781f0bd5f36186bfcc74e0a4f9f654452c69b", "BSD-3-Clause"),
            ("docs/faq.rst",),
            ("docs/userguide/",),
        ),
        Manual(
            Repository("curl/curl", "5c61e168698a72b87437d58ed728bcdea6d5db42", "curl"),
            ("docs/FAQ.md",),
            ("docs/MANUAL.md", "docs/TheArtOfHttpScripting.md", "docs/cmdline-opts/"),
        ),
        Manual(
            Repository("cypress-io/cypress-documentation", "4df0c75e373515c33269176d556219950487e085", "MIT"),
            ("docs/app/faq.mdx", "docs/cloud/faq.mdx", "docs/accessibility/faq.mdx", "docs/ui-coverage/faq.mdx"),
        ),
        Manual(
            Repository("scrapy/scrapy", "11079cb1c85b9e75a39a7269943c69d1a975d485", "BSD-3-Clause"),
            ("docs/faq.rst",),
            ("docs/topics/",),
        ),
        Manual(
            Repository("sqlalchemy/sqlalchemy", "f35da7e2b9349a08b8de1f6bd3b07c8bf8616790", "MIT"),
            tuple(
                f"doc/build/faq/{page}.rst"
                for page in ("connections", "metadata_schema", "ormconfiguration", "performance", "sessions", "sqlexpressions")
            ),
        ),
    )
}


def build(sources: Sources) -> list[Entry]:
    asked: dict[str, dict[str, int]] = defaultdict(dict)
    for pick in read_picks("documentation"):
        asked[pick["repo"]][pick["heading"]] = pick["sentence"]
    return [entry for name, headings in asked.items() for entry in ask(MANUALS[name], headings, sources)]


def ask(manual: Manual, headings: dict[str, int], sources: Sources) -> list[Entry]:
    git = sources.git(manual.repository)
    pages = [git.read(path) for path in manual.faq]
    answers: dict[str, str] = {}
    for page in pages:
        for section in find_sections(page, is_markdown=manual.is_markdown):
            if section.heading in headings:
                answers[section.heading] = section.sentences(page)[headings[section.heading]]
    if missing := set(headings) - set(answers):
        raise SourceMissing(f"{manual.repository.name} does not ask: {sorted(missing)[0]}")
    questions_removed = [without_headings(page, set(headings), is_markdown=manual.is_markdown) for page in pages]
    text = "\n".join([*questions_removed, *(git.read(path) for path in other_pages(git, manual))])
    return [Entry(as_question(manual.repository, heading, answer), text) for heading, answer in answers.items()]


def other_pages(git: Git, manual: Manual) -> list[str]:
    """The history of changes is no documentation of what is."""
    listed = [path for name in manual.others for path in (git.list(name) if name.endswith("/") else [name])]
    return [
        path for path in listed if path.endswith((".md", ".rst")) and path not in manual.faq and "change" not in path.casefold()
    ]


def as_question(repository: Repository, heading: str, answer: str) -> Question:
    name = re.sub(r"\W+", "-", repository.name)
    return Question(
        id=f"documentation-{name}-{hashlib.sha256(heading.encode()).hexdigest()[:8]}",
        kind="documentation",
        source=repository.name,
        licence=repository.licence,
        doc=f"docs/documentation-{name}.txt",
        question=heading,
        answers=(answer,),
        tool_name="fetch_docs",
        note="heading of its FAQ",
    )
