"""The table of known clients: which row describes a client that introduces itself in some way."""

from __future__ import annotations

from typing import Any

import pytest

from overspill.mcp.proxy.known_clients import KNOWN_CLIENTS, find_known_client


@pytest.mark.parametrize(
    ("name", "version", "programs"),
    [
        ("codex-mcp-client", "0.114.0", "never"),
        ("codex-mcp-client", "0.115.0", "sometimes"),
        ("codex-mcp-client", "0.169.0", "sometimes"),
        ("claude-code", "2.1.327", "sometimes"),
        ("goose-cli", "1.29.0", "sometimes"),
        ("goose-desktop", "1.29.0", "sometimes"),
        ("opencode", "1.18.18", "sometimes"),
        ("mcp", "0.1.0", "sometimes"),
        ("ai-sdk-mcp-client", "1.0.0", "sometimes"),
        ("mcporter", "0.9.0", "sometimes"),
        ("pctx-client", "0.1.0", "always"),
        ("mcp-inspector", "0.17.0", "never"),
        ("gemini-cli-mcp-client", "0.61.0", "never"),
        ("Zed", "1.0.0", "never"),
        ("Cline", "3.0.65", "never"),
    ],
)
def test_a_client_is_found_by_name_and_version(name: str, version: str, programs: str) -> None:
    row = find_known_client({"name": name, "version": version})
    assert row is not None
    assert row.programs == programs


@pytest.mark.parametrize(
    "info",
    [{}, {"name": ""}, {"name": "codex"}, {"name": "codex-mcp-client-2"}, {"name": 5}, {"name": ["mcp"]}, {"name": None}],
)
def test_a_client_with_another_name_is_unknown(info: dict[str, Any]) -> None:
    assert find_known_client({"version": "1", **info}) is None


@pytest.mark.parametrize(
    ("name", "version", "meta", "is_program"),
    [
        ("codex-mcp-client", "0.169.0", {"callId": "exec-1"}, True),
        ("codex-mcp-client", "0.169.0", {"callId": "call_1"}, False),
        ("codex-mcp-client", "0.169.0", {}, None),
        ("codex-mcp-client", "0.120.0", {}, None),
        ("codex-mcp-client", "0.100.0", {"callId": "exec-1"}, False),
        ("pctx-client", "0.1.0", {}, True),
        ("mcp", "0.1.0", {"callId": "exec-1"}, None),
        ("Zed", "1.0.0", {"callId": "exec-1"}, False),
    ],
)
def test_a_row_says_who_calls_or_that_nothing_says_it(
    name: str, version: str, meta: dict[str, Any], is_program: bool | None
) -> None:
    row = find_known_client({"name": name, "version": version})
    assert row is not None
    assert row.is_program(meta) is is_program


def test_every_row_is_reached_by_some_version() -> None:
    for row in KNOWN_CLIENTS:
        assert find_known_client({"name": row.name, "version": row.since or "0.0.1"}) is row


def test_the_case_of_a_name_does_not_matter() -> None:
    assert find_known_client({"name": "CODEX-mcp-Client", "version": "0.169.0"}) is not None


@pytest.mark.parametrize("version", [None, "", "garbage", "9" * 100_000, "-1", "v", 5, {}, "0.169.0-alpha.1", "v0.200"])
def test_a_version_that_cannot_be_read_counts_as_the_newest(version: Any) -> None:
    row = find_known_client({"name": "codex-mcp-client", "version": version})
    assert row is not None
    assert row.since == "0.148"


def test_every_row_names_its_source_and_when_it_was_checked() -> None:
    for row in KNOWN_CLIENTS:
        assert row.source.startswith(("npm ", "PyPI ", "github.com/")), row.name
        assert row.checked.startswith("20"), row.name
