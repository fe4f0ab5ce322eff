"""Addresses as they may be shown."""

from __future__ import annotations

import re

_SECRET_PARAMETERS = ("password", "secret", "token", "key", "sig")
_HIDDEN = "***"


def mask_password(url: str) -> str:
    """The URL without its password. If a character in it should have been percent-encoded, rather too much is hidden."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        scheme, separator, rest = url.partition(":")
        if "@" not in rest:
            return url
    account, at, place = rest.rpartition("@")
    user, colon, _ = account.partition(":")
    shown = f"{user}:{_HIDDEN}@{place}" if at and colon else _mask_port(rest)
    before, question, parameters = shown.partition("?")
    return scheme + separator + before + question + "&".join(map(_mask_parameter, parameters.split("&")))


def _mask_port(rest: str) -> str:
    """Without a host, the password is where a port would be."""
    place = re.split(r"[/?#]", rest, maxsplit=1)[0]
    host, colon, port = place.rpartition(":")
    is_port = not colon or port.isdecimal() or not port or port.endswith("]")
    return rest if is_port else f"{host}:{_HIDDEN}{rest[len(place) :]}"


def _mask_parameter(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    is_secret = any(word in name.lower() for word in _SECRET_PARAMETERS)
    return f"{name}={_HIDDEN}" if equals and is_secret else parameter
