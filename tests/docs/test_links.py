"""Every relative link of the documentation leads somewhere, and every page can be found."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_FENCED = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"`[^`\n]*`")
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ +(.*)$", re.MULTILINE)


def prose(page: Path) -> str:
    return _FENCED.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> list[str]:
    return [link for link in _LINK.findall(_CODE.sub("", prose(page))) if "://" not in link]


def anchors(page: Path) -> set[str]:
    """As they are made of headings where such pages are read: letters, digits, - and _ stay, spaces become -."""
    return {re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in _HEADING.findall(prose(page))}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_resolves(page: Path) -> None:
    broken: list[str] = []
    for link in links(page):
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.is_relative_to(ROOT) or not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_index_lists_every_page_and_the_page_about_clients_each_of_theirs() -> None:
    index, clients = ROOT / "docs" / "index.md", ROOT / "docs" / "clients.md"
    listed = {link.partition("#")[0] for link in links(index)}
    assert listed == {page.name for page in index.parent.glob("*.md")} - {"index.md"}
    theirs = {f"clients/{page.name}" for page in (ROOT / "docs" / "clients").iterdir()}
    assert theirs <= {link.partition("#")[0] for link in links(clients)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_page_names_a_place_of_somebodys_machine(page: Path) -> None:
    assert re.findall(r"(?<![\w.~$}/:])/(?:home|root|Users|work|tmp)/\S*", page.read_text(encoding="utf-8")) == []
