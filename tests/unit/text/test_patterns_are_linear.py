"""Every regular expression in the source takes linear time, whatever text it meets.

Patterns are found in the source, not listed here: a new one is attacked as soon as it is written. What `overspill.text.patterns`
makes runs on RE2, which is linear by construction. Attacking takes minutes and
wants a quiet machine: that is for the slow suite.
"""

import ast
import importlib
import pkgutil
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from itertools import islice, product
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

import pytest
from attacks import attacks
from linear import is_linear, seconds

import overspill
from overspill.extraction import wrapper
from overspill.integrations.options import MissingFramework
from overspill.lexical import query
from overspill.lexical.clues import compile_beginnings, compile_questions
from overspill.lexical.reading import escaped_words
from overspill.lexical.rows import conditions, measures
from overspill.lexical.signals import facts
from overspill.lexical.words import compile_phrases
from overspill.tables.delimited import compile_cell, compile_row
from overspill.tables.types import READINGS, compile_reading
from overspill.text.lines import FILLERS
from overspill.text.regex import Regex
from overspill.wording.programs import INSTEAD

pytestmark = pytest.mark.no_cover

SIZE = 1_000
SLOW = 0.001
"""Seconds for SIZE characters from which a pattern is suspect. Most linear ones take a thirtieth of it."""
HOPELESS = 1.0

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "subn", "split")
AT_ONE_PLACE = ("match", "fullmatch")

# Modules that spell a pattern from something that is not foreign, and such a pattern.
MADE: dict[str, list[re.Pattern[Any]]] = {
    "overspill.lexical.clues": [compile_beginnings(), compile_questions()],
    "overspill.lexical.words": [
        compile_phrases(value)
        for module in (conditions, measures, facts, query)
        for value in vars(module).values()
        if isinstance(value, str) and re.search(r"\{[a-z_]+\}", value)
    ],
    "overspill.lexical.reading": [escaped_words(bytes((FILLERS[0],)))],
    "overspill.tables.delimited": [compile_cell(","), compile_row("\t")],
    "overspill.tables.types": [compile_reading(reading.pattern) for reading in READINGS],
    "overspill.wording.programs": [re.compile(pattern) for pattern, _ in INSTEAD],
    "overspill.extraction.wrapper": [wrapper.compile_tag(wrapper.new_nonce())],
}


class Use(NamedTuple):
    place: str
    pattern: re.Pattern[Any]
    method: str

    @property
    def module(self) -> str:
        return self.place.partition(":")[0] if ":" in self.place else self.place.rpartition(".")[0]


def modules() -> Iterator[ModuleType]:
    yield overspill
    for found in pkgutil.walk_packages(overspill.__path__, "overspill."):
        if not found.name.endswith("__main__"):
            try:
                yield importlib.import_module(found.name)
            except (MissingFramework, ModuleNotFoundError):
                assert found.name.startswith("overspill.integrations."), found.name
                assert "import re\n" not in FILES[found.name].read_text("utf-8"), "its patterns cannot be attacked here"


def patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    """A pattern, or those in tables of them and in classes of ours."""
    if isinstance(value, re.Pattern | Regex):
        yield re.compile(cast("Any", value).pattern, cast("Any", value).flags)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from patterns_in(item)
    elif isinstance(value, dict):
        for item in value.values():
            yield from patterns_in(item)
    elif isinstance(value, type) and value.__module__.startswith("overspill"):
        for name, item in vars(value).items():
            if not name.startswith("__"):
                yield from patterns_in(item)


def uses_of_names(module: ModuleType, tree: ast.AST) -> Iterator[Use]:
    """How each pattern is used that a module names; one handed on may be used in any way."""
    called: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr in METHODS:
            found = vars(module).get(node.value.id)
            called.add(id(node.value))
            if isinstance(found, re.Pattern | Regex):
                yield from (Use(f"{module.__name__}.{node.value.id}", pattern, node.attr) for pattern in patterns_in(found))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and id(node) not in called:
            for found in patterns_in(vars(module).get(node.id)):
                yield Use(f"{module.__name__}.{node.id}", found, by_others(module, node.id))


def calls_of_re(tree: ast.AST) -> Iterator[ast.Call]:
    """`re.split(r"[/\\]", path)` and the like, and what is compiled inside a function."""
    inside = {id(node) for function in ast.walk(tree) if isinstance(function, FUNCTIONS) for node in ast.walk(function)}
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name) and called.value.id == "re":
            is_used = called.attr in METHODS or called.attr == "compile"
        else:
            is_used = isinstance(called, ast.Name) and called.id == "regex" and id(node) in inside
        if is_used:
            yield cast("ast.Call", node)


def uses_of_calls(module: ModuleType, tree: ast.AST) -> Iterator[Use]:
    for call in calls_of_re(tree):
        place, method = f"{module.__name__}:{call.lineno}", getattr(call.func, "attr", "compile")
        if isinstance(call.args[0], ast.Constant):
            yield Use(place, re.compile(cast("Any", call.args[0].value)), method)
        else:
            yield from (Use(place, pattern, "finditer") for pattern in MADE.get(module.__name__, ()))


