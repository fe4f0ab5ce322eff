"""Where models are served. Only commands read the environment, so it is read here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from overspill.errors import SettingsError
from overspill.models.endpoints import Endpoint, split_target
from overspill.retrieval.extractor import configured_endpoints
from overspill.settings import Settings


def endpoints(settings: Settings, environ: Mapping[str, str], given: Iterable[str] = ()) -> dict[str, Endpoint]:
    """`given` are the models named on the command line. A mistyped one is an error, not skipped."""
    for name, provider in settings.providers.items():
        if provider.api_key_env and not environ.get(provider.api_key_env):
            raise SettingsError(
                f"providers.{name}.apiKeyEnv names {provider.api_key_env}, and that environment variable is not set."
            )
    found = configured_endpoints(settings, environ)
    for target in given:
        split_target(target, found)
    return found
