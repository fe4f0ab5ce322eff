"""A model that answers from a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from overspill.errors import SettingsError
from overspill.models.opening import open_model
from overspill.models.protocol import Message, ModelError, Request
from overspill.types import ToolCall

HANDLE = "session-01a1de41-6edd-721a-a918-7e77a9c1fc94/01a1de41-6488-75ca-8a8b-5e79c4086245"

SCRIPT = """\
- text: I look.
  calls:
    - tool: read
- calls:
    - {tool: tool_output, args: {handle: <HANDLE>, more: [<ID>, 3]}}
- text: It says <ANSWER>
"""


def model(tmp_path: Path, script: str = SCRIPT):
    path = tmp_path / "s.yaml"
    path.write_text(script)
    return open_model(f"scripted/{path}", {}, {})


@pytest.mark.anyio
async def test_it_answers_in_order_and_fills_in_what_it_was_given(tmp_path: Path) -> None:
    scripted = model(tmp_path)
    request = Request("", (Message("user", "x"),))
    first = await scripted.ask(request)
    assert (first.text, first.calls) == ("I look.", (ToolCall("call_1_1", "read"),))
    given = f'handle = "{HANDLE}"\nTool Output ID: art_1\nTool: x'
    request = Request("", (Message("user", HANDLE[::-1]), Message("tool", given)))
    assert (await scripted.ask(request)).calls[0].args == {"handle": HANDLE, "more": ["art_1", 3]}
    assert (await scripted.ask(request)).text == f"It says {given}"
    with pytest.raises(ModelError, match="has 3 answers and was asked once more"):
        await scripted.ask(request)


@pytest.mark.anyio
async def test_what_was_not_given_is_none(tmp_path: Path) -> None:
    scripted = model(tmp_path, "- text: <HANDLE> <ID> <ANSWER>")
    assert (await scripted.ask(Request("", (Message("user", "x"),)))).text == "none none "


@pytest.mark.parametrize("script", ["text: x", "- txt: x", "- calls: [{args: {}}]", "- 3"])
def test_a_file_that_is_not_a_script_is_refused(tmp_path: Path, script: str) -> None:
    with pytest.raises(SettingsError, match=r"s\.yaml is not a script: .* It is a list of answers"):
        model(tmp_path, script)
