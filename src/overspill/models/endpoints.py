"""Where models are served: the well-known providers, and the endpoints that you configure. Nothing here connects to anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct
from msgspec.structs import replace

from overspill.errors import SettingsError
from overspill.models import scripted
from overspill.settings.keys import ProviderKind
from overspill.text.humanize import suggest_nearest

DEFAULT_TIMEOUT = 120.0


class KindTraits(Struct, frozen=True, kw_only=True):
    """To add a kind of provider, name it in `ProviderKind`, describe it in `KINDS`, and write its file in `clients/`."""

    client: str
    """The module of `overspill.models.clients` that connects to it."""
    base_url: str = ""
    """The default address; empty if it must be configured."""
    needs_key: bool = False
    takes_cache_marks: bool = False
    """Whether a request can mark what to cache. If not, the server decides."""
    has_known_prices: bool = False
    """Whether prices of models are known. If not, they depend on the server."""


KINDS: Mapping[ProviderKind, KindTraits] = {
    "openai": KindTraits(client="openai", base_url="https://api.openai.com/v1", needs_key=True, has_known_prices=True),
    "anthropic": KindTraits(
        client="anthropic", base_url="https://api.anthropic.com", needs_key=True, takes_cache_marks=True, has_known_prices=True
    ),
    "google": KindTraits(
        client="google", base_url="https://generativelanguage.googleapis.com", needs_key=True, has_known_prices=True
    ),
    "ollama": KindTraits(client="openai", base_url="http://127.0.0.1:11434/v1"),
    "openai-compatible": KindTraits(client="openai"),
}


class Endpoint(Struct, frozen=True, kw_only=True):
    """One place that serves models. Neither the key nor a header's value is ever shown."""

    kind: ProviderKind
    base_url: str = ""
    """The base URL; empty for the provider's own address."""
    api_key: str = ""
    headers: Mapping[str, str] = {}
    timeout: float = DEFAULT_TIMEOUT
    """Seconds for a whole request, however slowly its answer arrives."""

    @property
    def address(self) -> str:
        """The base URL to show: without user, password and query; empty if it is not a valid address."""
        parts = _parse_url(self.base_url)
        return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}" if parts else ""

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [
            ("kind", self.kind),
            ("base_url", self.address),
            ("api_key", "***" if self.api_key else ""),
            ("headers", sorted(self.headers)),
            ("timeout", self.timeout),
        ]

    def __repr__(self) -> str:
        return f"Endpoint({', '.join(f'{name}={value!r}' for name, value in self.__rich_repr__())})"


class _Known(Struct, frozen=True):
    kind: ProviderKind
    base_url: str = ""
    """The base URL; empty for the default address of the kind."""
    keys: tuple[str, ...] = ()
    """Environment variables that may hold the key; the first that is set counts. Empty if no key is needed."""


_KNOWN: dict[str, _Known] = {
    "openai": _Known("openai", keys=("OPENAI_API_KEY",)),
    "anthropic": _Known("anthropic", keys=("ANTHROPIC_API_KEY",)),
    "google": _Known("google", keys=("GOOGLE_API_KEY", "GEMINI_API_KEY")),
    "ollama": _Known("ollama"),
    "openrouter": _Known("openai-compatible", "https://openrouter.ai/api/v1", ("OPENROUTER_API_KEY",)),
    "groq": _Known("openai-compatible", "https://api.groq.com/openai/v1", ("GROQ_API_KEY",)),
    "mistral": _Known("openai-compatible", "https://api.mistral.ai/v1", ("MISTRAL_API_KEY",)),
    "deepseek": _Known("openai-compatible", "https://api.deepseek.com", ("DEEPSEEK_API_KEY",)),
    "xai": _Known("openai-compatible", "https://api.x.ai/v1", ("XAI_API_KEY",)),
}


def from_environment(environ: Mapping[str, str]) -> dict[str, Endpoint]:
    """The well-known providers that this environment has a key or an address for. Ollama is always there: it needs neither."""
    found = {"ollama": Endpoint(kind="ollama", base_url=_build_ollama_url(environ.get("OLLAMA_HOST", "")))}
    for name, known in _KNOWN.items():
        key = next((environ[variable] for variable in known.keys if environ.get(variable)), "")
        if key:
            found[name] = Endpoint(kind=known.kind, api_key=key)
    if url := environ.get("OPENAI_BASE_URL"):
        # With another address, the server is most likely not OpenAI's but one that speaks its format.
        found["openai"] = Endpoint(kind="openai-compatible", base_url=url, api_key=environ.get("OPENAI_API_KEY", ""))
    return found


def split_target(target: str, endpoints: Mapping[str, Endpoint]) -> tuple[str, str]:
    """Provider and model name. Raises SettingsError for a target that no key could make work."""
    provider, _, name = target.partition("/")
    if not provider or not name:
        raise SettingsError(f"{target!r} is not a model. Name it provider/model, like anthropic/claude-sonnet-4-5.")
    if provider not in {scripted.PROVIDER, "builtin", *_KNOWN, *endpoints}:
        names = sorted({*_KNOWN, *endpoints})
        raise SettingsError(
            f"No model provider is called {provider!r}.{suggest_nearest(provider, names)} Known: {', '.join(names)}. "
            f"For any other server, configure an endpoint called {provider!r} of the kind openai-compatible with its base URL."
        )
    return provider, name


def complete_endpoint(provider: str, endpoints: Mapping[str, Endpoint]) -> Endpoint:
    """The endpoint of a well-known provider or from `endpoints`, with its address. Raises SettingsError for what is missing."""
    known = _KNOWN.get(provider)
    endpoint = endpoints.get(provider) or Endpoint(kind=_KNOWN[provider].kind)
    traits = KINDS[endpoint.kind]
    url = endpoint.base_url or (known.base_url if known is not None and known.kind == endpoint.kind else "") or traits.base_url
    if not url:
        raise SettingsError(f"The model endpoint {provider!r} has no base URL. Give it one, like http://127.0.0.1:8080/v1.")
    if _parse_url(url) is None:
        raise SettingsError(
            f"The base URL of the model endpoint {provider!r} is not the address of a server. "
            "It should look like http://127.0.0.1:8080/v1."
        )
    needs_key = traits.needs_key or (known is not None and known.keys and not endpoint.base_url)
    if needs_key and not endpoint.api_key:
        wanted = f"set {known.keys[0]}" if known and known.keys else f"name its variable in providers.{provider}.apiKeyEnv"
        raise SettingsError(f"No API key for {provider!r}: {wanted}, or give the endpoint {provider!r} a key.")
    return replace(endpoint, base_url=url)


def _build_ollama_url(host: str) -> str:
    if not host:
        return ""
    address = host if "://" in host else f"http://{host}"
    parts = _parse_url(address)
    if parts is None:  # an invalid address is reported with the first request to Ollama, which most programs never send
        return address
    port = "" if parts.port or parts.scheme == "https" else ":11434"
    return f"{parts.scheme}://{parts.netloc}{port}{parts.path.rstrip('/') or '/v1'}"


def _parse_url(url: str) -> SplitResult | None:
    """The parts of a URL; None if no server can have this address."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # an unclosed bracket, or a port that is not a number
        return None
    return parts if usable else None
