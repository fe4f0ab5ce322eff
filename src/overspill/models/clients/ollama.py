from __future__ import annotations

from pydantic_ai.models import Model
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.providers.ollama import OllamaProvider

from overspill.models.clients.openai import without_hidden_settings
from overspill.models.clients.openai_compatible import NO_KEY, PROFILE
from overspill.models.endpoints import Endpoint


def connect(_: str, name: str, endpoint: Endpoint) -> Model:
    provider = OllamaProvider(base_url=endpoint.base_url, api_key=endpoint.api_key or NO_KEY)
    return OllamaModel(name, provider=without_hidden_settings(provider), profile=PROFILE)
