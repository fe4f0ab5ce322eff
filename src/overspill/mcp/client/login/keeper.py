"""Keeps the token of one server: renews it before it expires, in one process only, and says when a person must log in."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import TypeAlias
from urllib.parse import quote

import anyio
import httpx2
import msgspec
from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls, union_scopes
from msgspec.structs import replace

from overspill.errors import BadRequest, LoginNeeded, ServerError
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.login.guarded import GuardedTransport
from overspill.mcp.client.login.storage import Login, LoginStore, TokenResponse
from overspill.mcp.host_configs.entries import may_hold_secret
from overspill.text.lenient_json import ready

Log: TypeAlias = Callable[[str], None]
_PAUSE = 30.0  # seconds between two tries to renew a token that is still good
_MAX_SCOPE_CHARS = 2_000
_MAX_SKEW = 60.0  # seconds


class TokenKeeper:
    """`environ` says where logins are stored, and has the secrets that the settings name."""

    def __init__(
        self, config: ServerConfig, environ: Mapping[str, str], log: Log = lambda _: None, clock: Callable[[], float] = time.time
    ) -> None:
        self._config = config
        self._environ = environ
        self._log = log
        self._clock = clock
        self._store = LoginStore(environ, config.login_owner)
        self._retry_at = 0.0
        self._has_client = config.url in config.login.clients  # a registered client needs no person to log in

    async def get_token(self) -> str:
        """Return a token to send. Without one, return an empty string, and let the server decide. Raises ServerError."""
        login, now = await self._read(), self._clock()
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

    async def renew(self, token: str, *, is_refused: bool = False) -> str:
        """Return a new token in place of one that no longer works; empty if only a person can get one.

        Reads the login again once it is locked: another process may have renewed it, or a person may have logged in.
        """
        renewed: Login | None = None
        try:
            async with self._store.lock(self._config.url):
                login, now = await self._read(), self._clock()
                if login is not None and login.tokens.access != token:
                    return login.tokens.access
                if login is not None and is_refused and now < login.settles_at:
                    return ""  # the server refuses every token
                # A refresh token is spent once it is sent, so its answer is stored even if its caller has gone.
                with anyio.CancelScope(shield=not self._has_client):
                    if renewed := await self._ask_for_token(login):
                        renewed = await self._save(replace(renewed, settles_at=now + _PAUSE if is_refused else 0.0))
        except OSError as problem:
            raise self._explain_failure(f"{problem.strerror}") from None
        return renewed.tokens.access if renewed else ""

    async def note_wanted(self, scope: str) -> None:
        """Remember what else the server asks for, until the next login. Writes only new scopes: a change makes us try again."""
        if not self._adds_to(await self._read(), scope):
            return
        with suppress(OSError):  # if nothing can be written, the user has seen that already
            async with self._store.lock(self._config.url):
                login = await self._read()
                if login is not None and self._adds_to(login, scope):
                    await self._save(replace(login, wanted_scope=union_scopes(login.wanted_scope, scope) or ""))

    @staticmethod
    def _adds_to(login: Login | None, scope: str) -> bool:
        known = "" if login is None else login.wanted_scope
        is_new = login is not None and not set(scope.split()) <= set(known.split())
        return is_new and len(known) + len(scope) <= _MAX_SCOPE_CHARS and scope.isascii() and scope.isprintable()

    def explain(self, *, wants_more: bool = False) -> LoginNeeded:
        """Make the error that the model reads, and that a person sees in the log."""
        name, url, owner = self._config.name, self._config.url, self._config.login_owner
        if self._has_client:
            return LoginNeeded(f"The server {name} does not accept the client in your settings. Check login.clients.")
        command = shlex.join(["overspill", "login", name if may_hold_secret(url) else url])
        what = "asks for more rights than its login has" if wants_more else "needs a login"
        if owner:
            command = f"{command} --token-env VARIABLE, with the variable that holds your token for the proxy"
        where = "on the proxy's machine" if owner else "in a terminal"
        return LoginNeeded(f"The server {name} {what}. Ask the user to run this {where}, and then try again: {command}")

    async def _read(self) -> Login | None:
        try:
            return await self._store.read(self._config.url)
        except LoginNeeded as problem:
            raise LoginNeeded(f"{problem} {self.explain()}") from None

    async def _save(self, login: Login) -> Login:
        """Store a login. If that fails, use it until the process ends: the previous refresh token may no longer work."""
        try:
            await self._store.write(login)
        except OSError as problem:
            self._log(
                f"The renewed login of {self._config.name} could not be written: {problem.strerror}. It works until this process "
                "ends. After that, log in again."
            )
        return login

    async def _ask_for_token(self, login: Login | None) -> Login | None:
        if self._has_client:
            from overspill.mcp.client.login.flow import authenticate_client  # noqa: PLC0415  # few servers need it

            return await authenticate_client(self._config, self._environ, self._clock)
        return None if login is None or not login.tokens.refresh or not login.token_endpoint else await self._refresh(login)

    async def _refresh(self, login: Login) -> Login | None:
        data = {"grant_type": "refresh_token", "refresh_token": login.tokens.refresh, "resource": login.resource}
        transport = GuardedTransport(login.server, login.reach)
        try:
            response = await _post(transport, login, login.token_endpoint, data)
            if response.status_code == 200:
                return msgspec.json.decode(response.content, type=ready(TokenResponse), strict=False).apply(login, self._clock())
        except httpx2.HTTPError as problem:
            raise self._explain_failure(f"{transport.last} ({type(problem).__name__})") from None
        except msgspec.DecodeError:
            raise self._explain_failure(f"{transport.last}, and without a token") from None
        if response.status_code in (408, 429) or response.status_code >= 500:
            raise self._explain_failure(transport.last)
        if transport.error in ("invalid_grant", "invalid_client", "unauthorized_client"):  # for good
            client_id = login.client_id if transport.error == "invalid_grant" else ""
            await self._save(replace(login, client_id=client_id, tokens=replace(login.tokens, refresh="")))
        return None

    def _explain_failure(self, why: str) -> ServerError:
        return ServerError(f"The login at {self._config.name} could not be renewed: {why}. Try again.")


async def revoke(config: ServerConfig, store: LoginStore) -> bool:
    """Remove the login and ask the server to revoke it. Returns whether it agreed. Raises BadRequest without a login."""
    try:
        login = await store.read(config.url)
    except LoginNeeded:  # a login that cannot be read can still be removed
        login = Login(server=config.url, in_keyring=True)
    if login is None:
        raise BadRequest(f"There is no login at {config.name}. List the logins with `overspill login --list`.")
    await store.remove(login)
    transport, token = GuardedTransport(login.server, login.reach), login.tokens.refresh or login.tokens.access
    try:
        address = login.revocation_endpoint
        return bool(address) and (await _post(transport, login, address, {"token": token})).status_code == 200
    except (httpx2.HTTPError, ServerError):
        return False


async def check_login(url: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return a description of a login, and what is wrong with it. Both are empty before the first login."""
    try:
        login = await LoginStore(environ).read(url)
        return ("", "") if login is None else (_describe(login), await _find_problem(login))
    except ServerError as problem:
        return "", str(problem)


