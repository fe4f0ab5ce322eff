"""Somebody removes the store while a session lives: every call still has an honest answer."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from overspill import Session, Settings, ToolCall
from overspill.errors import ExpiredHandle, StoreError

LINES = "".join(f"line {number:06}\n" for number in range(1, 10_001))


def remove(place: Path) -> None:
    for path in place.iterdir():
        shutil.rmtree(path)


@pytest.mark.promise("failures-are-answers")
@pytest.mark.parametrize("form", [str, str.encode])
async def test_an_output_that_cannot_be_stored_is_shown_as_far_as_the_limits_allow(tmp_path: Path, form: Any):
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        remove(tmp_path)
        reply = await session.call("dump", {}, lambda: form(LINES))
        assert reply.kept is None
        shown, note = (block["text"] for block in reply.content)
        assert shown.startswith("line 000001\n")
        assert shown.endswith("line 010000\n")
        assert len(shown.encode()) <= 12_288
        assert note.startswith("[The output has 120,000 bytes. None of it was saved: ")
        assert note.endswith("The part that is not shown above is lost. Call the tool again and ask for less.]")
        assert (await session.call("dump", {}, lambda: "small")).text == "small"


async def test_what_was_stored_before_has_expired(tmp_path: Path):
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        kept = await session.keep(LINES, "note")
        remove(tmp_path)
        with pytest.raises(ExpiredHandle):
            session.open(kept.handle)
        reply = await session.invoke("get_tool_output", {"id": kept.artifact_id, "mode": "slice"})
        assert (reply.text, reply.is_error) == ("Tool output expired. Call note again.", True)
        with pytest.raises(StoreError):
            await session.keep("more", "note")


async def test_a_stream_whose_beginning_vanished_is_not_shown_as_if_it_were_whole(tmp_path: Path):
    async def stream() -> AsyncIterator[str]:
        for _ in range(3):
            yield LINES * 10
        remove(tmp_path)
        yield "the end\n"

    async with Session(Settings(storeDir=str(tmp_path))) as session:
        reply = await session.call("dump", {}, stream)
        assert reply.kept is None
        assert "[The output has 3,600,008 bytes. None of it was saved: " in reply.text
        assert len(reply.text) < 13_000


async def test_a_text_of_megabytes_still_shows_its_ends(tmp_path: Path):
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        remove(tmp_path)
        reply = await session.call("dump", {}, lambda: LINES * 20)
        shown = reply.content[0]["text"]
        assert (reply.kept, shown.startswith("line 000001\n"), shown.endswith("line 010000\n")) == (None, True, True)
        assert reply.truncation is not None
        assert reply.truncation.original_size == 2_400_000


async def test_a_new_session_makes_the_place_anew(tmp_path: Path):
    place = tmp_path / "store"
    async with Session(Settings(storeDir=str(place))):
        shutil.rmtree(place)
    async with Session(Settings(storeDir=str(place))) as session:
        kept = await session.keep("text", "note")
        assert session.open(kept.handle).text() == "text"


async def test_a_stream_that_would_have_passed_says_that_it_is_gone(tmp_path: Path):
    async def stream() -> AsyncIterator[str]:
        yield LINES * 10
        yield LINES * 10
        remove(tmp_path)

    settings = Settings(storeDir=str(tmp_path), truncation={"overrides": {"dump": {"off": True}}})
    async with Session(settings) as session:
        reply = await session.call("dump", {}, stream)
        assert (reply.kept, reply.is_error) == (None, True)
        assert reply.text == (
            "[The output has 2,400,000 bytes. None of it was saved: "
            "its beginning was stored and has been removed since. "
            "The part that is not shown above is lost. Call the tool again and ask for less.]"
        )


async def test_a_reference_to_an_output_that_the_store_refuses_is_an_answer_too(tmp_path: Path):
    async with Session(Settings(storeDir=str(tmp_path))) as session:
        kept = await session.keep("text")
        (file,) = tmp_path.rglob(kept.id)
        file.unlink()
        file.symlink_to(tmp_path / "elsewhere")
        call = ToolCall("1", "send", {"body": f"{{{{output:{kept.handle}}}}}"})
        (reply,) = await session.turn([call], lambda _: "sent")
        assert (reply.is_error, reply.text) == (
            True,
            f"The argument /body cannot be filled in: Could not open {kept.handle}: it is a symbolic link, and those are never "
            "followed. The tool send was not called.",
        )
