"""JSON pointers (RFC 6901) that also lead into strings that contain JSON."""

from __future__ import annotations

import re
from urllib.parse import unquote

from overspill.errors import BadRequest
from overspill.reading.query.document import Value, is_array, is_object, open_raw, parse_embedded
from overspill.reading.query.outline import describe_kind, shorten_value

_MALFORMED = "{pointer} is not a JSON pointer. It is empty or begins with /, a ~ is written ~0 and a / inside a key ~1."
_NO_KEY = "{place}: there is no such key. {keys}"
_NO_ELEMENT = "{place}: the array has {count} element{s}."
_NO_INDEX = "{place}: this is an array, so use an index: 0, 1, 2 and so on."
_NOTHING_BELOW = "{place}: there is nothing below {what}."

_WRONG_ESCAPE = re.compile("~(?![01])")
_INDEX = re.compile("0|[1-9][0-9]{0,17}")
SHOWN_KEYS = 10


def is_pointer(expression: str) -> bool:
    return not expression or expression.startswith(("/", "#"))


def split_pointer(pointer: str) -> list[str]:
    path = unquote(pointer[1:]) if pointer.startswith("#") else pointer
    if _WRONG_ESCAPE.search(path) or (path and not path.startswith("/")):
        raise BadRequest(_MALFORMED.format(pointer=pointer))
    return [token.replace("~1", "/").replace("~0", "~") for token in path.split("/")[1:]]


def append_token(place: str, token: str | int) -> str:
    """The pointer to a member or element of `place`."""
    return f"{place}/{str(token).replace('~', '~0').replace('/', '~1')}"


def follow(value: Value, path: list[str], place: str = "") -> tuple[Value, bool]:
    """The value at the end of the path, and whether the path led through a string that contains JSON."""
    through = False
    for token in path:
        place = append_token(place, token)
        value = open_raw(value)
        if isinstance(value, str) and (inner := parse_embedded(value)) is not value:
            through, value = True, inner
        if is_object(value):
            if token not in value:
                raise missing_key_error(place, list(value), len(value))
            value = value[token]
        elif is_array(value):
            index = parse_index(token, place)
            if index >= len(value):
                raise missing_element_error(place, len(value))
            value = value[index]
        else:
            raise BadRequest(_NOTHING_BELOW.format(place=place, what=describe_kind(value)))
    return open_raw(value), through


def parse_index(token: str, place: str) -> int:
    if not _INDEX.fullmatch(token):
        raise BadRequest(_NO_INDEX.format(place=place))
    return int(token)


def missing_key_error(place: str, keys: list[str], count: int) -> BadRequest:
    return BadRequest(_NO_KEY.format(place=place, keys=list_keys(keys, count)))


def missing_element_error(place: str, count: int) -> BadRequest:
    return BadRequest(_NO_ELEMENT.format(place=place, count=count, s="" if count == 1 else "s"))


def list_keys(keys: list[str], count: int | None) -> str:
    """The first keys of an object. `count` is the number of all keys, if known."""
    if not keys:
        return "The object is empty."
    shown = ", ".join(map(shorten_value, keys[:SHOWN_KEYS]))
    more = "" if count == len(keys[:SHOWN_KEYS]) else f" and {count - SHOWN_KEYS:,} more" if count else " and more"
    return f"The keys are {shown}{more}."
