"""Scenario 4 of document 003: of a command's long output the end is preserved."""

import re
import subprocess
import sys
from pathlib import Path

from overspill import Session, Settings


def execute_command(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout


async def test_of_a_long_command_output_only_the_tail_is_shown(tmp_path: Path):
    command = [sys.executable, "-c", "for number in range(1, 2001): print(f'step {number} done')"]
    content = "".join(f"step {number} done\n" for number in range(1, 2001))
    async with Session(Settings(preset="artifacts", storeDir=str(tmp_path))) as session:
        reply = await session.call("execute_command", {"command": command}, execute_command)
        shown, reference = (block["text"] for block in reply.content)
        marker = re.match(r"\.\.\. \[Beginning omitted: ([\d,]+) lines / ([\d,]+) chars\] \.\.\.\n\n", shown)
        assert marker
        tail = shown[marker.end() :]
        assert content.endswith(tail)
        assert tail.endswith("step 1999 done\nstep 2000 done\n")
        assert "step 1 done" not in shown
        assert len(tail.splitlines()) == 200
        assert marker.groups() == ("1,800", f"{len(content) - len(tail):,}")
        assert reply.kept is not None
        assert reference.startswith(f"[Artifact: {reply.kept.artifact_id}] execute_command (29 KB)\nShortened by tail to ")
        assert reply.truncation is not None
        assert reply.truncation.strategy_used == "tail"
        assert session.open(reply.kept.handle).text() == content
