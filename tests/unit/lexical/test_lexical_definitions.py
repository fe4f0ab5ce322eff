"""A question that names a function is about its definition, and gets all of its body."""

from __future__ import annotations

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import select

USE = {
    "python": "def step_{0}(value):\n    total = {1}(value, {0}) + {1}({0})\n    return {1}(total)\n\n\n",
    "go": "func step{0}(value int) int {{\n\ttotal := {1}(value, {0}) + {1}({0})\n\treturn {1}(total)\n}}\n\n",
    "java": "  int step{0}(int value) {{\n    int total = {1}(value, {0}) + {1}({0});\n    return {1}(total);\n  }}\n\n",
}
DEFINITION = {
    "python": "def open_link(\n    address,\n    depth=0,\n):\n{body}    return 'the end of it'\n\n\n",
    "go": 'func (c *Client) open_link(address string) string {{\n{body}\treturn "the end of it"\n}}\n\n',
    "java": '  public static String open_link(final String address) {{\n{body}    return "the end of it";\n  }}\n\n',
}
BODY = {
    "python": "    address = address.replace('{0}', 'x')\n\n",
    "go": '\taddress = replace(address, "{0}", "x")\n\n',
    "java": '    address = address.replace("{0}", "x");\n\n',
}


@pytest.mark.parametrize("lines", [1, 30])
@pytest.mark.parametrize("language", USE)
def test_the_whole_definition_is_shown_before_what_uses_it(language: str, lines: int) -> None:
    uses = [USE[language].format(number, "wrap" if number % 5 else "open_link") for number in range(200)]
    body = "".join(BODY[language].format(number) for number in range(lines))
    uses.insert(150, DEFINITION[language].format(body=body))
    index = build("".join(uses).encode())
    assert index.kind == "code"
    question, budget = "fix what open_link returns", 60 + 20 * lines
    shown = select(index, question, max_tokens=budget).text
    assert "the end of it" in shown
    assert "replace" in shown


def test_a_name_that_only_begins_like_a_definition_is_none() -> None:
    uses = [f"def open_link_{number}(value):\n    return close(value)\n\n\n" for number in range(200)]
    uses.insert(100, "def other(value):\n    # open_link is what the caller wants\n    return value.open_link\n\n\n")
    assert "what the caller wants" in select(build("".join(uses).encode()), "open_link", max_tokens=60).text


def test_a_body_after_a_header_of_several_lines_is_below_its_name() -> None:
    """Its last line, `) -> int:`, is not indented."""
    header = "def weigh_parcels(\n    parcels: list[int],\n    limit: int,\n) -> int:\n"
    body = "".join(f"    parcels = reduce_{number}(parcels, limit)\n\n" for number in range(30))
    index = build(("import os\n\n\n" + header + body + "    return 1\n\n\ndef other() -> int:\n    return 2\n").encode())
    outline = index.outline
    last = outline.record_at(index.text.find(b"reduce_29"))
    above = [bytes(index.text[outline.label_starts[label] : outline.label_ends[label]]) for label in outline.lineage(last)]
    assert b"def weigh_parcels(\n" in above
    assert outline.under[outline.record_at(index.text.find(b"def other"))] == -1
