"""Where most tests run commands: the place of a user who has set nothing."""

from pathlib import Path

import pytest
from commands import Place


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    for name in ("CLAUDE_CONFIG_DIR", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    return Place(tmp_path, monkeypatch, capsys)
