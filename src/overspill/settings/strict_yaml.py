"""YAML as config files may use it. Only `parse_yaml` imports this, when there is something to parse."""

from __future__ import annotations

from typing import Any, cast

from yaml import MappingNode, Node, SafeLoader
from yaml.constructor import ConstructorError
from yaml.error import MarkedYAMLError
from yaml.events import AliasEvent
from yaml.reader import ReaderError

from overspill.errors import SettingsError
from overspill.text.lines import line_number
from overspill.text.regex import regex


def parse(text: str, name: str, *, max_depth: int, max_nodes: int) -> Any:
    """The value of a YAML text. Errors refer to the text as `name`."""
    try:
        return _StrictLoader(text, max_depth, max_nodes).get_single_data()
    except MarkedYAMLError as problem:
        line = problem.problem_mark.line + 1 if problem.problem_mark else 1
        raise SettingsError(f"{name} is not usable YAML, line {line}: {problem.problem}.") from None
    except ReaderError as problem:
        line = line_number(text, problem.position)
        raise SettingsError(f"{name} is not usable YAML, line {line}: {problem.reason}.") from None
    except ValueError:
        # int() refuses thousands of digits.
        raise SettingsError(f"{name} has a number that is too long.") from None


class _StrictLoader(SafeLoader):
    # Own resolvers instead of YAML 1.1's, in which the key `off` is a boolean, 1:30 a number and 2026-01-01 a date.
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012

    def __init__(self, text: str, max_depth: int, max_nodes: int) -> None:
        super().__init__(text)
        self.depths_left = max_depth
        self.nodes_left = max_nodes
        self.max_nodes = max_nodes

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        event = cast(Any, self).peek_event()
        if isinstance(event, AliasEvent) or event.anchor is not None:
            raise _refuse("anchors and aliases are not allowed", event)
        if getattr(event, "tag", None) is not None:
            raise _refuse("tags are not allowed", event)
        if not self.depths_left:
            raise _refuse("nested too deeply", event)
        if not self.nodes_left:
            raise _refuse(f"more than {self.max_nodes} values", event)
        self.nodes_left -= 1
        self.depths_left -= 1
        node = super().compose_node(parent, index)
        self.depths_left += 1
        return node

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[object] = set()
        for key, _ in node.value:
            if not isinstance(key.value, str):
                raise _refuse("a key must be a plain string", key)
            if key.value in seen:
                raise _refuse(f"the key {key.value!r} appears twice", key)
            seen.add(key.value)
        return super().construct_mapping(node, deep=deep)


def _refuse(problem: str, at: Any) -> ConstructorError:
    return ConstructorError(None, None, problem, at.start_mark)


_RESOLVERS = (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", [*"tTfF"]),
    ("int", r"[-+]?(0|[1-9][0-9_]*)", [*"-+0123456789"]),
    ("float", r"[-+]?((0|[1-9][0-9_]*)(\.[0-9_]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?", [*"-+.0123456789"]),
)
for _kind, _pattern, _first in _RESOLVERS:
    cast(Any, _StrictLoader).add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", regex(rf"(?:{_pattern})\Z"), _first)
