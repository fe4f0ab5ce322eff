"""Whether a login will go on working: can it be found and renewed, and is the clock right?"""

from __future__ import annotations

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import httpx2
from mcp.client.auth.utils import build_oauth_authorization_server_metadata_discovery_urls

from overspill.errors import ServerError
from overspill.mcp.client.login.guarded import GuardedTransport
from overspill.mcp.client.login.storage import Login, LoginStore

_MAX_SKEW = 60.0  # seconds


async def check_login(url: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """What there is to say about it, and what is wrong. Both are empty if nobody has logged in."""
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
    transport = GuardedTransport(login.server, login.reach)
    for url in build_oauth_authorization_server_metadata_discovery_urls(login.issuer or None, login.server):
        try:
            response = await transport.handle_async_request(httpx2.Request("GET", url))
        except httpx2.HTTPError as problem:
            return f"The login cannot be renewed now: {transport.last} ({type(problem).__name__})."
        date = response.headers.get("date")
        skew = time.time() - parsedate_to_datetime(date).timestamp() if date else 0.0
        if abs(skew) > _MAX_SKEW:
            return (
                f"Your clock and that of {httpx2.URL(url).host} differ by {abs(skew):.0f} s. Set yours, or tokens seem expired."
            )
        if response.status_code == 200:
            return ""
    return f"The authorization server no longer describes itself: {transport.last}. Log in again."
