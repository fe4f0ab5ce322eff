"""Who may look: the browser that opened the start link, and nobody else."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from viewers import Client, fill, output_path, running_viewer

from overspill.view.serve import Viewer, hold_start_file


@pytest.fixture
def viewer(tmp_path: Path) -> Iterator[Viewer]:
    with running_viewer(tmp_path / "store") as started:
        yield started


def token_of(viewer: Viewer) -> str:
    return viewer.link.partition("token=")[2]


def test_the_start_link_is_exchanged_for_a_cookie_by_a_redirect_without_the_token(viewer: Viewer):
    client, token = Client(viewer), token_of(viewer)
    answer = client.get(f"/?token={token}")
    assert (answer.status, answer.headers["location"]) == (303, f"{client.root}/")
    cookie = answer.headers["set-cookie"]
    assert token not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert f"Path={client.root};" in cookie


@pytest.mark.promise("nobody-elses")
def test_the_start_link_works_once(viewer: Viewer):
    client, token = Client(viewer), token_of(viewer)
    client.enter()
    assert client.get().status == 200
    again = Client(viewer).get(f"/?token={token}")
    assert (again.status, "set-cookie" in again.headers) == (403, False)
    assert client.get(f"/?token={token}").status == 403


@pytest.mark.parametrize(
    ("query", "status"),
    [("a=b&" * 60, 403), ("token&" * 60, 403), ("token", 403), ("%ff=%00&" * 3, 200)],
    ids=["many", "many tokens", "no token", "odd"],
)
def test_a_query_that_nobody_makes_is_refused_or_ignored(viewer: Viewer, query: str, status: int):
    assert Client(viewer).get(f"/?{query}").status == 403
    client = Client(viewer)
    client.enter()
    assert client.get(f"/?{query}").status == status


def test_no_page_holds_the_token_or_the_cookie(viewer: Viewer):
    client, token = Client(viewer), token_of(viewer)
    client.enter()
    secret = client.cookie.partition("=")[2]
    for path in ("/", "/savings", "/none", "/session/x"):
        assert token not in client.get(path).text
        assert secret not in client.get(path).text


@pytest.mark.promise("nobody-elses")
@pytest.mark.parametrize(
    "cookie", ["", "overspill-view-1=x", "overspill-view={port}", "{name}=", "{name}=wrong", '{name}="', "a=b=c;;"]
)
@pytest.mark.parametrize("path", ["/", "/savings", "/static/view.js", "/live", "/none"])
def test_without_the_cookie_there_is_nothing(viewer: Viewer, path: str, cookie: str):
    client = Client(viewer)
    client.cookie = cookie.format(port=viewer.address.port, name=f"overspill-view-{viewer.address.port}")
    answer = client.get(path)
    assert answer.status == 403
    assert b"overspill view" in answer.body


def test_the_cookie_of_the_right_name_lets_in_whatever_other_cookies_there_are(viewer: Viewer):
    client = Client(viewer).enter()
    client.cookie = f"theme=dark; {client.cookie}; other=1"
    assert client.get().status == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", "127.0.0.1:{port}.evil.example", "0:{port}"]
)
def test_a_host_header_that_names_something_else_is_refused(viewer: Viewer, host: str):
    client = Client(viewer).enter()
    assert client.get("/", Host=host.format(port=viewer.address.port)).status == 421


def test_the_name_localhost_works(viewer: Viewer):
    client = Client(viewer).enter()
    assert client.get("/", Host=f"LOCALHOST:{viewer.address.port}").status == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "null"}, 403),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "http://127.0.0.1:{port}"}, 200),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, 403),
        ({"Sec-Fetch-Site": "same-site", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, 403),
        ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, 200),
        ({"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors", "Sec-Fetch-Dest": "empty"}, 200),
    ],
)
def test_other_pages_may_link_here_and_nothing_else(viewer: Viewer, headers: dict[str, str], status: int):
    client = Client(viewer).enter()
    sent = {name: value.format(port=viewer.address.port) for name, value in headers.items()}
    assert client.ask(f"{client.root}/", headers=sent).status == status


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "MKCOL"])
def test_no_method_that_could_change_anything_is_served(viewer: Viewer, method: str):
    client = Client(viewer).enter()
    answer = client.ask(f"{client.root}/", method=method, body=b"x")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


def test_every_answer_forbids_scripts_of_others_caches_frames_and_referrers(viewer: Viewer):
    client = Client(viewer)
    answers = [client.get(), client.get("/?token=x"), client.get("/", Host="x")]
    client.enter()
    answers += [client.get(path) for path in ("/", "/none", "/savings", "/static/view.js", "/static/none")]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "server" not in answer.headers


def test_pages_have_no_inline_scripts_or_styles_and_no_address_elsewhere(tmp_path: Path):
    kept = fill(tmp_path / "store", large="line\n" * 5000)[0]
    with running_viewer(tmp_path / "store") as viewer:
        client = Client(viewer).enter()
        for path in ("/", f"/session/{kept.session}", output_path(kept), "/savings"):
            text = client.get(path).text
            assert "<script>" not in text
            assert "style=" not in text
            assert " on" not in text.replace(" one", "").replace(" only", "").replace(" once", "").replace(" on record", "")
            assert "http://" not in text
            assert "https://" not in text


@pytest.mark.parametrize(
    "path", ["/static/../guard.py", "/static/%2e%2e/guard.py", "/static/..%2fguard.py", "/static//etc/passwd"]
)
def test_only_the_viewers_own_files_are_served(viewer: Viewer, path: str):
    assert Client(viewer).enter().get(path).status == 404


def test_the_start_file_is_for_the_owner_only_and_goes_away(viewer: Viewer):
    with hold_start_file(viewer.link) as file:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
        assert token_of(viewer) in file.read_text()
    assert not file.parent.exists()


def test_the_viewer_is_reached_on_this_machine_only(viewer: Viewer):
    assert viewer.address.listener.getsockname()[0] == "127.0.0.1"
