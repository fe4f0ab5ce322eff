"""Addresses as they may be shown."""

from __future__ import annotations

_SECRET_PARAMETERS = ("password", "secret", "token", "key", "sig")
_HIDDEN = "***"


def mask_password(url: str) -> str:
    """The URL without its password. If a character in it should have been percent-encoded, rather too much is hidden."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return url
    account, at, place = rest.rpartition("@")
    user, colon, _ = account.partition(":")
    shown = f"{user}:{_HIDDEN}@{place}" if at and colon else rest
    before, question, parameters = shown.partition("?")
    return scheme + separator + before + question + "&".join(map(_mask_parameter, parameters.split("&")))


def _mask_parameter(parameter: str) -> str:
    name, equals, _ = parameter.partition("=")
    is_secret = any(word in name.lower() for word in _SECRET_PARAMETERS)
    return f"{name}={_HIDDEN}" if equals and is_secret else parameter