@cache
def every_use() -> list[Use]:
    """Imports every module, which takes seconds: only slow tests ask for it."""
    uses: dict[tuple[Any, ...], Use] = {}
    for module in modules():
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        found = [*uses_of_names(module, tree), *uses_of_calls(module, tree)]
        named = {use.pattern for use in found}
        held = {pattern: name for name, value in vars(module).items() for pattern in patterns_in(value)}
        unused = [Use(f"{module.__name__}.{held[each]}", each, by_others(module, held[each])) for each in held.keys() - named]
        for use in (*found, *unused):
            way = use.method if use.method in AT_ONE_PLACE else "finditer"
            uses.setdefault((use.pattern, way), use._replace(method=way))
    return sorted(uses.values(), key=lambda use: (use.place, use.method))


def by_others(module: ModuleType, name: str) -> str:
    """How a pattern is used that its own module does not use; of a YAML loader they are told how plain values begin."""
    return "match" if hasattr(vars(module)[name], "yaml_implicit_resolvers") else "finditer"


def apply(pattern: re.Pattern[Any], method: str, text: Any) -> None:
    found = getattr(pattern, method)(text)
    if method == "finditer":
        for _ in found:
            pass


def broken_by(pattern: re.Pattern[Any], method: str, suspect: float = SLOW) -> Any:
    """The first attack that takes more than linear time, shortened, or None."""
    for number, text in enumerate(attacks(pattern, SIZE)):

        def work(size: int, number: int = number, text: Any = text) -> Callable[[], None]:
            same = text if size == SIZE else next(islice(attacks(pattern, size), number, None))
            return partial(apply, pattern, method, same)

        if seconds(work(SIZE), HOPELESS) > suspect and not is_linear(work, SIZE, quick=0.0, hopeless=HOPELESS):
            return text[:60]
    return None


SOURCE = Path(str(overspill.__file__)).parent
FILES = {".".join((SOURCE.name, *file.relative_to(SOURCE).with_suffix("").parts)): file for file in sorted(SOURCE.rglob("*.py"))}


def test_no_pattern_is_spelled_while_running():
    """Such a pattern cannot be attacked here: RE2 takes it, through `overspill.text.patterns`."""
    sources = {module: file.read_text("utf-8") for module, file in FILES.items() if module not in (*MADE, "overspill.text.regex")}
    calls = {module: calls_of_re(ast.parse(source)) for module, source in sources.items() if re.search(r"\bre\.[a-z]", source)}
    assert [(name, call.lineno) for name in calls for call in calls[name] if not isinstance(call.args[0], ast.Constant)] == []


def test_every_pattern_can_be_compiled():
    """They are compiled when they are first used. Those that a module builds from what it imports are left to the slow tests."""
    compiled: list[re.Pattern[Any]] = []

    def regex(*spelled: Any) -> re.Pattern[Any]:
        compiled.append(re.compile(*spelled))
        return compiled[-1]

    for file in FILES.values():
        names: dict[str, Any] = {"re": re, "regex": regex}
        source = file.read_text("utf-8")
        for statement in ast.parse(source).body if " regex(" in source else ():
            if isinstance(statement, ast.Assign | ast.AnnAssign):
                with suppress(NameError):
                    exec(compile(ast.Module([statement], []), str(file), "exec"), names)  # noqa: S102  # our own source
    assert len(compiled) > 300


@pytest.mark.slow
@pytest.mark.parametrize("module", FILES)
def test_a_pattern_takes_linear_time(module: str):
    for use in every_use():
        if use.module == module.removesuffix(".__init__"):
            assert broken_by(use.pattern, use.method) is None, use


@pytest.mark.slow
def test_every_pattern_is_attacked_in_some_module():
    assert {use.module for use in every_use()} <= {module.removesuffix(".__init__") for module in FILES}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spelling", "method"),
    [
        (r"\s+x", "finditer"),
        (r"\s*x?\s*$", "match"),
        (r"<!--.*?-->", "finditer"),
        (r"(?:<!--.*?-->\s*)*<html", "match"),
        (r"\"(?:[^\"\\]|\\.)*\"", "finditer"),
        (r"(?:a|b|ab)*c", "match"),
        (r"[\w.]*[A-Z][\w.]*:", "match"),
        (r"(?s).*a.*b", "fullmatch"),
        (r"\{[^}]*\}", "finditer"),
        (r"(\w+)-\1x", "finditer"),
        (r"\"[^\"\\]*(?:\\.[^\"\\]*)*\"", "finditer"),
        (r"\x1b\[(?:[0-9;]*;)?(?:31|91)(?:;[0-9;]*)?m", "finditer"),
        (r"\$\{([a-z]+)(?::-([^}]*))?\}", "finditer"),
        (r"(?P<fence>`{3,})(.*?)\s*(?P=fence)", "finditer"),
    ],
)
def test_the_attacks_break_what_is_known_to_be_slow(spelling: str, method: str):
    # A quick machine takes less than SLOW for some. A pause of the whole machine while the short text is measured makes the long
    # one look linear.
    assert any(broken_by(re.compile(spelling, re.DOTALL), method, SLOW / 3) is not None for _ in range(3))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spelling", "method"),
    list(product([r"[^\n]*\n|[^\n]+\Z", r"a{1,40}b", r"(?<!\d)\d++x", r"\w\s|\s\w"], ["finditer", "match"])),
)
def test_the_attacks_spare_what_is_known_to_be_linear(spelling: str, method: str):
    assert broken_by(re.compile(spelling), method) is None


@pytest.mark.slow
def test_patterns_are_found_in_tables_functions_and_under_their_names():
    places = {use.place.partition(":")[0] for use in every_use()}
    assert {"overspill.text.jsonc._STRING", "overspill.models.written._MARKED", "overspill.text.names"} <= places
    assert len(every_use()) > 150
