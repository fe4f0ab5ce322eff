"""How somebody outside ends a run: gracefully, or at once."""

from __future__ import annotations

import anyio


class RunControl:
    """Shared by an agent and the agents it calls."""

    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        """Everything runs inside it."""
        self._stop = anyio.Event()

    def stop(self) -> None:
        """No new calls: what runs comes to its end, then the final report is asked for."""
        self._stop.set()

    def abort(self) -> None:
        """Cancel everything now."""
        self.scope.cancel()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    async def wait_for_stop(self) -> None:
        await self._stop.wait()
