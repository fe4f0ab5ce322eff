"""The table of what the proxy does with each method: complete, and without a method that nobody has."""

from __future__ import annotations

from collections import Counter
from typing import get_args

import mcp_types
import pytest
from mcp_types import methods as known
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS
from pydantic import BaseModel

from overspill.mcp.proxy.methods import RULES, Sender, decide_method

ROWS = [(rule.sender, name, rule.extension) for rule in RULES for name in rule.names.split()]
TABLE = {(sender, name) for sender, name, _ in ROWS}
WALKED: list[tuple[Sender, str, str]] = [
    *(("client", name, version) for name, version in [*known.CLIENT_REQUESTS, *known.CLIENT_NOTIFICATIONS]),
    *(("server", name, version) for name, version in [*known.SERVER_REQUESTS, *known.SERVER_NOTIFICATIONS]),
]
EITHER_SIDE = ("tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "notifications/tasks/status")
EXTENSIONS = {
    "tasks extension": {"tasks/update", "notifications/tasks"},
    "skills extension": {"skills/list", "skills/get", "resources/directory/read"},
    "channels of Claude Code": {"notifications/claude/channel"},
}


def list_models() -> set[str]:
    """The methods of all models that the SDK exports, also of those that its maps leave out."""
    found: set[str] = set()
    for model in vars(mcp_types).values():
        if isinstance(model, type) and issubclass(model, BaseModel) and "method" in model.model_fields:
            found.update(name for name in get_args(model.model_fields["method"].annotation) if isinstance(name, str))
    return found


def test_every_method_of_every_version_has_a_decision() -> None:
    assert {version for _, _, version in WALKED} == set(KNOWN_PROTOCOL_VERSIONS)
    assert [each for each in WALKED if each[:2] not in TABLE] == []


def test_every_model_of_the_sdk_has_a_decision() -> None:
    assert list_models() >= {"tools/call", "tasks/result", "notifications/tasks/status"}
    assert list_models() - {name for _, name in TABLE} == set()
    assert {(sender, name) for sender in get_args(Sender) for name in EITHER_SIDE} <= TABLE


@pytest.mark.parametrize("extension", EXTENSIONS)
def test_known_extensions_have_decisions(extension: str) -> None:
    assert {name for _, name, known_in in ROWS if known_in == extension} >= EXTENSIONS[extension]


def test_each_decision_is_made_once_and_has_a_reason() -> None:
    assert [key for key, count in Counter((sender, name) for sender, name, _ in ROWS).items() if count > 1] == []
    assert [rule for rule in RULES if not rule.reason.endswith(".")] == []


def test_a_method_of_the_protocol_itself_is_one_that_the_sdk_knows() -> None:
    assert {name for _, name, extension in ROWS if not extension} == {name for _, name, _ in WALKED}


def test_an_unknown_method_is_measured_and_so_is_one_that_should_carry_nothing() -> None:
    assert decide_method("client", "vendor/export") == "measured"
    assert decide_method("client", "resources/subscribe") == "measured"
    assert decide_method("client", "tools/call") == "gated"
    assert decide_method("server", "notifications/message") == "passed"
