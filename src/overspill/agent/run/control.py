"""Ending a run from outside: gracefully or immediately."""

from __future__ import annotations

import anyio


class RunControl:
    """Shared by an agent and the agents it calls."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        """Encloses everything that the run does."""
        self._stop = anyio.Event()

    def stop(self) -> None:
        """Start no new calls, let running ones finish, then ask for the final report."""
        self._stop.set()

    def abort(self) -> None:
        """Cancel everything now."""
        self.scope.cancel()

    @property
    def is_stopping(self) -> bool:
        return self._stop.is_set()

    async def wait_for_stop(self) -> None:
        await self._stop.wait()
