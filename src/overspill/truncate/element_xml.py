"""Outlines XML as well-formed XML: pieces of the source, with comments in place of what is omitted.

The parser only locates elements. Documents that declare or need entities are refused: nothing is ever expanded or loaded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NoReturn
from xml.parsers import expat

from msgspec import Struct

from overspill.text.regex import regex
from overspill.truncate.shape import Shape, say_omitted
from overspill.truncate.shrink import Level, find_largest

_TAG = regex(rb"""<(?:[^"'>]|"[^"]*"|'[^']*')*>""")


class Element(Struct, frozen=True, gc=False):
    """The byte offsets of its start tag and its end tag; for an element without end tag, `close` is where it ends."""

    start: int
    close: int
    children: list[Element]


def outline_xml(text: str, limit: int, shape: Shape) -> str | None:
    """An outline of the XML; None if it does not parse or the root's tag does not fit."""
    try:
        source = text.encode()
        root = _parse(source)
    except (ValueError, expat.ExpatError):  # the text is not Unicode or not XML, or has entities
        return None
    found = find_largest(lambda level, longest: _Outline(source, level, longest, shape.head_ratio).document(root), limit, shape)
    return found[0] if found else None


def _parse(source: bytes) -> Element:
    parser = expat.ParserCreate("utf-8")
    parser.ordered_attributes = True
    starts: list[int] = []
    families: list[list[Element]] = [[]]

    def start(name: str, attributes: list[str]) -> None:
        starts.append(parser.CurrentByteIndex)
        families.append([])

    def end(name: str) -> None:
        children = families.pop()
        families[-1].append(Element(starts.pop(), parser.CurrentByteIndex, children))

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.EntityDeclHandler = parser.SkippedEntityHandler = _refuse
    parser.Parse(source, True)
    return families[0][0]


def _refuse(*_: object) -> NoReturn:
    raise ValueError("it has entities")


class _Outline(Struct, frozen=True):
    source: bytes
    shown: Level
    longest: int
    head_ratio: float

    def document(self, root: Element) -> Iterator[str]:
        yield self.source[: root.start].decode()
        yield from self.element(root, 1)
        yield self.source[self.end(root) :].decode()

    def element(self, element: Element, depth: int) -> Iterator[str]:
        opened = self.after_tag(element.start)
        comment = _comment(1, "element")
        if depth > 1 and opened - element.start > max(self.longest, len(comment)):
            yield comment
            return
        yield self.source[element.start : opened].decode()
        if depth > self.shown.depth and element.children:
            yield _comment(len(element.children), "element")
        else:
            yield from self.content(element, opened, depth)
        yield self.source[element.close : self.end(element)].decode()

    def content(self, element: Element, opened: int, depth: int) -> Iterator[str]:
        children = element.children
        omitted = max(0, len(children) - self.shown.first - self.shown.last)
        first = self.shown.first if omitted else len(children)
        at = opened
        for child in children[:first]:
            yield self.characters(at, child.start)
            yield from self.element(child, depth + 1)
            at = self.end(child)
        if omitted:
            yield self.characters(at, children[first].start)
            yield _comment(omitted, "element")
            at = self.end(children[first + omitted - 1])
        for child in children[first + omitted :]:
            yield self.characters(at, child.start)
            yield from self.element(child, depth + 1)
            at = self.end(child)
        yield self.characters(at, element.close)

    def characters(self, start: int, end: int) -> str:
        """Text between tags. If it is too long, a comment replaces its middle, or all of it if it contains comments or CDATA."""
        text = self.source[start:end].decode()
        comment = _comment(len(text), "char")
        if len(text) <= max(self.longest, len(comment)):
            return text
        if "<" in text:
            return comment
        room = max(0, self.longest - len(comment))
        head = int(room * self.head_ratio)
        stop, resume = _reference_at(text, head)[0], _reference_at(text, len(text) - room + head)[1]
        return text[:stop] + _comment(resume - stop, "char") + text[resume:]

    def after_tag(self, start: int) -> int:
        tag = _TAG.match(self.source, start)
        assert tag, "the parser found a tag here"
        return tag.end()

    def end(self, element: Element) -> int:
        opened = self.after_tag(element.start)
        return opened if self.source.endswith(b"/>", 0, opened) else self.after_tag(element.close)


def _comment(count: int, noun: str) -> str:
    return f"<!-- {say_omitted(count, noun)} -->"


def _reference_at(text: str, at: int) -> tuple[int, int]:
    """The span of the `&reference;` that a cut here would split, or the position itself."""
    start = text.rfind("&", 0, at)
    end = text.find(";", start) + 1
    return (start, end) if start >= 0 and at < end else (at, at)
