"""The models: can each that is configured be asked, as far as that shows without asking it?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from overspill.cli.doctor.findings import Finding
from overspill.errors import SettingsError
from overspill.extraction import BUILTIN
from overspill.models.endpoints import Endpoint, complete
from overspill.models.opening import open_model
from overspill.settings import Settings


def examine(settings: Settings, endpoints: Mapping[str, Endpoint]) -> list[Finding]:
    """Nothing is sent, and no key is shown. What is wrong with a provider is said once, not again for each of its models."""
    found: list[Finding] = []
    for about, subject, check in _checks(settings, endpoints):
        try:
            check()
        except SettingsError as problem:
            if str(problem) not in {finding.text for finding in found}:
                found.append(Finding(about, "wrong", str(problem)))
        else:
            found.append(Finding(about, "ok", f"{subject} has all it needs to be asked. Nothing was sent to it."))
    return found


def _checks(settings: Settings, endpoints: Mapping[str, Endpoint]) -> Iterator[tuple[str, str, Callable[[], object]]]:
    for name in settings.providers:
        yield "providers", name, partial(complete, name, endpoints)
    extracting = settings.extraction_model
    keys = {
        "models": settings.models,
        "toolOutput.models": settings.tool_output.models,
        "extractionModel": (extracting,) if extracting else (),
    }
    for key, targets in keys.items():
        for target in targets:
            if target != BUILTIN or key == "models":
                yield key, target, partial(open_model, target, endpoints, {})
