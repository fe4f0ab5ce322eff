"""With `redact: {stored: on}`, no store ever has a secret; with `redact.fill`, a tool gets one that its model never sees."""

import hashlib
import json
import random
import re
import string
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from overspill import Session, Settings
from overspill.errors import SettingsError
from overspill.programs.tools import ProgramTool
from overspill.retrieval.archive import Archive
from overspill.store.memory import MemoryStore

pytestmark = pytest.mark.anyio

SOURCE = random.Random(17)  # noqa: S311
SECRET = "".join(SOURCE.choices(string.ascii_letters + string.digits, k=24))
NAMED = {"SERVICE_TOKEN": SECRET}
LOG = "".join(f"line {number} of the log says status=ok\n" for number in range(1500))
TEXT = f"{LOG}connecting with {SECRET} now\n{LOG}"
ORACLES = {hashlib.sha256(data.encode()).hexdigest().encode() for data in (TEXT, SECRET)}


def read(path: str) -> str:
    return TEXT


def echo(a: str) -> str:
    return a


def read_files(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def stored(folder: Path, **more: Any) -> Settings:
    return Settings(redact={"stored": "on", **more}, store_dir=str(folder), retention="keep", record="replies")


@pytest.mark.parametrize("place", ["off", "on"])
async def test_a_secret_is_replaced_before_it_is_stored_and_the_reply_says_so(tmp_path: Path, place: str) -> None:
    settings = Settings(redact={"stored": place}, store_dir=str(tmp_path), retention="keep")
    async with Session(settings, secrets=NAMED) as session:
        reply = await session.call("logs", {"path": f"/x/{SECRET}"}, read)
        again = await session.call("logs", {}, lambda: TEXT)
        assert reply.kept is not None
        shown = session.open(reply.kept.name).text()
    files = read_files(tmp_path)
    assert (SECRET.encode() in files) == (place == "off")
    assert any(each in files for each in ORACLES) == (place == "off")
    assert ("[Not stored: service-token (1)." in reply.text) == (place == "on")
    assert ("[redacted:service-token:" in shown) == (place == "on")
    assert again.kept is not None
    assert reply.kept.size.bytes == len(shown.encode())


async def test_what_passes_is_untouched_but_not_recorded(tmp_path: Path) -> None:
    async with Session(stored(tmp_path), secrets=NAMED) as session:
        reply = await session.call("a", {}, lambda: f"it is {SECRET}")

        def fail() -> None:
            raise ValueError(f"cannot log in as {SECRET}")

        failed = await session.call("f", {}, fail)
    assert reply.text == f"it is {SECRET}"
    assert failed.is_error
    assert SECRET.encode() not in read_files(tmp_path)


async def test_a_stream_is_searched_across_its_borders_and_lines_keep_their_places(tmp_path: Path) -> None:
    block = LOG.encode() * 40

    async def stream() -> AsyncIterator[bytes]:
        yield block[:1_200_000]
        yield block[1_200_000:] + SECRET[:9].encode()
        yield SECRET[9:].encode() + b"\n" + block

    async with Session(stored(tmp_path), secrets=NAMED) as session:
        reply = await session.call("logs", {}, stream)
        assert reply.kept is not None
        with session.open(reply.kept.name) as output:
            data = output.bytes()
            assert output.damage == ""
    assert SECRET.encode()[:9] not in read_files(tmp_path)
    mark = data[data.index(b"[redacted:") : data.index(b"]", data.index(b"[redacted:")) + 1]
    assert data == block + mark + b"\n" + block


async def test_texts_of_several_blocks_begin_where_the_record_says() -> None:
    store = MemoryStore()
    blocks = [{"type": "text", "text": f"{SECRET} {LOG}"}, {"type": "text", "text": "second text"}]
    async with Session(Settings(redact={"stored": "on"}), secrets=NAMED, store=store) as session:
        reply = await session.call("two", {}, lambda: blocks)
        assert reply.kept is not None
        data = session.open(reply.kept.name).bytes()
    assert [data[start:] for start in reply.kept.blocks] == [b"second text"]


async def test_a_warning_counts_and_stores_everything() -> None:
    async with Session(Settings(redact={"stored": "warn"}), secrets=NAMED) as session:
        reply = await session.call("logs", {}, lambda: TEXT)
        assert reply.kept is not None
        assert session.open(reply.kept.name).text() == TEXT
    assert "[This output may contain secrets: service-token (1). Nothing was hidden.]" in reply.text


async def ask(
    settings: Settings, tool: str = "deploy", wrap: str = "{}", store: MemoryStore | None = None
) -> tuple[Any, list[Any]]:
    """Has a model read a mark, and give it to a tool."""
    got: list[Any] = []

    def deploy(**args: Any) -> str:
        got.append(args)
        raise ValueError(f"refused {json.dumps(json.dumps(args))} and {SECRET.encode().hex()}")

    async with Session(settings, secrets=NAMED, store=store) as session:
        seen = await session.call("env", {}, lambda: f"the token is {SECRET}")
        name = seen.text.rpartition(":")[2].rstrip("]")
        reply = await session.call(tool, {"auth": [wrap.format("{{secret:" + name + "}}")]}, deploy)
    return reply, got


FILL = Settings(redact={"shown": "on", "fill": ["deploy", "hub/push*"]})


async def test_a_listed_tool_gets_the_value_and_nobody_else() -> None:
    store = MemoryStore()
    reply, got = await ask(FILL, wrap="Bearer {}", store=store)
    journal = str([list(lines) for _, lines in Archive([store]).journals()])
    assert got == [{"auth": [f"Bearer {SECRET}"]}]
    assert reply.is_error
    for shown in (reply.text, journal):
        assert SECRET[:8] not in shown
        assert SECRET.encode().hex()[:12] not in shown


@pytest.mark.parametrize(
    ("settings", "tool", "says"),
    [
        (FILL, "other", "The tool other may not get secrets; the setting redact.fill can permit it."),
        (
            Settings(redact={"shown": "on", "fill": ["deploy"]}, truncation={"overrides": {"deploy": {"redactShown": "off"}}}),
            "deploy",
            "redact.shown is not on for it",
        ),
    ],
)
async def test_no_other_tool_gets_a_value(settings: Settings, tool: str, says: str) -> None:
    reply, got = await ask(settings, tool)
    assert got == []
    assert says in reply.text


async def test_no_tool_gets_a_value_that_is_too_short_to_be_hidden_when_it_comes_back() -> None:
    async with Session(FILL) as session:
        seen = await session.call("env", {}, lambda: "redis://app:s3cr3t@cache/0 is the address")
        (name,) = re.findall(r"url-password:(\w{8})", seen.text)
        reply = await session.call("deploy", {"a": "{{secret:" + name + "}}"}, echo)
    assert "s3cr3t" not in seen.text + reply.text
    assert f"The value of the mark {name} is too short" in reply.text


async def test_it_is_off_by_default_and_unknown_marks_are_refused() -> None:
    _, got = await ask(Settings(redact={"shown": "on"}))
    assert got[0]["auth"][0].startswith("{{secret:")
    async with Session(FILL, secrets=NAMED) as session:
        reply = await session.call("deploy", {"a": "{{secret:aaaaaaaa}}"}, echo)
    assert "No mark in this session has the name aaaaaaaa." in reply.text


def test_a_pattern_that_re2_does_not_take_is_refused_with_its_name() -> None:
    with pytest.raises(SettingsError, match=r"redact\.patterns\.ticket is not a regular expression of RE2 .*missing"):
        Settings(redact={"patterns": {"ticket": "TCK-(\\d"}})


async def test_what_an_output_was_made_from_is_recorded_without_secrets_or_their_hashes() -> None:
    pytest.importorskip("duckdb")

    async def env() -> str:
        return f"token {SECRET}"

    async def list_tools() -> list[ProgramTool]:
        return [ProgramTool("env", "", {"type": "object"}, env)]

    store = MemoryStore()
    async with Session(Settings(redact={"stored": "on"}, programTools=["/env"]), secrets=NAMED, store=store) as session:
        session.offer_to_programs(list_tools)
        program = await session.run_program(f"seen = await env()\nsave('a', 'word ' * 9000)\n'{SECRET}' in seen")
        rows = (await session.call("rows", {}, lambda: [{"id": number, "to": "x" * 30} for number in range(3000)])).kept
        assert rows is not None
        for before in (0, 9_960):
            await session.sql(f"SELECT *, '{'x' * before}{SECRET}' AS seen FROM {rows.name}")
        journal = b"".join(line for _, lines in Archive([store]).journals() for line in lines).decode()
    assert "True" in program.text
    assert journal.count("lineage") >= 3
    assert not any(SECRET[at : at + 6] in journal for at in range(len(SECRET) - 5))
    assert hashlib.sha256(f"token {SECRET}".encode()).hexdigest() not in journal
