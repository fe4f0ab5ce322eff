"""Everything Overspill raises, one tree.

OverspillError
├── SettingsError          a key, a value or a file of the settings is not usable
│   └── MissingPackage     what is asked for needs a package that is not installed
├── HandleError            what was asked for is not there to be had
│   ├── MalformedHandle    (400) not a handle and not an artifact id
│   ├── UnknownHandle      (404) nothing stored under it that this session may read
│   └── ExpiredHandle      (410) it was stored once and has been removed
├── BadRequest             (400) a range, mode, pattern or query that cannot be served
├── RefError               a {{output:…}} argument that cannot be resolved; the tool was not called
├── StoreError             the place where outputs are kept does not work
│   ├── StoreFull          a quota or the disk is exhausted
│   └── NameInUse          another live session has that name
├── ServerError            (502) an MCP server did not start, ended, or does not answer
│   ├── Ended              it went while it was asked
│   └── Unheard            the request never reached it, so it may be made again
└── SessionClosed          the session has ended or takes no new work
"""

from __future__ import annotations

from typing import Literal

_PACKAGES = {"agent": "jsonschema", "mcp": "mcp", "models": "pydantic-ai-slim"}


class OverspillError(Exception):
    """The root. Its text says what happened and what can be done."""

    code = 500


class SettingsError(OverspillError):
    code = 400


class MissingPackage(SettingsError):
    """`extra` is the one of Overspill's own that brings it."""

    def __init__(self, what: str, extra: Literal["agent", "mcp", "models"]) -> None:
        super().__init__(
            f"{what} needs the package {_PACKAGES[extra]}, which is not installed or too old. "
            f"In a clone of Overspill: `pip install '.[{extra}]'`."
        )


class HandleError(OverspillError):
    code = 404


class MalformedHandle(HandleError):
    code = 400

    def __init__(self, spelling: str) -> None:
        shown = spelling if len(spelling) <= 100 else spelling[:97] + "..."
        super().__init__(
            f"{shown!r} is not a handle. A handle looks like session-<uuid>/<uuid>, an artifact id like art_<milliseconds>_<hex>."
        )


class UnknownHandle(HandleError):
    def __init__(self, spelling: str) -> None:
        super().__init__(
            f"No stored output has the handle {spelling!r}, or none that may be read from here. "
            "It may have expired; use handles exactly as they were given."
        )


class ExpiredHandle(HandleError):
    code = 410

    def __init__(self, spelling: str) -> None:
        super().__init__(f"The output {spelling!r} was stored and has been removed since. Call the tool again.")


class BadRequest(OverspillError):
    code = 400


class RefError(OverspillError):
    code = 400


class StoreError(OverspillError):
    pass


class StoreFull(StoreError):
    pass


class NameInUse(StoreError):
    pass


class ServerError(OverspillError):
    code = 502


class Ended(ServerError):
    pass


class Unheard(ServerError):
    def __init__(self, words: str, *, gone: bool = False) -> None:
        super().__init__(words)
        self.gone = gone
        """The server has forgotten us; a new session has to be opened."""


class SessionClosed(OverspillError):
    pass
