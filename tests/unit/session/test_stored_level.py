"""How loudly a session says that it has stored an output."""

from __future__ import annotations

from pathlib import Path

import pytest

from overspill.session.session import Session
from overspill.settings import Settings
from overspill.settings.keys import PresetName


@pytest.mark.parametrize(
    ("preset", "level"), [("overspill", "INFO"), ("tool_output", "WARNING"), ("artifacts", "WARNING"), ("slow", "WARNING")]
)
async def test_storing_is_worth_a_warning_only_where_the_documents_say_so(
    preset: PresetName, level: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
):
    caplog.set_level("INFO", "overspill")
    async with Session(Settings(preset, storeDir=str(tmp_path))) as session:
        reply = await session.call("lines", {}, lambda: "many lines\n" * 5000)
    assert reply.kept is not None
    (stored,) = [record for record in caplog.records if record.name == "overspill" and hasattr(record, "tool_output")]
    assert stored.levelname == level
    assert stored.getMessage().startswith("Tool 'lines' output stored for tool_output (")
