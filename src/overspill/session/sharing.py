"""Sessions that outlive their proxy, in a process that runs many proxies. A returning client finds the jobs it left running."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from overspill.redaction.policy import Redaction
from overspill.session.session import Session
from overspill.settings import Settings


class SharedSession:
    """A session, how many clients use it, and how many of those are still connected."""

    def __init__(self, family: str, settings: Settings, secrets: Mapping[str, str], session: Session) -> None:
        self.session = session
        self.users = self.connected = 1
        self._family, self._settings, self._secrets = family, settings, secrets

    def fits(self, family: str, settings: Settings, secrets: Mapping[str, str]) -> bool:
        """Whether a new client may use the session: never while another is connected, who may be another person."""
        is_same = (family, settings) == (self._family, self._settings)
        hides_same = secrets == self._secrets or not Redaction(settings, {}).is_on
        return is_same and hides_same and not self.connected


class Sessions:
    """The shared sessions of a process. Each is closed when its last user has given it back."""

    def __init__(self) -> None:
        self._shared: list[SharedSession] = []

    async def borrow(
        self, family: str, settings: Settings, secrets: Mapping[str, str], make: Callable[[], Session]
    ) -> tuple[SharedSession, bool]:
        """A session that the client may use, and whether it is new."""
        for each in self._shared:
            if each.fits(family, settings, secrets):
                each.users += 1
                each.connected += 1
                return each, False
        session = make()
        await session.begin()
        self._shared.append(SharedSession(family, settings, secrets, session))
        return self._shared[-1], True

    def withdraw(self, shared: SharedSession) -> bool:
        """Lend a session to nobody more, unless others use it. Returns whether it was withdrawn."""
        if shared.users == 1 and shared in self._shared:
            self._shared.remove(shared)
        return shared.users == 1

    async def give_back(self, shared: SharedSession) -> None:
        is_last = self.withdraw(shared)
        shared.users -= 1
        if is_last:
            await shared.session.close()
