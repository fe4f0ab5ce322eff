"""The certificates that clients of HTTP trust, loaded once for a process: each client would take a thirtieth of a second of
processor time to load them again, and the servers of the tests are on this machine."""

import functools
import os
import ssl

import httpcore2


def load_certificates_once() -> None:
    load = httpcore2.default_ssl_context

    @functools.cache
    def load_once(trust_env: bool, *places: str | None) -> ssl.SSLContext:
        return load(_trust_env=trust_env)

    def get(*, _trust_env: bool = True) -> ssl.SSLContext:
        return load_once(_trust_env, os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))

    get()
    httpcore2.default_ssl_context = get
