"""A model's program behind the proxy: which tools of real servers it may call, and what is recorded of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Place
from extras import needs
from viewers import Client, output_path, run_apart, running_viewer
from wire import Served, config, every

from overspill import Session, Settings
from overspill.store.files.store import FileStore
from overspill.types import Kept

pytestmark = needs("pydantic_monty", "programs")
LINES = "found = await every.lines(count=2000)\nprint(len(found.splitlines()))"


def test_a_program_calls_no_tool_of_a_server_until_the_user_lists_it(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path) as wire:
        wire.hello()
        result = wire.call("run_program", {"code": LINES})
        assert result["isError"]
        assert "'every' is not defined" in result["content"][0]["text"]
        assert wire.text("run_program", {"code": "1 + 1"}) == "2"


def test_a_program_gets_the_whole_result_of_a_tool_that_is_listed(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path, settings={"programTools": ["every/lines"]}) as wire:
        wire.hello()
        assert wire.text("run_program", {"code": LINES}) == "2000"
        assert wire.text("run_program", {"code": "tool_stubs()"}) == (
            "async def every.lines(*, count: int) -> Any: ...  # The tool lines."
        )
        assert "may not call every.say" in wire.text("run_program", {"code": "await _call('every.say', '{}')"})


def test_a_servers_word_that_a_tool_only_reads_counts_if_the_user_trusts_it(tmp_path: Path) -> None:
    with Served([config(every())], tmp_path, settings={"trustReadOnly": ["every"]}) as wire:
        wire.hello()
        stubs = wire.text("run_program", {"code": "tool_stubs()"})
        assert [line.split("(")[0] for line in stubs.splitlines()] == ["async def every.say"]


def test_what_one_server_says_does_not_reach_another(tmp_path: Path) -> None:
    servers = [config(every(), "first"), config(every(), "second")]
    with Served(servers, tmp_path, settings={"programTools": ["*/lines", "*/say"]}) as wire:
        wire.hello()
        code = "text = await first.lines(count=3)\nawait second.say(text=text)"
        assert "refs.allow" in wire.text("run_program", {"code": code})


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    return Place(tmp_path, monkeypatch, capsys)


def make_result(root: Path) -> tuple[str, Kept, Kept]:
    """The program, what it read, and what it made."""

    async def run() -> tuple[str, Kept, Kept]:
        store = FileStore(root)
        async with Session(Settings(retention="keep", programTools=["double"]), store=store) as session:

            @session.tool
            def double(x: int) -> str:
                return str(2 * x)

            kept = await session.keep(json.dumps([1, 2, 3]), "numbers")
            code = f"rows = load('{kept.name}')\nif rows:\n    print(await double(x=sum(rows)), '<b>')"
            assert (await session.run_program(code)).text == "12 <b>"
            made = session.kept()[-1]
        store.close()
        return code, kept, made

    return run_apart(run)


@pytest.mark.slow
def test_verify_and_the_viewer_show_what_ran_on_what(place: Place) -> None:
    code, read, made = make_result(place.store)
    assert made.lineage is not None
    (called,) = made.lineage.calls

    (facts,) = json.loads(place.overspill("verify", made.id, "--json").out)
    assert (facts["lineage"]["query"], facts["lineage"]["language"]) == (code, "python")
    out = place.overspill("verify", made.id).out
    for line in code.splitlines():
        assert f"    {line}\n" in out
    assert f"  from {read.name}: {read.handle}, SHA-256 {read.sha256}\n" in out
    assert f"  called double: not stored, SHA-256 {called.sha256}\n" in out

    with running_viewer(place.store) as viewer:
        page = Client(viewer).enter().get(output_path(made))
        assert "Made by a program" in page.words
        assert "&lt;b&gt;" in page.text
        assert all(shown in page.words for shown in (read.sha256, read.handle, called.sha256))
