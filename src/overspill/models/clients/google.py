from __future__ import annotations

from pydantic_ai.models import Model
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider

from overspill.models.endpoints import Endpoint


def connect(_: str, name: str, endpoint: Endpoint) -> Model:
    return GoogleModel(name, provider=GoogleProvider(base_url=endpoint.base_url, api_key=endpoint.api_key))
