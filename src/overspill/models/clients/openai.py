"""OpenAI itself, and whoever speaks its chat-completions format: Ollama, llama.cpp, vLLM and many more."""

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

# The older name of this field is the one every server understands.
_PROFILE = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)
_NO_KEY = "none"  # the client insists on one


def connect(provider: str, name: str, endpoint: Endpoint) -> Model:
    url, key = endpoint.base_url, endpoint.api_key or _NO_KEY
    if endpoint.kind == "openai":
        # Unlike chat completions, OpenAI keeps these for a month unless told not to.
        settings = OpenAIResponsesModelSettings(openai_store=False)
        return OpenAIResponsesModel(name, provider=_plain(OpenAIProvider(base_url=url, api_key=key)), settings=settings)
    if endpoint.kind == "ollama":
        return OllamaModel(name, provider=_plain(OllamaProvider(base_url=url, api_key=key)), profile=_PROFILE)
    compatible = OpenAICompatibleProvider(provider, base_url=url, api_key=key)
    return OpenAIChatModel(name, provider=_plain(compatible), profile=_PROFILE)


def _plain(provider: Provider[AsyncOpenAI]) -> Provider[AsyncOpenAI]:
    # Who asks decides about retries. The other two come from the environment, and any server would be told.
    provider.client.max_retries = 0
    provider.client.organization = None
    provider.client.project = None
    return provider
