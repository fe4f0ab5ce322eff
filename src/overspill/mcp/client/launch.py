"""Start a server's process. Needs nothing of the MCP SDK, so that servers start while it is imported."""

from __future__ import annotations

from collections.abc import Mapping

import anyio
from anyio.abc import Process
from msgspec.structs import replace

from overspill.errors import ServerError
from overspill.mcp.client.config import EarlyProcess, ServerConfig


async def start_early(servers: Mapping[str, ServerConfig], environ: Mapping[str, str]) -> dict[str, ServerConfig]:
    """Start every server that is a command. One that fails here is started again, and reported, when it is needed."""
    early = dict(servers)
    for name, config in servers.items():
        if config.command:
            try:
                early[name] = replace(config, early=EarlyProcess(await open_process(config, {**environ, **config.env})))
            except ServerError:
                continue
    return early


async def open_process(config: ServerConfig, environ: Mapping[str, str]) -> Process:
    """Start it in its own process group, with exactly the environment `environ`. Raises ServerError if that fails."""
    try:
        return await anyio.open_process([config.command, *config.args], env=environ, cwd=config.cwd, start_new_session=True)
    except (OSError, ValueError) as problem:
        raise ServerError(
            f"The server {config.name} cannot be started: {_explain(problem, config)}. Check its command and its folder."
        ) from None


def _explain(problem: OSError | ValueError, config: ServerConfig) -> str:
    if not isinstance(problem, OSError):
        return str(problem)
    folder = config.cwd is not None and problem.filename == config.cwd
    if isinstance(problem, FileNotFoundError):
        return f"no such folder {config.cwd!r}" if folder else f"no such command {config.command!r}"
    return f"{problem.strerror}: {config.cwd if folder else config.command!r}"
