"""The proxies of one client offer no retrieval tools; one entry, `overspill serve`, reads what all of them have stored."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import anyio
import pytest
from forked import ForkedApart
from hubs import HubFront, HubHome, hub_home
from slow import slow
from wire import OVERSPILL, Process, Wire, every, proxied

from overspill import Session, Settings
from overspill.hooks.shapes import family_of


@pytest.fixture(params=["alone", "hub"])
def home(request: pytest.FixtureRequest) -> Iterator[HubHome]:
    with hub_home() as found:
        found.env["OVERSPILL_HUB"] = "on" if request.param == "hub" else "off"
        yield found


def start(home: HubHome, *words: str, cwd: Path | None = None, **env: str) -> HubFront:
    return HubFront([*OVERSPILL, *words], {**home.env, **env}, cwd or home.folder)


def member(home: HubHome, *options: str, group: str = "cursor", **env: str) -> HubFront:
    return start(home, "proxy", "--group", group, *options, "--", *every(), **env)


def apart(home: HubHome, *words: str) -> HubFront:
    """Started by another process, as by another client in the same folder."""
    return HubFront([*OVERSPILL, *words], home.env, home.folder, fork=ForkedApart)


def store_lines(wire: Wire) -> str:
    """Store a large output, and return its handle."""
    said = wire.call("lines", {"count": 2_000})["content"][0]["text"]
    found = re.search(r"get_tool_output\(id=\"?([\w-]+)", said)
    assert found, said
    return found[1]


def read(wire: Wire, id: str) -> str:
    return wire.text("get_tool_output", {"id": id, "mode": "slice", "slice": {"lines": "1-1"}})


def test_only_one_entry_of_a_client_offers_the_retrieval_tools(home: HubHome):
    with member(home) as first, start(home, "serve", "cursor") as reader:
        first.hello()
        reader.hello()
        assert "get_tool_output" not in first.names()
        assert reader.names() == ["get_tool_output"]


def test_it_reads_what_the_others_have_stored_while_they_are_running(home: HubHome):
    with ExitStack() as stack:
        members = [stack.enter_context(member(home)) for _ in range(3)]
        reader = stack.enter_context(start(home, "serve", "cursor"))
        for each in (*members, reader):
            each.hello()
        ids = [store_lines(each) for each in members]
        assert len(set(ids)) == 3
        for id in ids:
            assert "line 1: the quick brown fox" in read(reader, id)


def test_it_waits_for_calls_that_keep_running(home: HubHome):
    done = home.folder / "done"
    with member(home, "--set", "asyncTimeoutSecs=0.2") as first, start(home, "serve", "cursor") as reader:
        first.hello()
        reader.hello()
        first.call("pid")
        first.call("pid")
        said = first.text("wait", {"file": str(done), "then": "yes"})
        found = re.search(r"id=\"?([\w-]+)", said)
        assert found, said
        asked = reader.begin("tools/call", {"name": "get_tool_output", "arguments": {"id": found[1], "mode": "wait"}})
        done.touch()
        assert reader.answer(asked)["result"]["content"][0]["text"] == "yes"


@pytest.mark.parametrize("other", ["windsurf", *slow("folder")])
def test_another_client_and_another_folder_are_another_group(other: str, home: HubHome):
    elsewhere = home.folder / "elsewhere"
    elsewhere.mkdir()
    place, name = (elsewhere, "cursor") if other == "folder" else (home.folder, other)
    with member(home) as first, start(home, "serve", name, cwd=place) as reader:
        first.hello()
        reader.hello()
        id = store_lines(first)
        assert "line 1:" not in read(reader, id)


def test_two_clients_in_one_folder_do_not_see_each_others_handles(home: HubHome):
    with member(home) as first, start(home, "serve", "cursor") as reader, apart(home, "serve", "cursor") as stranger:
        for each in (first, reader, stranger):
            each.hello()
        id = store_lines(first)
        assert "line 1:" not in read(stranger, id)
        assert "line 1:" in read(reader, id)


def test_what_a_session_stored_that_ended_before_its_client_stays_with_that_client(home: HubHome):
    with member(home) as first:
        first.hello()
        id = store_lines(first)
    with start(home, "serve", "cursor") as mine, apart(home, "serve", "cursor") as theirs:
        mine.hello()
        theirs.hello()
        assert "line 1:" in read(mine, id)
        assert "Unknown tool ID" in read(theirs, id)


def test_a_client_that_comes_back_reads_what_it_had_stored_and_left_running(home: HubHome):
    done, options = home.folder / "done", ("--set", "truncation.overrides.wait.asyncTimeoutSecs=0.2")
    with apart(home, "proxy", "--group", "cursor", *options, "--", *every()) as first:
        first.hello()
        first.call("pid")
        id = store_lines(first)
        said = first.text("wait", {"file": str(done), "then": "yes"}) if home.env["OVERSPILL_HUB"] == "on" else ""
    with start(home, "serve", "cursor") as reader:
        reader.hello()
        assert "line 1:" in read(reader, id)
        if said:
            asked = reader.begin("tools/call", {"name": "get_tool_output", "arguments": {"id": said.split()[3], "mode": "wait"}})
            assert read(reader, said.split()[3]).startswith("Tool not ready.")
            done.touch()
            assert reader.answer(asked)["result"]["content"][0]["text"] == "yes"


def test_secrets_that_only_the_storing_proxy_knows_stay_hidden(home: HubHome):
    value = "tuesday-7f3a9c1e5b"
    options = ("--set", "redact.shown=on", "--set", "toolResponseMaxBytes=20")
    with member(home, *options, API_TOKEN=value) as first, start(home, "serve", "cursor") as reader:
        first.hello()
        reader.hello()
        file = home.folder / "done"
        file.touch()
        said = first.text("wait", {"file": str(file), "then": f"before\n{value}\nafter"})
        found = re.search(r"get_tool_output\(id=\"?([\w-]+)", said)
        assert found, said
        answer = reader.text("get_tool_output", {"id": found[1], "mode": "raw"})
        assert "before" in answer
        assert value not in said + answer


def test_with_a_search_for_tools_too_it_offers_no_retrieval_tools(tmp_path: Path):
    with Process(proxied(every(), "--group", "cursor", "--tool-search", "on", f"--set=storeDir={tmp_path}")) as wire:
        wire.hello()
        assert set(wire.names()) >= {"find_tools", "describe_tools", "call_tool"}
        assert "get_tool_output" not in wire.names()


@pytest.mark.parametrize("name", ["", "../x", "a b", "x" * 41])
def test_a_name_that_cannot_be_a_group_is_refused(name: str):
    with Process([*OVERSPILL, "serve", name]) as wire:
        assert wire.process.wait(30) == 2
        wire.end()
        assert b"is not a name of up to 40 letters, digits and hyphens" in wire.errors


def test_secrets_in_what_a_hook_has_stored_are_hidden_too(home: HubHome):
    value = "tuesday-7f3a9c1e5b"
    text = "".join(f"line {number} of a log\n" for number in range(3_000)) + f"before {value} after\n"
    settings = Settings(storeDir=str(home.folder / "store"), retention="keep", redact={"shown": "on"})

    async def keep() -> str:
        family = family_of("cursor", str(home.folder))
        async with Session(settings, family=family, preload=False, secrets={"API_TOKEN": value}) as session:
            return (await session.keep(text, "log")).handle

    id = anyio.run(keep)
    folder = home.folder / ".config" / "overspill"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text(f"storeDir: {home.folder / 'store'}\nredact: {{shown: on}}\n")
    with start(home, "serve", "cursor", API_TOKEN=value) as reader:
        reader.hello()
        answer = reader.text("get_tool_output", {"id": id, "mode": "grep", "pattern": "before"})
    assert "before [redacted:api-token:" in answer
    assert value not in answer
