"""Servers that lie about a login: where it is, whose it is, how long it lasts. No word of theirs leads into a private network."""

from __future__ import annotations

import logging
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpcore2
import httpx2
import pytest
from login_servers import Door, answer_url, door, page
from msgspec.structs import replace

from overspill.errors import ServerError
from overspill.mcp.client.config import ServerConfig
from overspill.mcp.client.login.flow import log_in
from overspill.mcp.client.login.guarded import GuardedTransport
from overspill.mcp.client.login.keeper import TokenKeeper, check_login
from overspill.mcp.client.login.storage import Login, LoginStore, Reach, TokenResponse, Tokens
from overspill.mcp.client.server import open_servers

pytestmark = pytest.mark.anyio
SECRET = "s3cret"  # noqa: S105


@pytest.fixture
def notes() -> Iterator[Door]:
    with door() as opened:
        opened.be_issuer()
        yield opened


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"XDG_DATA_HOME": str(tmp_path)}


@pytest.fixture(autouse=True)
def _nothing_secret_is_logged(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    caplog.set_level(logging.DEBUG)
    yield
    records = [record for record in caplog.get_records("call") if record.name != "httpx2"]  # the browser of the test
    assert SECRET not in str([(record.getMessage(), vars(record), record.exc_info) for record in records])
    assert [record for record in records if record.name.startswith("mcp.client.auth")] == []


class Person:
    """Comes back from the browser with an answer that a test may change."""

    def __init__(self, **changes: str) -> None:
        self.changes = changes
        self.links: list[str] = []
        self.answers: list[httpx2.Response] = []

    async def show(self, link: str) -> None:
        self.links.append(link)
        asked = {name: values[0] for name, values in parse_qs(urlsplit(link).query).items()}
        fields = {"code": SECRET, "state": asked["state"], **self.changes}
        async with httpx2.AsyncClient(timeout=60) as browser:
            for query in (fields, fields):  # the second time, somebody who has read the first
                self.answers.append(await browser.get(answer_url(asked["redirect_uri"], **query)))


async def fail(notes: Door, environ: dict[str, str], person: Person | None = None, **login: Any) -> str:
    with pytest.raises(ServerError) as caught:
        await log_in(notes.config(**login), LoginStore(environ), (person or Person()).show)
    assert SECRET not in str(caught.value)
    assert LoginStore(environ).list() == []
    return str(caught.value)


async def test_only_the_first_answer_counts(notes: Door, environ: dict[str, str]):
    person = Person()
    login = await log_in(notes.config(), LoginStore(environ), person.show)
    assert login.tokens == Tokens("t1", "r1")
    assert [answer.status_code for answer in person.answers] == [200, 400]


@pytest.mark.parametrize(("status", "error"), [(400, "invalid_redirect_uri"), (403, ""), (500, "")])
async def test_a_refused_registration(notes: Door, environ: dict[str, str], status: int, error: str):
    notes.pages["/register"] = page({"error": error, "error_description": SECRET}, status)
    told = f"127.0.0.1 answered with HTTP status {status}{f' ({error})' if error else ''}"
    assert await fail(notes, environ) == f"Logging in to notes failed: Overspill could not register itself: {told}."


async def test_a_token_endpoint_that_refuses(notes: Door, environ: dict[str, str]):
    notes.pages["/token"] = page({"error": f"{SECRET} with spaces", "error_description": SECRET}, 400)
    told = await fail(notes, environ)
    assert told == "Logging in to notes failed: there is no token: 127.0.0.1 answered with HTTP status 400."


async def test_an_answer_from_another_authorization_server(notes: Door, environ: dict[str, str]):
    told = await fail(notes, environ, Person(iss=f"https://evil.example/{SECRET}"))
    assert "from the wrong authorization server" in told


async def test_metadata_of_another_issuer(notes: Door, environ: dict[str, str]):
    notes.be_issuer(issuer=f"https://honest.example/{SECRET}")
    assert "gives another issuer" in await fail(notes, environ)


async def test_a_server_that_says_it_is_another(notes: Door, environ: dict[str, str]):
    notes.describe(notes.origin, resource=f"https://bank.example/{SECRET}")
    assert "says that it is another server" in await fail(notes, environ)


async def test_a_person_who_declines(notes: Door, environ: dict[str, str]):
    person = Person(error="access_denied", error_description=SECRET, code="")
    assert await fail(notes, environ, person) == "The login was declined (access_denied). Nothing was stored."


async def test_redirects_without_end_are_followed_five_times(notes: Door, environ: dict[str, str]):
    paths = ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server"]
    for path in paths:
        notes.pages[path] = page({}, 302, location=path)
    notes.pages["/register"] = page({}, 404)
    told = await fail(notes, environ)
    assert told == "Logging in to notes failed: Overspill could not register itself: 127.0.0.1 answered with HTTP status 404."
    assert [notes.seen.count(path) for path in paths] == [6, 6]


async def test_a_redirect_to_another_host_is_not_followed(notes: Door, environ: dict[str, str]):
    with door() as other:
        other.be_issuer()
        for path in ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-authorization-server", "/token"):
            notes.pages[path] = page({}, 307, location=f"{other.origin}{path}")
        await fail(notes, environ)
        assert other.seen == []


async def test_a_redirect_of_a_refresh_is_not_followed(notes: Door, environ: dict[str, str]):
    login = await log_in(notes.config(), LoginStore(environ), Person().show)
    with door() as other:
        notes.pages["/token"] = page({}, 307, location=f"{other.origin}/token")
        assert await TokenKeeper(notes.config(), environ).renew(login.tokens.access) == ""
        assert other.seen == []


async def test_an_answer_without_end(notes: Door, environ: dict[str, str]):
    notes.pages["/.well-known/oauth-authorization-server"] = (200, {}, b" " * (1024 * 1024 + 1))
    assert "answered with more than 1 MiB" in await fail(notes, environ)


@pytest.mark.parametrize("seconds", [0, -5, "NaN", "soon", 1e300, "1e999", None, 3600])
async def test_no_lifetime_makes_a_token_unusable(notes: Door, environ: dict[str, str], seconds: Any):
    given = TokenResponse("t1", None, seconds).apply(Login(server="https://a.example/mcp"), 1000.0)
    expected = {3600: 4600.0, 1e300: 1000.0 + 315_360_000, "1e999": 1000.0 + 315_360_000, "soon": None, None: None}
    assert given.expires_at == expected.get(seconds, 1030.0)


async def test_a_token_that_ends_sooner_than_it_said_is_renewed_when_the_server_refuses_it(notes: Door, environ: dict[str, str]):
    answers = iter(range(1, 100))
    notes.pages["/token"] = lambda _: page(
        {"access_token": f"t{next(answers)}", "token_type": "Bearer", "expires_in": 10**9, "refresh_token": "r1"}
    )
    await log_in(notes.config(), LoginStore(environ), Person().show)
    notes.check = {"t2": {"notes:read"}}.get
    async with open_servers([notes.config()], environ) as servers:
        assert not (await servers["notes"].call_tool("log", {})).is_error
    notes.check = dict[str, set[str]]().get
    notes.seen.clear()
    async with open_servers([notes.config()], environ) as servers:
        with pytest.raises(ServerError, match="needs a login"):
            await servers["notes"].call_tool("log", {})
    assert notes.seen.count("/token") <= 2  # one for each handshake that it tried


@pytest.mark.parametrize("token", ["", " ", "a b", "a\r\nx: y", "a\n", "\0", "\u00e9", "\ud83d", 5, None])
async def test_a_token_that_no_header_can_have_is_none(notes: Door, environ: dict[str, str], token: Any):
    notes.pages["/token"] = page({"access_token": token, "token_type": "Bearer"})
    login = Login(server=notes.url, token_endpoint=f"{notes.origin}/token", reach="loopback", tokens=Tokens("old", "r1"))
    await LoginStore(environ).write(login)
    with pytest.raises(ServerError, match="answered with HTTP status 200, and without a token"):
        await TokenKeeper(notes.config(), environ).renew("old", is_refused=True)
    assert await LoginStore(environ).read(notes.url) == login


async def test_a_server_that_refuses_every_token_causes_one_renewal(notes: Door, environ: dict[str, str]):
    answers = iter(range(1, 10_000))
    notes.pages["/token"] = lambda _: page({"access_token": f"t{next(answers)}", "token_type": "Bearer", "refresh_token": "r1"})
    await log_in(notes.config(), LoginStore(environ), Person().show)
    notes.check = dict[str, set[str]]().get
    notes.seen.clear()
    async with open_servers([notes.config()], environ) as servers:
        for _ in range(3):
            with pytest.raises(ServerError, match="needs a login"):
                await servers["notes"].call_tool("log", {})
        tried = servers["notes"].starts
    assert notes.seen.count("/token") == 1
    assert tried < 10  # although the login was written while it waited for one


async def test_rights_that_a_server_invents_are_remembered_up_to_a_limit_and_written_once(notes: Door, environ: dict[str, str]):
    store = LoginStore(environ)
    await log_in(notes.config(), store, Person().show)
    keeper, before = TokenKeeper(notes.config(), environ), store.stamp(notes.url)
    await keeper.note_wanted("notes:write notes:delete")
    written = store.stamp(notes.url)
    assert written != before
    await keeper.note_wanted("notes:delete notes:write")
    assert store.stamp(notes.url) == written
    for number in range(100):
        await keeper.note_wanted(" ".join(f"scope{number}-{each}" for each in range(20)))
    login = await store.read(notes.url)
    assert login is not None
    assert "notes:write" in login.wanted_scope
    assert len(login.wanted_scope) <= 2_000


ADDRESSES = {
    "https://10.1.2.3/": "private",
    "https://192.168.0.1/": "private",
    "https://169.254.169.254/": "private",
    "https://100.64.0.1/": "private",
    "https://[fd00::1]/": "private",
    "https://[fe80::1]/": "private",
    "https://[::ffff:10.0.0.1]/": "private",
    "https://[64:ff9b::a00:1]/": "private",
    "https://[2002:a00:1::]/": "private",
    "https://[::ffff:0:10.0.0.1]/": "private",
    "https://[64:ff9b:1::a00:1]/": "private",
    "https://[::10.0.0.1]/": "private",
    "https://[fec0::1]/": "private",
    "https://127.0.0.1/": "loopback",
    "https://127.9.9.9/": "loopback",
    "https://localhost/": "loopback",
    "https://0.0.0.0/": "loopback",
    "https://[::1]/": "loopback",
    "https://[::ffff:127.0.0.1]/": "loopback",
    "https://2130706433/": "loopback",
    "https://8.8.8.8/": "public",
    "https://[2606:4700::1111]/": "public",
}


@pytest.mark.parametrize(("address", "where"), ADDRESSES.items())
@pytest.mark.parametrize("reach", ["public", "private", "loopback"])
async def test_the_word_of_a_server_leads_to_nothing_nearer_than_itself(address: str, where: Reach, reach: Reach):
    order = ["loopback", "private", "public"]
    guarded = GuardedTransport("https://server.example/mcp", reach)
    if order.index(where) >= order.index(reach):
        assert await guarded.find_addresses(httpx2.URL(address))
    else:
        with pytest.raises(ServerError, match="in a private network or on this machine"):
            await guarded.find_addresses(httpx2.URL(address))


@pytest.mark.parametrize("address", ["http://8.8.8.8/", "http://10.0.0.1/", "ftp://127.0.0.1/", "file:///etc/passwd"])
async def test_only_https_leaves_this_machine(address: str):
    with pytest.raises(ServerError, match="login was stopped"):
        await GuardedTransport("http://127.0.0.1:1/mcp", "loopback").find_addresses(httpx2.URL(address))


@pytest.mark.parametrize("key", ["authorization_endpoint", "token_endpoint", "registration_endpoint"])
async def test_metadata_with_a_private_address(notes: Door, environ: dict[str, str], key: str):
    notes.be_issuer(**{key: "http://10.255.255.1/x"})
    assert "would be reached without encryption" in await fail(notes, environ)


async def test_a_login_is_not_sent_without_encryption(environ: dict[str, str]):
    config = ServerConfig("notes", url="http://192.0.2.1/mcp")
    with pytest.raises(ServerError, match="others could read its token"):
        await log_in(config, LoginStore(environ), Person().show)


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "localhost.", "a.localhost", "169.254.43518", "[fec0::1]"])
async def test_a_proxy_is_not_led_to_an_address_in_another_spelling(monkeypatch: pytest.MonkeyPatch, host: str):
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    guarded = GuardedTransport("https://server.example/mcp", "public")
    assert await guarded.find_addresses(httpx2.URL("https://auth.example/")) == ["auth.example"]
    with pytest.raises(ServerError, match="in a private network or on this machine"):
        await guarded.find_addresses(httpx2.URL(f"https://{host}/"))


