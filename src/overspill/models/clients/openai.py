from __future__ import annotations

from openai import AsyncOpenAI
from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.providers import Provider
from pydantic_ai.providers.openai import OpenAIProvider

from overspill.models.endpoints import Endpoint


def connect(_: str, name: str, endpoint: Endpoint) -> Model:
    provider = OpenAIProvider(base_url=endpoint.base_url, api_key=endpoint.api_key)
    # Unlike chat completions, OpenAI keeps these for a month unless told not to.
    settings = OpenAIResponsesModelSettings(openai_store=False)
    return OpenAIResponsesModel(name, provider=without_hidden_settings(provider), settings=settings)


def without_hidden_settings(provider: Provider[AsyncOpenAI]) -> Provider[AsyncOpenAI]:
    """The caller decides about retries. The client would take the other two from the environment and tell them any server."""
    provider.client.max_retries = 0
    provider.client.organization = None
    provider.client.project = None
    return provider
