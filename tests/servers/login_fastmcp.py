"""A server of FastMCP behind its own login, which lets everybody in. Its clock is ahead by what a file says.

Run by the Python of an environment that has FastMCP: PORT, FILE.
"""

import sys
import time
from pathlib import Path

_time, ahead = time.time, Path(sys.argv[2])
time.time = lambda: _time() + float(ahead.read_text())

from fastmcp import FastMCP  # noqa: E402
from fastmcp.server.auth.providers import in_memory  # noqa: E402
from mcp.server.auth.settings import ClientRegistrationOptions, RevocationOptions  # noqa: E402

in_memory.DEFAULT_ACCESS_TOKEN_EXPIRY_SECONDS = 600
port = int(sys.argv[1])
auth = in_memory.InMemoryOAuthProvider(
    base_url=f"http://127.0.0.1:{port}",
    client_registration_options=ClientRegistrationOptions(enabled=True, valid_scopes=["read", "write"]),
    revocation_options=RevocationOptions(enabled=True),
    required_scopes=["read"],
)
server = FastMCP("notes", auth=auth)


@server.tool
def add(a: int, b: int) -> int:
    return a + b


server.run(transport="http", host="127.0.0.1", port=port, show_banner=False, log_level="error")
