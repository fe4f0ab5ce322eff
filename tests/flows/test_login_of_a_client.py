"""A client that the settings name logs in without a person: with a secret, or with a key."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from login_servers import Door, OidcProvider, door, oidc_provider

from overspill.errors import ServerError
from overspill.mcp.client.login.storage import LoginStore
from overspill.mcp.client.server import open_servers
from overspill.settings.keys import LoginClient

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.fixture(scope="module")
def oidc(key: rsa.RSAPrivateKey) -> Iterator[OidcProvider]:
    with oidc_provider(key=jwt.algorithms.RSAAlgorithm.to_jwk(key.public_key())) as started:
        yield started


@pytest.fixture
def notes(oidc: OidcProvider) -> Iterator[Door]:
    with door(oidc.introspect) as opened:
        opened.describe(oidc.issuer)
        yield opened


@pytest.fixture
def environ(tmp_path: Path, key: rsa.RSAPrivateKey) -> dict[str, str]:
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return {"XDG_DATA_HOME": str(tmp_path), "SECRET": "of-the-machine", "KEY": pem, "WRONG": "a-wrong-secret"}


async def call(notes: Door, environ: dict[str, str], **client: Any) -> str:
    config = notes.config(clients={notes.url: LoginClient(**client)})
    async with open_servers([config], environ) as servers:
        return str((await servers["notes"].call_tool("log", {})).content[0]["text"])[:4]


@pytest.mark.parametrize(
    "client", [{"client_id": "machine", "client_secret_env": "SECRET"}, {"client_id": "signer", "private_key_env": "KEY"}]
)
async def test_a_client_logs_in_by_itself_and_again_when_its_token_is_gone(
    notes: Door, oidc: OidcProvider, environ: dict[str, str], client: dict[str, str]
):
    client |= {"issuer": oidc.issuer, "scope": "notes:read"}
    assert await call(notes, environ, **client) == "line"
    first = await LoginStore(environ).read(notes.url)
    assert first
    assert await call(notes, environ, **client) == "line"
    assert await LoginStore(environ).read(notes.url) == first  # it was used again
    oidc_check = notes.check
    notes.check = lambda token: None if token == first.tokens.access else oidc_check(token)
    assert await call(notes, environ, **client) == "line"


@pytest.mark.parametrize(
    ("client", "expected"),
    [
        ({"client_secret_env": "WRONG"}, r"there is no token: 127.0.0.1 answered with HTTP status 401 \(invalid_client\)"),
        ({"client_secret_env": "MISSING"}, "needs clientId, issuer, and the name of a variable that is set"),
        ({"client_secret_env": "SECRET", "issuer": "https://elsewhere.example"}, "another issuer"),
    ],
)
async def test_a_client_that_cannot_log_in_says_why(
    notes: Door, oidc: OidcProvider, environ: dict[str, str], client: dict[str, str], expected: str
):
    with pytest.raises(ServerError, match=expected) as caught:
        await call(notes, environ, **{"client_id": "machine", "issuer": oidc.issuer, "scope": "notes:read", **client})
    assert "a-wrong-secret" not in str(caught.value)
    assert "of-the-machine" not in json.dumps(notes.seen)
