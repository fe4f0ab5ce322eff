"""Every promise is held by a test that names it. The marks are read from the sources, so any selection of tests can be run."""

import ast
from functools import cache
from pathlib import Path

from promises import PROMISES

TESTS = Path(__file__).parent

NOT_YET_HELD: set[str] = set()


def promises_named_in(source: str) -> set[str]:
    return {
        argument.value
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.mark.promise"
        for argument in node.args
        if isinstance(argument, ast.Constant)
    }


@cache
def named() -> frozenset[str]:
    sources = (file.read_text("utf-8") for file in TESTS.rglob("test_*.py"))
    return frozenset(promise for source in sources if "mark.promise" in source for promise in promises_named_in(source))


def test_every_mark_names_a_promise():
    assert named() - PROMISES.keys() == set()


def test_every_promise_is_held_by_a_test_or_listed_as_not_yet_held():
    assert PROMISES.keys() - named() == NOT_YET_HELD


def test_marks_are_found_on_functions_and_on_whole_files():
    source = 'pytestmark = pytest.mark.promise("a")\n@pytest.mark.promise("b")\n@pytest.mark.slow\ndef test(): ...\n'
    assert promises_named_in(source) == {"a", "b"}
