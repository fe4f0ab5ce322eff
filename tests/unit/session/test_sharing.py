"""Who may go on with a session that another proxy of the same hub has left."""

from typing import Any

import pytest

from overspill import Session, Settings
from overspill.session.sharing import Sessions

pytestmark = pytest.mark.anyio
HIDING: list[dict[str, Any]] = [{"redact": {"shown": "on"}}, {"servers": {"github": {"redactShown": "on"}}}]


@pytest.mark.parametrize(("given", "is_shared"), [({}, True), *((each, False) for each in HIDING)])
async def test_with_other_secrets_to_hide_it_is_another_session(given: dict[str, Any], is_shared: bool) -> None:
    settings, sessions = Settings(**given), Sessions()
    first, _ = await sessions.borrow("family", settings, {"API_TOKEN": "tuesday-7f3a9c"}, lambda: Session(settings))
    first.connected = 0
    second, is_new = await sessions.borrow("family", settings, {"API_TOKEN": "monday-1b2c3d"}, lambda: Session(settings))
    assert (second is first, is_new) == (is_shared, not is_shared)
    for each in (first, second):
        await sessions.give_back(each)