def _describe(login: Login) -> str:
    left = "at a time that the server does not say"
    if login.expires_at is not None:
        minutes = (login.expires_at - time.time()) / 60
        left = f"in {minutes:.0f} min" if minutes > 0 else f"{-minutes:.0f} min ago"
    renewal = "Overspill renews it." if login.tokens.refresh else "It cannot be renewed: log in again when it has expired."
    return f"Logged in, scopes: {login.scope or 'not stated'}. The token expires {left}. {renewal}"


async def _find_problem(login: Login) -> str:
    """Return why a login cannot be renewed; empty if its authorization server answers and the clocks agree."""
    transport = GuardedTransport(login.server, login.reach)
    for url in build_oauth_authorization_server_metadata_discovery_urls(login.issuer or None, login.server):
        try:
            response = await transport.handle_async_request(httpx2.Request("GET", url))
        except httpx2.HTTPError as problem:
            return f"The login cannot be renewed now: {transport.last} ({type(problem).__name__})."
        if (skew := _measure_skew(response.headers.get("date", ""))) > _MAX_SKEW:
            return f"Your clock and that of {httpx2.URL(url).host} differ by {skew:.0f} s. Set yours, or tokens seem expired."
        if response.status_code == 200:
            return ""
    return f"The authorization server no longer describes itself: {transport.last}. Log in again."


def _measure_skew(date: str) -> float:
    """Return how far apart the clocks are, in seconds; 0 if the server sends no time."""
    with suppress(ValueError, TypeError, OverflowError):
        return abs(time.time() - parsedate_to_datetime(date).timestamp())
    return 0.0


async def _post(transport: GuardedTransport, login: Login, url: str, data: dict[str, str]) -> httpx2.Response:
    """Send data as a registered client, which identifies itself in the way that its registration says."""
    client = {"client_id": login.client_id}
    if login.auth_method == "client_secret_post":
        client["client_secret"] = login.tokens.client_secret
    fields = {name: value for name, value in (data | client).items() if value}
    request = httpx2.Request("POST", url, data=fields, headers={"accept": "application/json"})
    if login.auth_method == "client_secret_basic":
        id, secret = (quote(each, safe="") for each in (login.client_id, login.tokens.client_secret))
        request = next(httpx2.BasicAuth(id, secret).auth_flow(request))
    return await transport.handle_async_request(request)
