"""The kinds of providers. To add one, name it in `ProviderKind`, describe it here, and write its file in `clients/`.

The type checker asks for the description; a test asks for the file.
"""

from __future__ import annotations

from typing import assert_never

from msgspec import Struct

from overspill.settings.keys import ProviderKind


class KindTraits(Struct, frozen=True, kw_only=True):
    client: str
    """The module of `overspill.models.clients` that connects to it."""
    base_url: str = ""
    """The address you get without configuring one; empty where there is none."""
    needs_key: bool = False
    takes_cache_marks: bool = False
    """False where the server finds out itself what to cache."""
    has_known_prices: bool = False
    """False where the same model name costs something else, or nothing, on another server."""


def describe_kind(kind: ProviderKind) -> KindTraits:
    match kind:
        case "openai":
            return KindTraits(client="openai", base_url="https://api.openai.com/v1", needs_key=True, has_known_prices=True)
        case "anthropic":
            return KindTraits(
                client="anthropic",
                base_url="https://api.anthropic.com",
                needs_key=True,
                takes_cache_marks=True,
                has_known_prices=True,
            )
        case "google":
            url = "https://generativelanguage.googleapis.com"
            return KindTraits(client="google", base_url=url, needs_key=True, has_known_prices=True)
        case "ollama":
            return KindTraits(client="ollama", base_url="http://127.0.0.1:11434/v1")
        case "openai-compatible":
            return KindTraits(client="openai_compatible")
        case _:
            assert_never(kind)
