"""A day with tokens of ten minutes: nobody logs in again. `benchmarks/proxy/login.py` does it for thirty."""

from __future__ import annotations

from pathlib import Path

import pytest
from login_days import live


@pytest.mark.slow
@pytest.mark.anyio
async def test_nobody_logs_in_again_within_a_day(tmp_path: Path):
    found = await live(tmp_path, days=1)
    assert (found.logins, found.calls, found.refused) == (1, 192, 0)
    assert found.tokens > 90  # each was used for a part of its ten minutes
