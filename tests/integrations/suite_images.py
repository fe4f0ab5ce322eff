"""Images and other blocks: they pass as what they are, with the same drivers as `suite.py`."""

from __future__ import annotations

import base64
from typing import Any

from overspill import Settings
from tests.integrations.driving import Call, Driver, Scripted
from tests.integrations.suite import LOG, NEEDLE, extract, settings

__all__ = ["settings"]

IMAGE = base64.b64decode(  # a red dot
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


async def test_an_image_passes(driver: Driver, settings: Settings):
    """The model gets what the bare framework would show it."""

    def look() -> Any:
        """Look."""
        return driver.make_result("a red dot", IMAGE)

    sent: list[Any] = []
    for options in ({"bare": True}, {"settings": settings}):
        script = Scripted([Call("look")], "done")
        await driver.agent([look], script, **options).run("Look.")
        sent.append((script.last.results["c1"].split("\n")[0], list(script.last.images)))
    assert sent[0] == sent[1]
    assert sent[0][1] == [base64.b64encode(IMAGE).decode()]


async def test_an_image_stays_beside_a_text_that_is_stored(driver: Driver, settings: Settings):
    def look() -> Any:
        """Look."""
        return driver.make_result(LOG, IMAGE)

    script = Scripted(
        [Call("look")], lambda request: extract(request, "the order that was refused"), lambda request: request.results["c2"]
    )
    assert NEEDLE in await driver.agent([look], script, settings=settings).run("Look.")
    assert len(script.requests[1].results["c1"]) < 10_000
    assert list(script.requests[1].images) == [base64.b64encode(IMAGE).decode()]
