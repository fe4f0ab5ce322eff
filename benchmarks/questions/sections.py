"""Sections of a documentation page, in Markdown or reStructuredText: headings, and the sentences below them."""

from __future__ import annotations

import re
from dataclasses import dataclass

MARKDOWN_HEADING = re.compile(r"^#{1,6} (.+?)\s*#*$|^<h[1-6][^>]*>\s*\n?(.+?)\s*\n?</h[1-6]>$", re.MULTILINE)
UNDERLINED_HEADING = re.compile(r"^(?!\s)(.+)\n([=~^\"'*+#-])\2{2,}[ \t]*$", re.MULTILINE)
MIN_SENTENCE_CHARACTERS = 40
NOT_PROSE = re.compile(r"^(\s{2,}|\.\. |[-*+] |\d+[.)] |>|\||!\[|<|```|:::|import |export |\{)")


@dataclass(frozen=True)
class Section:
    heading: str
    start: int  # of the heading
    body: int  # where the text below it begins
    end: int

    def sentences(self, page: str) -> list[str]:
        return split_sentences(page[self.body : self.end])


def plain(heading: str) -> str:
    """A heading as a reader sees it, without markup, anchors and numbers."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    text = re.sub(r"<[^>]*>|\{#[^}]*\}|<Icon[^>]*/>", "", text)
    text = re.sub(r":\w+:`~?([^`<]*?)\s*(<[^>]*>)?`", r"\1", text)
    return " ".join(re.sub(r"[`*]", "", text).split()).strip("\u200b ")


def find_sections(page: str, *, is_markdown: bool) -> list[Section]:
    pattern = MARKDOWN_HEADING if is_markdown else UNDERLINED_HEADING
    found = [match for match in pattern.finditer(page) if not is_in_code(page, match.start())]
    ends = [match.start() for match in found[1:]] + [len(page)]
    return [
        Section(plain(next(group for group in match.groups() if group)), match.start(), match.end(), end)
        for match, end in zip(found, ends, strict=True)
    ]


def is_in_code(page: str, position: int) -> bool:
    return page.count("\n```", 0, position) % 2 == 1


def split_sentences(text: str) -> list[str]:
    """The sentences of plain paragraphs, verbatim. Skips lists, code and directives."""
    sentences: list[str] = []
    is_code = False
    for paragraph in re.split(r"\n\s*\n", text.strip("\n")):
        starts_inside = is_code
        is_code ^= paragraph.count("```") % 2 == 1
        if starts_inside or NOT_PROSE.match(paragraph) or "```" in paragraph:
            continue
        parts = re.split(r"(?<=[.!?])\s+(?=[A-Z`\"*\[:])", paragraph.strip())
        sentences += [part for part in parts if len(part) >= MIN_SENTENCE_CHARACTERS]
    return sentences


def without_headings(page: str, headings: set[str], *, is_markdown: bool) -> str:
    """The page without these headings, and without the lines of a table of contents that repeat them."""
    kept: list[str] = []
    position = 0
    for section in find_sections(page, is_markdown=is_markdown):
        if section.heading in headings:
            kept.append(page[position : section.start])
            position = section.body
    text = "".join([*kept, page[position:]])
    return "\n".join(line for line in text.split("\n") if plain(line.strip("-*• ")) not in headings)
