"""OpenAI, Ollama, and servers that speak OpenAI's chat-completions format: llama.cpp, vLLM and many more."""

from __future__ import annotations

from openai import AsyncOpenAI
from pydantic_ai.models import Model
from pydantic_ai.models.ollama import OllamaModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel, OpenAIResponsesModelSettings
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers import Provider
from pydantic_ai.providers.ollama import OllamaProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from overspill.models.endpoints import Endpoint

# Every server understands the older name of this field.
_PROFILE = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)


def connect(provider: str, name: str, endpoint: Endpoint) -> Model:
    url, key = endpoint.base_url, endpoint.api_key or "none"  # the client requires a key
    match endpoint.kind:
        case "openai":
            # Unlike chat completions, OpenAI keeps these for a month unless asked not to.
            settings = OpenAIResponsesModelSettings(openai_store=False)
            client = OpenAIProvider(base_url=url, api_key=endpoint.api_key)
            return OpenAIResponsesModel(name, provider=_without_hidden_settings(client), settings=settings)
        case "ollama":
            client = OllamaProvider(base_url=url, api_key=key)
            return OllamaModel(name, provider=_without_hidden_settings(client), profile=_PROFILE)
        case _:
            client = OpenAICompatibleProvider(provider, base_url=url, api_key=key)
            return OpenAIChatModel(name, provider=_without_hidden_settings(client), profile=_PROFILE)


def _without_hidden_settings(provider: Provider[AsyncOpenAI]) -> Provider[AsyncOpenAI]:
    """The provider without retries, organization and project. The client would take the latter two from the environment."""
    provider.client.max_retries = 0
    provider.client.organization = None
    provider.client.project = None
    return provider
