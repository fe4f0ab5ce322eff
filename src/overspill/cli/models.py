"""Where models are served, for commands: the usual environment variables, and the providers of the settings."""

from __future__ import annotations

from collections.abc import Mapping

from overspill.errors import SettingsError
from overspill.models.endpoints import TIMEOUT, Endpoint, from_environment
from overspill.settings import Settings


def endpoints(settings: Settings, environ: Mapping[str, str]) -> dict[str, Endpoint]:
    """The settings win; a key is always taken from the environment, by the name they give."""
    found = from_environment(environ)
    for name, provider in settings.providers.items():
        if provider.api_key_env and not environ.get(provider.api_key_env):
            raise SettingsError(f"providers.{name}.apiKeyEnv is {provider.api_key_env}, and that variable is not set.")
        known = found.get(name)
        found[name] = Endpoint(
            kind=provider.kind or (known.kind if known else "openai-compatible"),
            base_url=provider.base_url or (known.base_url if known else ""),
            api_key=environ.get(provider.api_key_env or "", known.api_key if known else ""),
            timeout=provider.timeout or TIMEOUT,
        )
    return found
