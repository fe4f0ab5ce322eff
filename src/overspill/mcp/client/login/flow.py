"""Get a token with the SDK's OAuth flows: as a person in a browser, or as a registered client.

The SDK's errors and records hold what servers sent, the state and tokens, so neither leaves this module.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from types import SimpleNamespace
from typing import Any, Final, TypeAlias
from urllib.parse import urljoin, urlsplit

import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.auth.oauth2 import OAuthContext
from mcp.client.auth.utils import extract_scope_from_www_auth, is_valid_client_metadata_url, union_scopes
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from msgspec.structs import replace
from pydantic import AnyUrl

from overspill.errors import LoginNeeded, ServerError
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.login.callback import Paste, open_callback
from overspill.mcp.client.login.guarded import GuardedTransport
from overspill.mcp.client.login.storage import Login, LoginStore, TokenResponse, Tokens
from overspill.mcp.client.streams import drop_records
from overspill.text.urls import is_loopback

ShowLink: TypeAlias = Callable[[str], Awaitable[None]]
_PUBLIC: Final = "none"  # a client without a secret
_PROBE = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
_ACCEPT = {"accept": "application/json, text/event-stream"}
_FLOW_ERRORS = {
    "Authorization response": "the answer came from the wrong authorization server",
    "Authorization server metadata": "an authorization server gives another issuer than the one that was looked up",
    "Protected resource": "it says that it is another server",
}


async def log_in(config: ServerConfig, store: LoginStore, show: ShowLink, paste: Paste | None = None, scope: str = "") -> Login:
    """Let a person log in. The new login replaces an existing one. Raises ServerError."""
    try:
        known = await store.read(config.url) or Login(server=config.url)
    except LoginNeeded:  # the stored login cannot be read, and is replaced
        known = Login(server=config.url)
    if known.wanted_scope:
        scope = union_scopes(scope, union_scopes(known.scope, known.wanted_scope)) or ""
    document = config.login.client_metadata_url
    if document and not is_valid_client_metadata_url(document):
        raise ServerError("login.clientMetadataUrl must be an https address with a path.")
    async with open_callback(known.redirect_port) as callback:
        transport = GuardedTransport(config.url)

        async def show_link(url: str) -> None:
            await transport.find_addresses(httpx2.URL(url))  # never send the browser to an address that we would refuse
            callback.expect(url)
            await show(url)

        async def wait() -> AuthorizationCodeResult:
            return await callback.wait(paste)

        metadata = OAuthClientMetadata(
            redirect_uris=[AnyUrl(callback.address)], client_name="Overspill", token_endpoint_auth_method=_PUBLIC
        )
        storage = _keep_nothing(_find_registration(known, callback.port, scope))
        provider = OAuthClientProvider(config.url, metadata, storage, show_link, wait, document)
        login = await _run(config, transport, provider, scope)
        async with store.lock(config.url):
            return await store.write(replace(login, redirect_port=callback.port))


async def authenticate_client(config: ServerConfig, environ: Mapping[str, str], clock: Callable[[], float]) -> Login:
    """Log in as the client that the settings name for the server, without a person. Raises ServerError."""
    client, storage = config.login.clients[config.url], _keep_nothing(None)
    id, issuer, scope = client.client_id, client.issuer, client.scope
    secret = environ.get(client.private_key_env or client.client_secret_env or "")
    if not secret or not id or not issuer:
        raise ServerError(f"login.clients for {config.name} needs clientId, issuer, and the name of a variable that is set.")
    if client.private_key_env:
        key = SignedJWTParameters(issuer=id, subject=id, signing_key=secret, signing_algorithm=client.signing_algorithm)
        provider = PrivateKeyJWTOAuthProvider(config.url, storage, id, key.create_assertion_provider(), scope, issuer)
    else:
        provider = ClientCredentialsOAuthProvider(config.url, storage, id, secret, scope=scope, issuer=issuer)
    return await _run(config, GuardedTransport(config.url), provider, scope, clock)


def _keep_nothing(registration: OAuthClientInformationFull | None) -> Any:
    """Storage for the SDK that holds at most a registration. We take everything else from the SDK's context."""

    async def get_client_info() -> OAuthClientInformationFull | None:
        return registration

    async def ignore(*_: object) -> None:
        pass

    return SimpleNamespace(get_tokens=ignore, set_tokens=ignore, get_client_info=get_client_info, set_client_info=ignore)


