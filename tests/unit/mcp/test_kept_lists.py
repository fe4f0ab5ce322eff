"""What a server listed last is read from its file once, whoever asks for it."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.known_lists import KnownLists
from overspill.mcp.client.peer import ServerAccess


@pytest.mark.anyio
async def test_a_client_and_a_greeting_that_ask_at_the_same_time_read_the_file_once(tmp_path: Path):
    tmp_path.chmod(0o777)
    said: list[str] = []
    lists = KnownLists(str(tmp_path), ServerAccess(ServerConfig("one", "none"), {}, log=said.append))
    async with anyio.create_task_group() as group:
        for _ in range(2):
            group.start_soon(lists.load)
    assert len(said) == 1
