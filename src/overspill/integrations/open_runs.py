"""Runs that stay open between calls, for frameworks that do not say when a run ends, or not always."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from contextlib import AsyncExitStack
from typing import TypeVar
from weakref import WeakSet, WeakValueDictionary

from overspill.integrations.sessions import AgentRun, Sessions

_K = TypeVar("_K", bound=Hashable)


class OpenRuns:
    """A run for each key, up to a limit. Above it, the run that was idle for longest is closed, and begins anew when it calls."""

    def __init__(self, sessions: Sessions, limit: int) -> None:
        self._sessions, self._limit = sessions, limit
        self._runs: OrderedDict[Hashable, AgentRun] = OrderedDict()
        self._connections: dict[Hashable, WeakSet[AsyncExitStack]] = {}

    async def find(self, key: Hashable, conversation: str, connection: AsyncExitStack | None = None) -> AgentRun:
        """Find or begin a run. It ends with each connection that uses it, even if that fails or is cancelled."""
        if key not in self._runs:
            self._runs[key] = self._sessions.begin_run(conversation)
        self._runs.move_to_end(key)
        run = self._runs[key]
        if connection is not None and connection not in self._connections.setdefault(key, WeakSet()):
            self._connections[key].add(connection)
            connection.push_async_callback(self.close, key)
        while (idle := _find_idle(self._runs, self._limit, key)) is not None:
            await self.close(idle)
        return run

    async def close(self, key: Hashable) -> None:
        self._connections.pop(key, None)
        if (run := self._runs.pop(key, None)) is not None:
            await run.close()


class ResumableRuns:
    """For a framework that does not say when a run fails or is interrupted, and may resume it later: the next run of its
    conversation ends it. At most `limit` runs stay open like this, not counting busy runs."""

    def __init__(self, sessions: Sessions, limit: int) -> None:
        self._sessions, self._limit = sessions, limit
        self._begun: WeakValueDictionary[str, AgentRun] = WeakValueDictionary()
        self._resumed: OrderedDict[str, AgentRun] = OrderedDict()

    def begin(self, conversation: str) -> AgentRun:
        for earlier in (self._begun.pop(conversation, None), self._resumed.pop(conversation, None)):
            if earlier is not None:
                earlier.drop()
        run = self._sessions.begin_run(conversation)
        if conversation:
            self._begun[conversation] = run
        return run

    def resume(self, conversation: str) -> AgentRun:
        if not conversation:
            return self._sessions.begin_run()
        if conversation not in self._resumed:
            interrupted = self._begun.pop(conversation, None)
            if interrupted is not None and not interrupted.is_here:
                interrupted.drop()
                interrupted = None
            self._resumed[conversation] = interrupted or self._sessions.begin_run(conversation)
        self._resumed.move_to_end(conversation)
        while (idle := _find_idle(self._resumed, self._limit, conversation)) is not None:
            self._resumed.pop(idle).drop()  # closes its session, which opens again if the run goes on
        return self._resumed[conversation]

    def end(self, conversation: str) -> AgentRun:
        """Return the run that was resumed and has ended now. The caller must close it."""
        return self._resumed.pop(conversation, None) or self._sessions.begin_run()


def _find_idle(runs: OrderedDict[_K, AgentRun], limit: int, called: _K) -> _K | None:
    """Find a run to close if there are too many: the first that is not busy and was not just asked for."""
    if len(runs) <= limit:
        return None
    return next((key for key, run in list(runs.items()) if key != called and not run.is_busy), None)
