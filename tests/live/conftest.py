"""A real model for the whole run: the one OVERSPILL_LIVE_MODEL names, else a small one on loopback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from live_model import LiveModel, live_model
from local_model import Unavailable


@pytest.fixture(scope="session")
def model(pytestconfig: pytest.Config) -> Iterator[LiveModel]:
    pytest.importorskip("pydantic_ai", reason="the extra 'models' is not installed: pip install '.[models]'")
    capture: Any = pytestconfig.pluginmanager.getplugin("capturemanager")

    def say(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n  {line}", flush=True)

    with ExitStack() as stack:
        try:
            served = stack.enter_context(live_model(os.environ, say))
        except Unavailable as error:
            pytest.skip(f"no model to test with: {error}")
        say(f"asking {served.target}")
        yield served
