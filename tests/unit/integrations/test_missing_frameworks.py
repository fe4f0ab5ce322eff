"""An adapter whose framework is not installed says what to install."""

from __future__ import annotations

from importlib import import_module, util

import pytest


@pytest.mark.parametrize(
    ("adapter", "module", "needs"),
    [
        ("strands", "strands", "strands-agents>=1.62"),
        ("google_adk", "google.adk", "google-adk>=2.13"),
        ("agno", "agno", "agno>=3.1"),
        ("agent_framework", "agent_framework", "agent-framework-core>=1.23"),
        ("crewai", "crewai", "crewai>=1.15"),
    ],
)
def test_a_missing_framework_is_named(adapter: str, module: str, needs: str):
    assert util.find_spec(module.partition(".")[0]) is None or module == "google.adk"
    with pytest.raises(ImportError) as missing:
        import_module(f"overspill.integrations.{adapter}")
    assert str(missing.value) == (
        f"overspill.integrations.{adapter} needs the package {needs}. Install it: `pip install '{needs}'`."
    )
