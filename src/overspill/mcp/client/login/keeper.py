"""Keeps the token of one server: renews it before it expires, once among all processes, and says when a person has to log in."""

from __future__ import annotations

import base64
import shlex
import time
from collections.abc import Callable, Mapping
from typing import TypeAlias
from urllib.parse import quote

import httpx2
import msgspec
from msgspec.structs import replace

from overspill.errors import BadRequest, LoginNeeded, ServerError
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.login.guarded import GuardedTransport
from overspill.mcp.client.login.storage import Login, LoginStore, Stamp, TokenResponse
from overspill.mcp.host_configs.entries import may_hold_secret

Log: TypeAlias = Callable[[str], None]
_PAUSE = 30.0  # seconds between two tries to renew a token that is still good
_MAX_SCOPE_CHARS = 2_000


class TokenKeeper:
    """`environ` has the place of the logins, and the secrets that the settings name."""

    def __init__(
        self,
        config: ServerConfig,
        environ: Mapping[str, str],
        log: Log = lambda _: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._environ = environ
        self._log = log
        self._clock = clock
        self._store = LoginStore(environ)
        self._login: Login | None = None
        self._stamp: Stamp | None = None
        self._retry_at = 0.0

    async def get_token(self) -> str:
        """A token to send, or an empty string: the server decides whether it lets us in without. Raises ServerError."""
        login, now = await self._load(), self._clock()
        if login is None:
            return await self.renew("") if self._has_client else ""
        is_good = login.expires_at is None or now < login.expires_at
        if login.renew_at is None or now < login.renew_at or (is_good and now < self._retry_at):
            return login.tokens.access
        try:
            return await self.renew(login.tokens.access) or login.tokens.access
        except ServerError:
            if not is_good:
                raise
            self._retry_at = now + _PAUSE
            return login.tokens.access

    async def renew(self, rejected: str) -> str:
        """Another token than this one, which is of no more use; empty if only a person can get one.

        Reads the login again once it is locked: another process may have renewed it, or a person may have logged in.
        """
        try:
            async with self._store.lock(self._config.url):
                login = await self._load()
                if login is not None and login.tokens.access != rejected:
                    return login.tokens.access
                if self._has_client:
                    return await self._authenticate()
                return "" if login is None else await self._refresh(login)
        except OSError as problem:
            raise self._explain_failure(f"{problem.strerror}") from None

    async def note_wanted(self, scope: str) -> None:
        """Remember what else the server asks for, until the next login."""
        login = await self._load()
        if login is None or len(scope) > _MAX_SCOPE_CHARS or not scope.isascii() or not scope.isprintable():
            return
        wanted = " ".join(dict.fromkeys(f"{login.wanted_scope} {scope}".split()))
        if wanted != login.wanted_scope:
            async with self._store.lock(self._config.url):
                await self._save(replace(await self._load() or login, wanted_scope=wanted))

    def explain(self, *, wants_more: bool = False) -> LoginNeeded:
        """For the model to read, and for the person in the log."""
        name, url = self._config.name, self._config.url
        if self._has_client:
            return LoginNeeded(f"The server {name} does not accept the client in your settings. Check login.clients.")
        command = shlex.join(["overspill", "login", name if may_hold_secret(url) else url])
        what = "asks for more rights than its login has" if wants_more else "needs a login"
        return LoginNeeded(f"The server {name} {what}. Ask the user to run this in a terminal, and then try again: {command}")

    @property
    def _has_client(self) -> bool:
        """Whether the settings have a client for the server, so that nobody has to log in."""
        return self._config.url in self._config.login.clients

    async def _load(self) -> Login | None:
        """The login as it is stored now."""
        stamp = self._store.stamp(self._config.url)
        if stamp != self._stamp:
            try:
                self._login, self._stamp = await self._store.read(self._config.url), stamp
            except LoginNeeded as problem:
                raise LoginNeeded(f"{problem} {self.explain()}") from None
        return self._login

    async def _save(self, login: Login) -> None:
        """Keep it, also when it cannot be written: the refresh token before it may be worth nothing any more."""
        try:
            self._login = await self._store.write(login)
            self._stamp = self._store.stamp(login.server)
        except OSError as problem:
            self._login = login
            self._log(
                f"The renewed login of {self._config.name} could not be written: {problem.strerror}. It works until this process "
                "ends. After that, log in again."
            )

    async def _refresh(self, login: Login) -> str:
        if not login.tokens.refresh or not login.token_endpoint:
            return ""
        data = {"grant_type": "refresh_token", "refresh_token": login.tokens.refresh}
        transport = GuardedTransport(login.server, login.reach)
        try:
            response = await transport.handle_async_request(
                _build_form(login.token_endpoint, login, data | ({"resource": login.resource} if login.resource else {}))
            )
            if response.status_code == 200:
                renewed = msgspec.json.decode(response.content, type=TokenResponse, strict=False)
                await self._save(renewed.apply(login, self._clock()))
                return renewed.access_token
        except httpx2.HTTPError as problem:
            raise self._explain_failure(f"{transport.last} ({type(problem).__name__})") from None
        except msgspec.DecodeError:
            raise self._explain_failure(f"{transport.last}, and without a token") from None
        if response.status_code in (408, 429) or response.status_code >= 500:
            raise self._explain_failure(transport.last)
        if transport.error in ("invalid_grant", "invalid_client", "unauthorized_client"):  # for good
            client_id = login.client_id if transport.error == "invalid_grant" else ""
            await self._save(replace(login, client_id=client_id, tokens=replace(login.tokens, refresh="")))
        return ""

    async def _authenticate(self) -> str:
        from overspill.mcp.client.login.flow import authenticate_client  # noqa: PLC0415  # few servers need it

        login = await authenticate_client(self._config, self._environ, self._clock)
        await self._save(login)
        return login.tokens.access

    def _explain_failure(self, why: str) -> ServerError:
        return ServerError(f"The login at {self._config.name} could not be renewed: {why}. Try again.")


async def revoke(config: ServerConfig, store: LoginStore) -> bool:
    """Remove the login, and ask the server to revoke it. Whether it has agreed. Raises BadRequest if there is none."""
    try:
        login = await store.read(config.url)
    except LoginNeeded:  # it cannot be read, but removed
        login = Login(server=config.url, in_keyring=True)
    if login is None:
        raise BadRequest(f"There is no login at {config.name}. List the logins with `overspill login --list`.")
    await store.remove(login)
    if not login.revocation_endpoint:
        return False
    request = _build_form(login.revocation_endpoint, login, {"token": login.tokens.refresh or login.tokens.access})
    try:
        return (await GuardedTransport(login.server, login.reach).handle_async_request(request)).status_code == 200
    except (httpx2.HTTPError, ServerError):
        return False


def _build_form(url: str, login: Login, data: dict[str, str]) -> httpx2.Request:
    """A request of a registered client, which says who it is in the way that it was registered for."""
    headers = {"accept": "application/json"}
    if login.auth_method == "client_secret_basic":
        pair = f"{quote(login.client_id, safe='')}:{quote(login.tokens.client_secret, safe='')}"
        headers["authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
    elif login.auth_method == "client_secret_post":
        data = {**data, "client_secret": login.tokens.client_secret}
    return httpx2.Request("POST", url, data={**data, "client_id": login.client_id}, headers=headers)
