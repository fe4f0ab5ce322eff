"""Every exception that Overspill raises.

OverspillError
├── SettingsError          a key, a value or a file of the settings cannot be used
│   └── MissingPackage     needs a package that is not installed
├── HandleError            the output does not exist
│   ├── AmbiguousName      (409) a short name that several outputs have
│   ├── MalformedHandle    (400) not a handle, an artifact id or a name
│   ├── UnknownHandle      (404) this session has stored nothing under that handle
│   └── ExpiredHandle      (410) the output was stored and has been removed
├── BadRequest             (400) a range, mode, pattern, query or argument that cannot be served
│   └── NotText            (415) nothing was searched, because it is not text and no text can be read from it
├── RefError               a {{output:…}} argument that cannot be resolved; the tool was not called
├── StoreError             the store does not work
│   ├── StoreAway          its server does not answer; trying again helps
│   ├── StoreFull          a quota or the disk is full
│   └── NameInUse          another live session has that name
├── QueueError             (503) the queue of jobs does not answer
├── ServerError            (502) an MCP server did not start, exited, or does not answer
│   ├── Ended              the server exited before it answered
│   ├── LoginNeeded        the server wants a person to log in first
│   └── Unheard            the request never reached the server, so it is safe to send it again
└── SessionClosed          the session is closed or takes no new calls
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Literal, TypeAlias

_PACKAGES = {
    "agent": "jsonschema",
    "clients": "tomlkit or ruamel.yaml",
    "docket": "pydocket",
    "mcp": "mcp",
    "models": "pydantic-ai-slim",
    "otel": "opentelemetry-api",
    "pdf": "pypdf",
    "postgres": "psycopg",
    "programs": "pydantic-monty",
    "s3": "obstore",
    "semantic": "onnxruntime",
    "sql": "duckdb",
    "view": "starlette",
}


class OverspillError(Exception):
    """The base class. The message says what happened and what you can do."""

    code = 500


class RemoteFailure(Exception):
    """A tool failed on a worker. Its message is what the worker said, with the type of the error."""


class Unwritable(TypeError):
    """A tool returned something that cannot be written as text: `value`."""

    def __init__(self, message: str, value: object) -> None:
        super().__init__(message)
        self.value = value


class SettingsError(OverspillError):
    code = 400


Extra: TypeAlias = Literal[
    "agent", "clients", "docket", "mcp", "models", "otel", "pdf", "postgres", "programs", "s3", "sql", "view"
]


class MissingPackage(SettingsError):
    """`extra`: the extra of Overspill that installs the package. `remedy`: a sentence with a quicker solution, and a space."""

    def __init__(self, what: str, extra: Extra, remedy: str = "") -> None:
        missing = f"{what} needs the package {_PACKAGES[extra]}, which is not installed or too old."
        super().__init__(f"{missing} {remedy}{_say_how_to_install(extra)}")


def _say_how_to_install(extra: Extra) -> str:
    """How to install an extra: it depends on whether this is a clone, and whether pip or uv, which omits pip, installed it."""
    *above, _, _, _ = os.path.abspath(__file__).split(os.sep)  # `src/overspill/errors.py` in a clone
    if os.path.isfile(os.sep.join([*above, "pyproject.toml"])):
        return f"In a clone of Overspill: `pip install '.[{extra}]'`."
    python = shlex.quote(sys.executable)
    has_pip = find_spec("pip") is not None
    pip, where = (f"{python} -m pip", "") if has_pip else ("uv pip", f" --python {python}")
    return f"To install it: `{pip} install 'overspill[{extra}]'{where}`."


class HandleError(OverspillError):
    code = 404


class MalformedHandle(HandleError):
    code = 400

    def __init__(self, spelling: str) -> None:
        shown = spelling if len(spelling) <= 100 else spelling[:97] + "..."
        super().__init__(
            f"{shown!r} is not a handle. A handle looks like session-<uuid>/<uuid>, a name like out_3f7k9q, "
            "an artifact id like art_<milliseconds>_<hex>."
        )


class UnknownHandle(HandleError):
    def __init__(self, spelling: str) -> None:
        super().__init__(
            f"No stored output has the handle {spelling!r}, or none that may be read from here. "
            "It may have expired; use handles exactly as they were given."
        )


class ExpiredHandle(HandleError):
    code = 410

    def __init__(self, spelling: str, tool: str = "") -> None:
        super().__init__(f"The output {spelling!r} has expired and was removed. Call {tool or 'the tool'} again.")
        self.tool = tool


class AmbiguousName(HandleError):
    """`handles`: the handles of the outputs that have the name."""

    code = 409

    def __init__(self, name: str, handles: Iterable[str]) -> None:
        super().__init__(f"Several stored outputs have the name {name}. Use the handle of one of them: {', '.join(handles)}.")


class BadRequest(OverspillError):
    code = 400


class NotText(BadRequest):
    """`what` names the format of the output, with an article."""

    code = 415

    def __init__(self, what: str, advice: str = "", name: str = "The stored output") -> None:
        super().__init__(f"{name} is {what}. It was not searched.{advice}")
        self.what = what
        self.advice = advice


class RefError(OverspillError):
    code = 400


class StoreError(OverspillError):
    pass


class StoreAway(StoreError):
    """The store's server does not answer, or refuses."""


class StoreFull(StoreError):
    pass


class NameInUse(StoreError):
    pass


class QueueError(OverspillError):
    code = 503


class ServerError(OverspillError):
    code = 502


class Ended(ServerError):
    pass


class LoginNeeded(ServerError):
    pass


class Unheard(ServerError):
    def __init__(self, words: str, *, gone: bool = False) -> None:
        super().__init__(words)
        self.gone = gone
        """The server has lost the session; open a new one."""


class SessionClosed(OverspillError):
    pass


def require(what: str, given: object, kind: type | tuple[type, ...], form: str) -> None:
    """Raise BadRequest if your program passed something of another type. `form` says what it should be."""
    if not isinstance(given, kind):
        raise BadRequest(f"{what} must be {form}, not {describe_type(given)}.")


def describe_type(given: object) -> str:
    return "None" if given is None else type(given).__name__
