"""Makes addresses safe to show, and recognises those of this machine."""

from __future__ import annotations

import re
from ipaddress import ip_address

from overspill.text.regex import regex

_HIDDEN = "***"
_SHOWS_USER = ("postgresql", "postgres", "docket+redis", "docket+rediss", "redis", "rediss")
"""In other addresses, the user is half of a key or a whole token."""
_HARMLESS_PARAMETER = regex(
    r"(?i)(?:application_name|connect_timeout|dbname|host|hostaddr|insecure|name|port|region|sslmode|target_session_attrs|tenant"
    r"|user)=[^=]*"
)


def mask_password(url: str) -> str:
    """The URL without its secrets. If a character should have been percent-encoded, hides too much rather than too little."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, separator, rest = url.partition(":")
        if "@" not in rest and "?" not in rest:
            return url
    account, at, place = rest.rpartition("@")
    before, _, parameters = account.partition("?")
    user, colon, _ = before.partition(":")
    is_path = ":" not in account and ("/" in account or separator == ":")
    known = (user + (f":{_HIDDEN}" if colon else "")) if scheme in _SHOWS_USER or is_path else _HIDDEN
    if "=" in parameters:  # either the "@" is in a parameter, or the "?" is in the password
        return f"{scheme}{separator}{known}?{_HIDDEN}"
    shown, question, query = (f"{known}@{place}" if at else _mask_port(rest)).partition("?")
    shown, number_sign, _ = shown.partition("#")
    fragment = f"#{_HIDDEN}" if number_sign else ""
    masked: list[str] = []
    for parameter in query.split("&"):
        name, equals, _ = parameter.partition("=")
        is_harmless = not parameter or _HARMLESS_PARAMETER.fullmatch(parameter)
        masked.append(parameter if is_harmless else f"{name}={_HIDDEN}" if equals else _HIDDEN)
    return scheme + separator + shown + fragment + question + "&".join(masked)


def is_loopback(host: str) -> bool:
    """Whether this is an IP address of this machine. The name localhost may refer to another."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _mask_port(rest: str) -> str:
    """Masks a password in the place of a port, where it is if the URL has no host."""
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host, colon, port = place.rpartition(":")
    is_port = not colon or port.isdecimal() or not port or port.endswith("]")
    return rest if is_port else f"{host}:{_HIDDEN}{rest[len(place) :]}"