async def test_a_name_is_looked_up_once_and_its_address_is_the_one_connected_to(monkeypatch: pytest.MonkeyPatch, notes: Door):
    """A name that answers with an allowed address first and with another one afterwards gets nothing from that."""
    port, asked = httpx2.URL(notes.url).port, list[str]()
    usual = socket.getaddrinfo

    def rebind(host: Any, *rest: Any, **options: Any) -> Any:
        if host != b"rebinding.example":
            return usual(host, *rest, **options)
        asked.append(host.decode())
        return usual("192.0.2.1" if len(asked) > 1 else "127.0.0.1", *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", rebind)
    guarded = GuardedTransport("http://127.0.0.1:1/mcp", "loopback")
    request = httpx2.Request("GET", f"http://rebinding.example:{port}/.well-known/oauth-authorization-server")
    assert (await guarded.handle_async_request(request)).status_code == 200
    assert asked == ["rebinding.example"]
    with pytest.raises(ServerError, match="without encryption"):  # the second time, it is elsewhere
        await guarded.handle_async_request(request)


async def test_certificates_are_loaded_once_for_all_exchanges_of_a_login(monkeypatch: pytest.MonkeyPatch, notes: Door):
    load, loaded = httpcore2.default_ssl_context, list[bool]()

    def count(*, _trust_env: bool = True) -> ssl.SSLContext:
        loaded.append(_trust_env)
        return load(_trust_env=_trust_env)

    monkeypatch.setattr(httpcore2, "default_ssl_context", count)
    guarded = GuardedTransport(notes.url)
    for _ in range(2):
        await guarded.handle_async_request(httpx2.Request("GET", f"{notes.origin}/register"))
    assert loaded == [True]


async def test_a_server_that_changes_its_address_counts_as_the_farthest(notes: Door):
    guarded = GuardedTransport(notes.url, "public")
    await guarded.handle_async_request(httpx2.Request("GET", f"{notes.origin}/register"))
    assert guarded.reach == "public"
    near = GuardedTransport(notes.url)
    await near.handle_async_request(httpx2.Request("GET", f"{notes.origin}/register"))
    assert near.reach == "loopback"


async def test_a_wrong_clock_and_a_vanished_authorization_server_are_found(notes: Door, environ: dict[str, str]):
    store = LoginStore(environ)
    login = await log_in(notes.config(), store, Person().show)
    described = "Logged in, scopes: notes:read. The token expires at a time that the server does not say. Overspill renews it."
    assert await check_login(notes.url, environ) == (described, "")
    metadata = notes.pages.pop("/.well-known/oauth-authorization-server")
    assert "no longer describes itself" in (await check_login(notes.url, environ))[1]
    notes.pages["/.well-known/oauth-authorization-server"] = metadata
    for odd in ("soon", "0", "Thu, 01 Jan 99999 00:00:00 GMT"):
        notes.date = odd
        assert await check_login(notes.url, environ) == (described, "")
    notes.date = "Sun, 06 Nov 1994 08:49:37 GMT"
    assert "Your clock and that of 127.0.0.1 differ by" in (await check_login(notes.url, environ))[1]
    await store.write(replace(login, issuer="http://127.0.0.1:1"))
    assert "127.0.0.1 cannot be reached (ConnectError)" in (await check_login(notes.url, environ))[1]
