"""Which model to ask, and the settings a user would write for it. For live tests and for measurements."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import local_model
from local_model import Say
from msgspec import Struct

from overspill.cli.settings import endpoints
from overspill.models.endpoints import Endpoint
from overspill.settings import Settings

LOCAL = "local"
TIMEOUT = 900.0  # seconds; on a busy machine a small model reads thirty tokens in one


class LiveModel(Struct, frozen=True):
    target: str
    base_url: str
    """Empty for a provider's own address."""
    environ: Mapping[str, str]

    def settings(self, *, window: int, output: int, **more: Any) -> Settings:
        """`window` may be smaller than the model's own, so that small documents take several chunks."""
        provider = {"timeout": TIMEOUT}
        if self.base_url:
            provider |= {"kind": "openai-compatible", "baseUrl": self.base_url}
        section = {"models": [self.target], **more.pop("toolOutput", {})}
        return Settings(
            toolOutput=section,
            providers={self.target.partition("/")[0]: provider},
            modelLimits={self.target: {"contextWindow": window, "maxOutputTokens": output}},
            **more,
        )

    def endpoints(self, settings: Settings) -> dict[str, Endpoint]:
        return endpoints(settings, self.environ)


@contextmanager
def live_model(environ: Mapping[str, str], say: Say) -> Iterator[LiveModel]:
    """OVERSPILL_LIVE_MODEL, at OVERSPILL_LIVE_BASE_URL if that is set; else the local one. Unavailable if that cannot be had."""
    if target := environ.get("OVERSPILL_LIVE_MODEL"):
        yield LiveModel(target, environ.get("OVERSPILL_LIVE_BASE_URL", ""), environ)
        return
    with local_model.serving(local_model.cache_folder(), say) as base_url:
        yield LiveModel(f"{LOCAL}/{local_model.WEIGHTS}", base_url, environ)
