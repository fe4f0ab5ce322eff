"""Servers that speak OpenAI's chat-completions format: llama.cpp, vLLM and many more."""

from __future__ import annotations

from pydantic_ai.models import Model
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.profiles.openai import OpenAIModelProfile
from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

from overspill.models.clients.openai import without_hidden_settings
from overspill.models.endpoints import Endpoint

# Every server understands the older name of this field.
PROFILE = OpenAIModelProfile(openai_chat_supports_max_completion_tokens=False)
NO_KEY = "none"  # the client insists on one


def connect(provider: str, name: str, endpoint: Endpoint) -> Model:
    client = OpenAICompatibleProvider(provider, base_url=endpoint.base_url, api_key=endpoint.api_key or NO_KEY)
    return OpenAIChatModel(name, provider=without_hidden_settings(client), profile=PROFILE)
