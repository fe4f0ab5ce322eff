"""What the URL and the environment say about a shared store: whose it is, and how the service encrypts."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from store_servers import S3_KEYS, require_package

from overspill import handles
from overspill.store.open import open_store


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict[str, str]]]:
    """The headers of everything that is written to a bucket."""
    seen: list[dict[str, str]] = []

    class Service(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            seen.append({name.lower(): value for name, value in self.headers.items()})
            self.rfile.read(int(self.headers.get("content-length", 0)))
            self.send_response(200)
            self.send_header("ETag", '"1"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Service) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name, value in {
            **S3_KEYS,
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}",
            "AWS_ALLOW_HTTP": "true",
        }.items():
            monkeypatch.setenv(name, value)
        yield seen
        server.shutdown()


def test_a_bucket_encrypts_with_the_key_that_the_environment_names(
    service: list[dict[str, str]], monkeypatch: pytest.MonkeyPatch
):
    require_package("obstore")
    from overspill.store.objects.bucket import Bucket  # noqa: PLC0415  # only where the package is

    Bucket("s3://bucket/prefix").put("key", b"data")
    assert not [name for name in service[-1] if "encryption" in name]
    monkeypatch.setenv("AWS_SERVER_SIDE_ENCRYPTION", "aws:kms")
    monkeypatch.setenv("AWS_SSE_KMS_KEY_ID", "my-key")
    Bucket("s3://bucket/prefix").put("key", b"data")
    assert service[-1]["x-amz-server-side-encryption"] == "aws:kms"
    assert service[-1]["x-amz-server-side-encryption-aws-kms-key-id"] == "my-key"


@pytest.mark.slow
def test_a_tenant_in_a_databases_url_sees_only_what_is_its_own(postgres_url: str):
    require_package("psycopg")
    alice, bob = (open_store(f"{postgres_url}&tenant={name}") for name in ("alice", "bob"))
    shelf = alice.open_shelf(handles.new(), name="research", retention="keep")
    assert [label.session for label in alice.shelves()] == [shelf.session]
    assert bob.shelves() == []
    bob.open_shelf(handles.new(), name="research", retention="keep").close()  # the name is free there
    alice.close()
    bob.close()
