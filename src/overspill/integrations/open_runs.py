"""Runs that stay open between calls, for frameworks that do not say when a run ends, or not always."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from contextlib import AsyncExitStack
from weakref import WeakSet

from overspill.integrations.sessions import Run, Sessions


class OpenRuns:
    """One for each key, up to a limit. The one that has been silent for longest is closed, and begins again when it calls."""

    def __init__(self, sessions: Sessions, limit: int) -> None:
        self._sessions, self._limit = sessions, limit
        self._runs: OrderedDict[Hashable, Run] = OrderedDict()
        self._connections: dict[Hashable, WeakSet[AsyncExitStack]] = {}

    async def find(self, key: Hashable, conversation: str, connection: AsyncExitStack | None = None) -> Run:
        """The run ends with a connection that used it, even if that fails or is cancelled."""
        if key not in self._runs:
            self._runs[key] = self._sessions.begin_run(conversation)
        self._runs.move_to_end(key)
        run = self._runs[key]
        if connection is not None and connection not in self._connections.setdefault(key, WeakSet()):
            self._connections[key].add(connection)
            connection.push_async_callback(self.close, key)
        if len(self._runs) > self._limit:
            await self.close(next(iter(self._runs)))
        return run

    async def close(self, key: Hashable) -> None:
        self._connections.pop(key, None)
        if (run := self._runs.pop(key, None)) is not None:
            await run.close()
