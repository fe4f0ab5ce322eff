"""Where logins are kept: one owner-only file for each server, with its tokens in the system's keyring if possible."""

from __future__ import annotations

import hashlib
import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias
from urllib.parse import urlsplit, urlunsplit

import anyio
import anyio.to_thread
import msgspec
from msgspec import Struct
from msgspec.structs import replace

from overspill.errors import LoginNeeded, ServerError
from overspill.mcp.host_configs.files import write_private
from overspill.store.files.lock import try_lock
from overspill.text.lenient_json import ready

Reach: TypeAlias = Literal["loopback", "private", "public"]
Stamp: TypeAlias = tuple[int, ...]
_LOCK_SECONDS = 60.0  # another process may be renewing the same token
_KEYRING_SECONDS = 20.0  # you may have to unlock it
_MIN_LIFETIME, _MAX_LIFETIME = 30.0, 10 * 365 * 86_400.0  # seconds; outside this range, a server is not believed
_MAX_AHEAD = 300.0  # seconds before its end that a token is renewed, at the most
_known: dict[Path, tuple[Stamp, Login]] = {}
"""Logins by file, for all sessions of this process. A login that could not be written exists nowhere else."""


class Tokens(Struct, frozen=True):
    access: str = ""
    refresh: str = ""
    client_secret: str = ""

    def __repr__(self) -> str:
        return "Tokens()"


class Login(Struct, frozen=True, kw_only=True):
    """A login at one server, whose URL may be a secret. Times are in seconds since 1970."""

    server: str
    issuer: str = ""
    token_endpoint: str = ""
    revocation_endpoint: str = ""
    resource: str = ""
    scope: str = ""
    wanted_scope: str = ""
    """The scopes that the server has asked for since the login."""
    expires_at: float | None = None
    renew_at: float | None = None
    settles_at: float = 0.0
    """Until this time, a refused token is not renewed, because a refusal has just led to a renewal."""
    client_id: str = ""
    client_scope: str = ""
    """The scopes that the registration allows; empty if they are not known."""
    auth_method: str = ""
    redirect_port: int = 0
    """The port that the browser returns to. It is part of the registration."""
    reach: Reach = "public"
    """How far away the server was. It cannot refer us to anything nearer."""
    in_keyring: bool = False
    tokens: Tokens = Tokens()


class TokenResponse(Struct, frozen=True):
    access_token: Annotated[str, msgspec.Meta(pattern=r"\A[!-~]+\Z")]
    """Only characters that a header can hold."""
    refresh_token: str | None = None
    expires_in: float | str | None = None
    scope: str | None = None

    def apply(self, login: Login, now: float) -> Login:
        """Return the login with these tokens. What the server leaves out keeps its old value."""
        expires_at = renew_at = None
        with suppress(ValueError, TypeError):  # not a number, or not stated
            lifetime = min(max(_MIN_LIFETIME, float(self.expires_in)), _MAX_LIFETIME)  # pyright: ignore[reportArgumentType]
            expires_at, renew_at = now + lifetime, now + lifetime - min(lifetime / 5, _MAX_AHEAD)
        tokens = replace(login.tokens, access=self.access_token, refresh=self.refresh_token or login.tokens.refresh)
        scope = login.scope if self.scope is None else self.scope
        return replace(login, tokens=tokens, scope=scope, expires_at=expires_at, renew_at=renew_at)


