"""Get a token with the SDK's OAuth flows: as a person in a browser, or as a registered client.

The SDK's errors and records hold what servers sent, the state and tokens, so neither leaves this module.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Final, TypeAlias
from urllib.parse import urljoin, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError, TokenStorage
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import extract_scope_from_www_auth, union_scopes
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from msgspec.structs import replace
from pydantic import AnyUrl

from overspill.errors import LoginNeeded, ServerError
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.login.callback import Paste, open_callback
from overspill.mcp.client.login.guarded import GuardedTransport, get_origin
from overspill.mcp.client.login.storage import Login, LoginStore, TokenResponse, Tokens
from overspill.mcp.client.streams import drop_records
from overspill.text.urls import is_loopback

ShowLink: TypeAlias = Callable[[str], Awaitable[None]]
_PUBLIC: Final = "none"  # a client without a secret
_MAX_REDIRECTS = 5
_PROBE = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_ACCEPT = {"accept": "application/json, text/event-stream"}
_FLOW_ERRORS = {
    "Authorization response": "the answer came from another authorization server than the one that was asked",
    "Authorization server metadata": "an authorization server gives another issuer than the one that was looked up",
    "Protected resource": "it says that it is another server",
}


async def log_in(config: ServerConfig, store: LoginStore, show: ShowLink, paste: Paste | None = None, scope: str = "") -> Login:
    """Let a person log in. The new login replaces the one that is there. Raises ServerError."""
    try:
        known = await store.read(config.url) or Login(server=config.url)
    except LoginNeeded:  # it cannot be read, and is replaced
        known = Login(server=config.url)
    if known.wanted_scope:
        scope = union_scopes(scope, union_scopes(known.scope, known.wanted_scope)) or ""
    async with open_callback(known.redirect_port) as callback:
        flow = _Flow(config, _find_registration(known, callback.port, scope))

        async def show_link(url: str) -> None:
            await flow.transport.find_addresses(httpx2.URL(url))  # a browser goes nowhere that we would not go
            callback.expect(url)
            await show(url)

        async def wait() -> AuthorizationCodeResult:
            return await callback.wait(paste)

        metadata = OAuthClientMetadata(
            redirect_uris=[AnyUrl(callback.address)], client_name="Overspill", token_endpoint_auth_method=_PUBLIC
        )
        document = config.login.client_metadata_url
        login = await flow.run(OAuthClientProvider(config.url, metadata, flow, show_link, wait, document), scope)
        async with store.lock(config.url):
            return await store.write(replace(login, redirect_port=callback.port))


async def authenticate_client(config: ServerConfig, environ: Mapping[str, str], clock: Callable[[], float]) -> Login:
    """Log in as the client that the settings have for the server, without a person. Raises ServerError."""
    client = config.login.clients[config.url]
    id, issuer, scope = client.client_id, client.issuer, client.scope
    secret = environ.get(client.private_key_env or client.client_secret_env or "")
    if not secret or not id or not issuer:
        raise ServerError(f"login.clients for {config.name} needs clientId, issuer, and the name of a variable that is set.")
    flow = _Flow(config, None, clock)
    if not client.private_key_env:
        return await flow.run(ClientCredentialsOAuthProvider(config.url, flow, id, secret, scope=scope, issuer=issuer), scope)
    key = SignedJWTParameters(issuer=id, subject=id, signing_key=secret, signing_algorithm=client.signing_algorithm)
    sign = key.create_assertion_provider()
    return await flow.run(PrivateKeyJWTOAuthProvider(config.url, flow, id, sign, scope, issuer), scope)


class _Flow(TokenStorage):
    """One run of a flow of the SDK, which asks this for a registration and hands over the tokens."""

    def __init__(
        self, config: ServerConfig, registration: OAuthClientInformationFull | None, clock: Callable[[], float] = time.time
    ) -> None:
        parts = urlsplit(config.url)
        if parts.scheme != "https" and parts.hostname != "localhost" and not is_loopback(parts.hostname or ""):
            raise ServerError(f"The address of {config.name} begins with http://, so others could read its token. Use https://.")
        self._config = config
        self._registration = registration
        self._clock = clock
        self.transport = GuardedTransport(config.url)
        self._tokens: OAuthToken | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return None

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._registration

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        pass

    async def run(self, provider: OAuthClientProvider, scope: str | None) -> Login:
        """Without a client of HTTP around it, which would log addresses."""
        name = self._config.name
        request = httpx2.Request("POST", self._config.url, json=_PROBE, headers={**_ACCEPT, **self._config.headers})
        try:
            with drop_records():
                async with aclosing(provider.async_auth_flow(request)) as flow:
                    await anext(flow)
                    outgoing = await flow.asend(self._challenge(await self.transport.handle_async_request(request), scope))
                    while outgoing is not request:
                        outgoing = await flow.asend(await self._send(outgoing))
                response = await self.transport.handle_async_request(request)
        except (OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL, ValueError) as problem:  # ValueError: also of pydantic
            raise ServerError(f"Logging in to {name} failed: {self._explain(problem)}.") from None
        if response.status_code == 401 or self._tokens is None:
            raise ServerError(f"Logging in to {name} failed: the server does not accept the token that it led to.")
        return self._make_login(provider.context, self._tokens)

    def _challenge(self, response: httpx2.Response, scope: str | None) -> httpx2.Response:
        """The server's first answer. It may want a login for its tools only, and let everybody in before that."""
        if response.status_code == 404 or response.status_code >= 500:
            raise ServerError(f"The server {self._config.name} answered with HTTP status {response.status_code}; check its url.")
        asked, before = union_scopes(extract_scope_from_www_auth(response), scope), response.headers.get("www-authenticate", "")
        headers = {"www-authenticate": f'Bearer scope="{asked}", {before}' if asked else before}
        return httpx2.Response(401, headers=headers, request=response.request)

    async def _send(self, request: httpx2.Request) -> httpx2.Response:
        """Follows a redirect of a question, and only to where it was asked."""
        for _ in range(_MAX_REDIRECTS):
            response = await self.transport.handle_async_request(request)
            target = request.url.join(response.headers.get("location", ""))
            if not response.has_redirect_location or request.method != "GET" or get_origin(target) != get_origin(request.url):
                return response
            request = httpx2.Request("GET", target, headers={**_ACCEPT})
        raise ServerError(f"The login was stopped: {request.url.host} redirects without end.")

    def _make_login(self, context: OAuthContext, tokens: OAuthToken) -> Login:
        client, metadata, url = context.client_info, context.oauth_metadata, self._config.url
        assert client
        login = Login(
            server=url,
            issuer=str(metadata.issuer) if metadata else "",
            token_endpoint=str(metadata.token_endpoint) if metadata else urljoin(url, "/token"),
            revocation_endpoint=str(metadata.revocation_endpoint or "") if metadata else "",
            resource=context.get_resource_url() if context.protected_resource_metadata else "",
            client_id=client.client_id,
            client_scope=client.scope or "",
            auth_method=client.token_endpoint_auth_method or _PUBLIC,
            reach=self.transport.reach or "public",
            tokens=Tokens(client_secret=client.client_secret or ""),
        )
        given = TokenResponse(tokens.access_token, tokens.refresh_token, tokens.expires_in, tokens.scope)
        return given.apply(login, self._clock())

    def _explain(self, problem: Exception) -> str:
        """Without what anybody sent."""
        if isinstance(problem, OAuthRegistrationError):
            return f"Overspill could not register itself: {self.transport.last}"
        if isinstance(problem, OAuthTokenError):
            return f"there is no token: {self.transport.last}"
        if isinstance(problem, httpx2.HTTPError):
            return f"{self.transport.last} ({type(problem).__name__})"
        known = (text for start, text in _FLOW_ERRORS.items() if str(problem).startswith(start))
        return next(known, f"{self.transport.last}, and not as OAuth defines it")


def _find_registration(known: Login, port: int, scope: str) -> OAuthClientInformationFull | None:
    """None if Overspill has to register: for the first time, at another port, or for more rights than before."""
    lacks_rights = known.client_scope and set(scope.split()) - set(known.client_scope.split())
    if not known.client_id or known.redirect_port != port or lacks_rights:
        return None
    return OAuthClientInformationFull(
        client_id=known.client_id,
        client_secret=known.tokens.client_secret or None,
        token_endpoint_auth_method=known.auth_method,
        issuer=known.issuer or None,
    )
