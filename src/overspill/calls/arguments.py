"""Check the arguments of a call. They are a model's, so a mistake in them is something to tell the model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from overspill.errors import BadRequest, describe_type
from overspill.text.humanize import one_line


def as_arguments(args: object) -> Mapping[str, Any]:
    """The arguments if they are an object; otherwise none."""
    return cast("Mapping[str, Any]", args) if isinstance(args, Mapping) else {}


def check_arguments(tool: str, args: object) -> None:
    if isinstance(args, str):
        raise BadRequest(
            f"The arguments of {one_line(tool)} must be a JSON object with a value for each name, and what was sent is not. "
            "Call it again with valid JSON."
        )
    if not isinstance(args, dict | Mapping):  # a dict is found sooner
        raise BadRequest(
            f"The arguments of {one_line(tool)} must be an object with a value for each name, not {describe_type(args)}."
        )
    for name in cast("Mapping[object, object]", args):
        if not isinstance(name, str):
            raise BadRequest(f"The arguments of {one_line(tool)} must have strings as names, not {describe_type(name)}.")