class LoginStore:
    """Logins are separate for each `owner`: a client over HTTP, as `identify_token` names it. Empty for the user."""

    def __init__(self, environ: Mapping[str, str], owner: str = "") -> None:
        base, home = Path(environ.get("XDG_DATA_HOME", "")), environ.get("HOME") or os.path.expanduser("~")
        self._owner = owner
        self._folder = (base if base.is_absolute() else Path("/", home, ".local", "share")) / "overspill" / "logins" / owner

    def stamp(self, url: str) -> Stamp:
        """Return a value that changes whenever the stored login does; empty without a login."""
        try:
            found = os.stat(self._file(url))
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_ino, found.st_size

    async def wait_for_change(self, url: str, before: Stamp) -> None:
        while self.stamp(url) == before:  # noqa: ASYNC110  # another process writes it
            await anyio.sleep(0.2)

    def list(self) -> list[Login]:
        """List all logins that can be read, without tokens that are in the keyring."""
        found: list[Login] = []
        for file in sorted(self._folder.glob("*.json")):
            with suppress(OSError, msgspec.DecodeError):
                found.append(msgspec.json.decode(file.read_bytes(), type=ready(Login)))
        return found

    async def read(self, url: str) -> Login | None:
        """Return the login for this URL, or None. Raises LoginNeeded if it is stored but cannot be read."""
        file, stamp = self._file(url), self.stamp(url)
        before, login = _known.get(file, ((), None))
        if before == stamp:
            return login
        try:
            login = msgspec.json.decode(file.read_bytes(), type=ready(Login))
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError):
            raise LoginNeeded("The stored login cannot be read.") from None
        if login.in_keyring:
            secret = await _use_keyring(lambda keyring: keyring.get_password("overspill", self._name(url)))
            if not secret:
                raise LoginNeeded("The login is in the system's keyring, which cannot be opened here.")
            login = replace(login, tokens=msgspec.json.decode(secret, type=ready(Tokens)))
        _known[file] = stamp, login
        return login

    async def write(self, login: Login) -> Login:
        """Store a login, and return it with a note of where its tokens are. After an OSError, only this process has it."""
        file, name, secret = self._file(login.server), self._name(login.server), msgspec.json.encode(login.tokens).decode()

        def keep(keyring: Any) -> bool:
            keyring.set_password("overspill", name, secret)
            return bool(keyring.get_password("overspill", name) == secret)

        login = replace(login, in_keyring=bool(await _use_keyring(keep)))
        kept = replace(login, tokens=Tokens()) if login.in_keyring else login
        try:
            write_private(file, msgspec.json.encode(kept).decode())
        finally:
            _known[file] = self.stamp(login.server), login
        return login

    async def remove(self, login: Login) -> None:
        if login.in_keyring:
            await _use_keyring(lambda keyring: keyring.delete_password("overspill", self._name(login.server)))
        _known.pop(self._file(login.server), None)
        self._file(login.server).unlink(missing_ok=True)

    @asynccontextmanager
    async def lock(self, url: str) -> AsyncGenerator[None]:
        """Lock a login against all other sessions and processes. Raises OSError, or ServerError after a minute of waiting."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(self._file(url).with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            with anyio.move_on_after(_LOCK_SECONDS) as waiting:
                while not try_lock(fd):  # noqa: ASYNC110  # another process holds it
                    await anyio.sleep(0.02)
            if waiting.cancelled_caught:
                raise ServerError("Another process has been renewing the login for a minute. Try again.")
            yield
        finally:
            os.close(fd)

    def _name(self, url: str) -> str:
        return f"{self._owner}{normalize(url)}"

    def _file(self, url: str) -> Path:
        return self._folder / f"{hashlib.sha256(normalize(url).encode()).hexdigest()[:32]}.json"


def normalize(url: str) -> str:
    parts = urlsplit(url)
    return urlunsplit(parts._replace(scheme=parts.scheme.lower(), netloc=parts.netloc.lower(), fragment=""))


async def _use_keyring(work: Callable[[Any], Any]) -> Any:
    """Run `work` on the keyring. Returns None if there is no safe keyring, or if it fails or does not answer."""

    def run() -> Any:
        try:
            core: Any = import_module("keyring.core")  # an extra
            return work(core) if core.recommended(core.get_keyring()) else None
        except Exception:  # backends raise all kinds of errors, whose text may hold a secret
            return None

    with anyio.move_on_after(_KEYRING_SECONDS):
        return await anyio.to_thread.run_sync(run, abandon_on_cancel=True)
    return None