def _find_registration(known: Login, port: int, scope: str) -> OAuthClientInformationFull | None:
    """Find our registration. None if Overspill must register: for the first time, at another port, or for more rights."""
    lacks_rights = known.client_scope and set(scope.split()) - set(known.client_scope.split())
    if not known.client_id or known.redirect_port != port or lacks_rights:
        return None
    return OAuthClientInformationFull(
        client_id=known.client_id,
        client_secret=known.tokens.client_secret or None,
        token_endpoint_auth_method=known.auth_method,
        issuer=known.issuer or None,
    )


async def _run(
    config: ServerConfig,
    transport: GuardedTransport,
    provider: OAuthClientProvider,
    scope: str | None,
    clock: Callable[[], float] = time.time,
) -> Login:
    """Send the server any request, and answer the questions the SDK then has. An ordinary HTTP client would log addresses."""
    parts = urlsplit(config.url)
    if parts.scheme != "https" and parts.hostname != "localhost" and not is_loopback(parts.hostname or ""):
        raise ServerError(f"The address of {config.name} begins with http://, so others could read its token. Use https://.")
    request = httpx2.Request("POST", config.url, json=_PROBE, headers={**_ACCEPT, **config.headers})
    try:
        with drop_records():
            async with aclosing(provider.async_auth_flow(request)) as flow:
                await anext(flow)
                response = await transport.handle_async_request(request)
                if (status := response.status_code) == 404 or status >= 500:
                    raise ServerError(f"The server {config.name} answered with HTTP status {status}; check its url.")
                outgoing = await flow.asend(_ask_for_login(response, scope))
                while outgoing is not request:
                    outgoing = await flow.asend(await transport.handle_async_request(outgoing))
                response = await transport.handle_async_request(request)
    except (OAuthFlowError, httpx2.HTTPError, httpx2.InvalidURL, ValueError) as problem:  # ValueError: also of pydantic
        raise ServerError(f"Logging in to {config.name} failed: {_explain(problem, transport)}.") from None
    if response.status_code == 401:
        raise ServerError(f"Logging in to {config.name} failed: the server does not accept the token that it led to.")
    return _make_login(provider.context, transport, clock())


def _ask_for_login(response: httpx2.Response, scope: str | None) -> httpx2.Response:
    """Turn any answer into a request to log in with the scopes we want: some servers require a login only for their tools."""
    asked, before = union_scopes(extract_scope_from_www_auth(response), scope), response.headers.get("www-authenticate", "")
    headers = {"www-authenticate": f'Bearer scope="{asked}", {before}' if asked else before}
    return httpx2.Response(401, headers=headers, request=response.request)


def _make_login(context: OAuthContext, transport: GuardedTransport, now: float) -> Login:
    client, metadata, tokens, url = context.client_info, context.oauth_metadata, context.current_tokens, context.server_url
    assert client
    assert tokens
    login = Login(
        server=url,
        issuer=str(metadata.issuer) if metadata else "",
        token_endpoint=str(metadata.token_endpoint) if metadata else urljoin(url, "/token"),
        revocation_endpoint=str(metadata.revocation_endpoint or "") if metadata else "",
        resource=context.get_resource_url() if context.protected_resource_metadata else "",
        client_id=client.client_id,
        client_scope=client.scope or "",
        auth_method=client.token_endpoint_auth_method or _PUBLIC,
        reach=transport.reach or "public",
        tokens=Tokens(client_secret=client.client_secret or ""),
    )
    return TokenResponse(tokens.access_token, tokens.refresh_token, tokens.expires_in, tokens.scope).apply(login, now)


def _explain(problem: Exception, transport: GuardedTransport) -> str:
    """Say what went wrong, without quoting what a server or a browser sent."""
    if isinstance(problem, OAuthRegistrationError):
        return f"Overspill could not register itself: {transport.last}"
    if isinstance(problem, OAuthTokenError):
        return f"there is no token: {transport.last}"
    if isinstance(problem, httpx2.HTTPError):
        return f"{transport.last} ({type(problem).__name__})"
    known = (text for start, text in _FLOW_ERRORS.items() if str(problem).startswith(start))
    return next(known, f"{transport.last}, and not as OAuth defines it")
