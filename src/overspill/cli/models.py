"""Where models are served, for commands: the environment of the process is known here and nowhere below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from overspill.errors import SettingsError
from overspill.models.endpoints import Endpoint, split_target
from overspill.retrieval.extractor import configured_endpoints
from overspill.settings import Settings


def endpoints(settings: Settings, environ: Mapping[str, str], typed: Iterable[str] = ()) -> dict[str, Endpoint]:
    """`typed` are models of the command line: one that there cannot be is a mistake there, and not passed over."""
    for name, provider in settings.providers.items():
        if provider.api_key_env and not environ.get(provider.api_key_env):
            raise SettingsError(f"providers.{name}.apiKeyEnv is {provider.api_key_env}, and that variable is not set.")
    found = configured_endpoints(settings, environ)
    for target in typed:
        split_target(target, found)
    return found
