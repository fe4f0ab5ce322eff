"""The models: whether each configured model has what it needs. None of them is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from overspill.cli.commands.doctor import Finding
from overspill.errors import SettingsError
from overspill.extraction import BUILTIN
from overspill.models.endpoints import Endpoint, complete_endpoint
from overspill.models.opening import open_model
from overspill.settings import Settings


def check(settings: Settings, endpoints: Mapping[str, Endpoint]) -> list[Finding]:
    """Nothing is sent, and no key is shown. A problem with a provider is reported once, not for each of its models."""
    findings: list[Finding] = []
    for about, subject, try_it in _list_checks(settings, endpoints):
        try:
            try_it()
        except SettingsError as problem:
            if str(problem) not in {finding.text for finding in findings}:
                findings.append(Finding(about, "wrong", str(problem)))
        else:
            findings.append(Finding(about, "ok", f"{subject} is configured. Nothing was sent to it."))
    return findings


def _list_checks(settings: Settings, endpoints: Mapping[str, Endpoint]) -> Iterator[tuple[str, str, Callable[[], object]]]:
    for name in settings.providers:
        yield "providers", name, partial(complete_endpoint, name, endpoints)
    extraction_model = settings.extraction_model
    keys = {
        "models": settings.models,
        "toolOutput.models": settings.tool_output.models,
        "extractionModel": (extraction_model,) if extraction_model else (),
    }
    for key, targets in keys.items():
        for target in targets:
            if target != BUILTIN or key == "models":
                yield key, target, partial(open_model, target, endpoints, {})
