"""Open a target, `provider/model`. Client libraries (the extra `models`) load only when a target needs one."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path

from overspill.errors import MissingPackage, SettingsError
from overspill.models import scripted
from overspill.models.endpoints import Endpoint, complete_endpoint, split_target
from overspill.models.facts import ModelFacts, find_facts
from overspill.models.protocol import Model
from overspill.settings.keys import ModelLimits


def open_model(target: str, endpoints: Mapping[str, Endpoint], facts: Mapping[str, ModelFacts | ModelLimits]) -> Model:
    """The model of a target. Sends nothing: a wrong key or an unreachable server shows only at the first request."""
    provider, name = split_target(target, endpoints)
    if provider == scripted.PROVIDER and provider not in endpoints:
        return scripted.ScriptFile(Path(name), find_facts(target, facts))
    if provider == "builtin":
        raise SettingsError(f"{target} only extracts from stored outputs and cannot be asked. Name a model, as provider/model.")
    endpoint = complete_endpoint(provider, endpoints)
    try:
        providers = import_module("overspill.models.providers")
        return providers.ProviderModel(target, endpoint, find_facts(target, facts))
    except ImportError as missing:
        raise MissingPackage(target, "models") from missing
