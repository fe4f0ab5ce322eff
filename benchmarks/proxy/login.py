"""How often somebody has to log in again within thirty simulated days, with tokens of ten minutes: `login.py [DAYS]`.

The server and its authorization server are FastMCP's, whose clock is driven together with ours.
"""

import sys
import tempfile
from pathlib import Path

import anyio

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from login_days import live

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        found = anyio.run(live, Path(folder), float(sys.argv[1]) if len(sys.argv) > 1 else 30.0)
    print(f"{found.calls:,} calls, {found.tokens:,} tokens, {found.refused} refused, {found.logins - 1} logins again")
