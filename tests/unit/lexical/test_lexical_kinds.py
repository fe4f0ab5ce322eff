"""A kind of text has its place in one list."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from overspill.lexical import kinds
from overspill.lexical.index import build
from overspill.lexical.kinds import KINDS
from overspill.lexical.kinds.kind import Kind

SHARED = {"kind", "lines", "tree"}
SOURCE = Path(kinds.__file__).parents[1]


@pytest.mark.parametrize("name", [name for _, name, _ in iter_modules(kinds.__path__) if name not in SHARED])
def test_every_kind_is_registered(name: str):
    module = import_module(f"{kinds.__name__}.{name}")
    made = {value.name for value in vars(module).values() if isinstance(value, Kind)}
    assert made
    assert made <= {kind.name for kind in KINDS}


def test_kinds_have_names_of_their_own():
    assert len({kind.name for kind in KINDS}) == len(KINDS)


def test_nothing_outside_the_kinds_asks_which_kind_it_is():
    """What differs by kind is a trait."""
    asking = [
        f"{file.relative_to(SOURCE)}:{node.lineno}"
        for file in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.Compare) and ".kind" in ast.unparse(node)
    ]
    assert asking == []


def test_a_history_is_cut_into_commits_though_blank_lines_are_in_them():
    commits = "".join(f"commit {number:040x}\nAuthor: A\n\n    change {number}\n\n" for number in range(5))
    index = build(commits.encode())
    assert (index.kind, len(index.outline)) == ("history", 5)


def test_the_rule_of_a_markdown_table_is_not_a_row():
    table = "| name | size |\n|:---|---:|\n" + "".join(f"| n{number} | {number} |\n" for number in range(200))
    index = build(table.encode())
    assert index.kind == "prose"
    (found,) = index.outline.tables
    assert (found.last - found.first, found.rows.names) == (200, ("name", "size"))


def test_a_manual_with_many_fenced_examples_is_prose():
    examples = ["```js", "import { paint } from 'paint';", "const wall = paint('red');", "export default wall;", "```", ""]
    page = ["## Couleurs vives", "", "Cette page explique comment choisir la couleur d'un mur.", "", *examples]
    assert build("\n".join(page * 40).encode()).kind == "prose"


def test_an_answer_that_is_one_long_example_stays_code():
    lines = [f"def paint_{number}(wall):\n    return mix(wall, {number})\n" for number in range(80)]
    text = "Here they are:\n\n```python\n" + "\n".join(lines) + "```\n\n```sh\nimport paint\n```\n"
    assert build(text.encode()).kind == "code"


def test_a_manual_with_underlined_titles_and_many_examples_is_prose():
    example = [".. code-block:: yaml", "", *(f"    {room}:\n      heated" for room in ("hall", "attic", "cellar", "porch")), ""]
    page = [
        "Reading a sensor",
        "----------------",
        "",
        "The sensor is read once a minute.",
        "",
        "Add this to the file:",
        "",
        *example,
    ]
    assert build("\n".join(page * 40).encode()).kind == "prose"
