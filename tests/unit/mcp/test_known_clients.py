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


def test_the_case_of_a_name_does_not_matter() -> None:
    assert find_known_client({"name": "CODEX-mcp-Client", "version": "0.169.0"}) is not None


@pytest.mark.parametrize("version", [None, "", "garbage", "9" * 100_000, "-1", "v", 5, {}, "0.169.0-alpha.1", "v0.200"])
def test_a_version_that_cannot_be_read_counts_as_the_newest(version: Any) -> None:
    row = find_known_client({"name": "codex-mcp-client", "version": version})
    assert row is not None
    assert row.since == "0.115"


def test_every_row_names_its_source_and_when_it_was_checked() -> None:
    for row in KNOWN_CLIENTS:
        assert row.source.startswith(("npm ", "PyPI ", "github.com/")), row.name
        assert row.checked.startswith("20"), row.name
