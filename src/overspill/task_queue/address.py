"""Where jobs go: the URL of a queue, and whether it is safe to use."""

from __future__ import annotations

from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from msgspec import Struct

from overspill.errors import SettingsError
from overspill.text.urls import is_loopback, mask_password


class QueueAddress(Struct, frozen=True):
    url: str
    """The URL in the form that the engine expects, with the password."""
    name: str
    shown: str
    """The URL without the password, to show."""


def parse_address(url: str, *, insecure: bool = False) -> QueueAddress:
    """Parse the URL of a queue. Raises SettingsError if it is not one, or not safe to use over a network."""
    shown = mask_password(url)
    try:
        parts = urlsplit(url)
    except ValueError:  # an unclosed bracket
        parts = urlsplit("")
    # Without an "@" in the path: it would follow a password with an unescaped "/", whose beginning would be the port.
    if parts.scheme not in ("docket+redis", "docket+rediss") or not parts.netloc or "@" in parts.path:
        raise SettingsError(
            f"{shown!r} is not the address of a queue. Write docket+redis://user:password@host:port/0, or docket+rediss://… for "
            "TLS, with special characters percent-encoded."
        )
    given = dict(parse_qsl(parts.query, keep_blank_values=True))
    try:
        is_here = parts.hostname == "localhost" or is_loopback(parts.hostname or "")
        is_safe = is_here or (parts.scheme.endswith("rediss") and bool(parts.password))
        _ = parts.port
    except ValueError:
        raise SettingsError(f"{shown!r} is not the address of a queue: its port is not a number up to 65535.") from None
    if not is_safe and not insecure and given.get("insecure") != "true":
        raise SettingsError(
            f"{shown} is another machine and has no password or no TLS. Anyone who can write to the queue can call your tools. "
            "Use docket+rediss:// with a password, or, in a network that only your own machines can reach, add ?insecure=true to "
            "the URL or start the worker with --insecure."
        )
    query = urlencode({key: value for key, value in given.items() if key not in ("name", "insecure")})
    plain = urlunsplit((parts.scheme.removeprefix("docket+"), parts.netloc, parts.path, query, ""))
    return QueueAddress(plain, given.get("name") or "overspill", shown)
