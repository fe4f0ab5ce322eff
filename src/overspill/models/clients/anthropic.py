from __future__ import annotations

from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.providers.anthropic import AnthropicProvider

from overspill.models.endpoints import Endpoint


def connect(_: str, name: str, endpoint: Endpoint) -> Model:
    provider = AnthropicProvider(base_url=endpoint.base_url, api_key=endpoint.api_key)
    provider.client.max_retries = 0  # the caller decides about retries
    return AnthropicModel(name, provider=provider)
