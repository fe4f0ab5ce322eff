"""`wrap_tools` over plain functions, as a framework that takes functions sees them."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from extras import needs

from overspill import Session, Settings, SyncSession
from overspill.errors import BadRequest
from overspill.integrations.functions import wrap_tools

BIG = "".join(f"line {number}\n" for number in range(50_000))


@dataclass
class Person:
    name: str


def find(name: str, limit: int = 3) -> Any:
    """Find a person."""
    return BIG if name == "everybody" else Person(name)


async def test_wrapped_functions_keep_name_signature_and_docstring():
    async with Session() as session:
        wrapped, *_ = wrap_tools([find], session)
    assert (wrapped.__name__, wrapped.__doc__, inspect.signature(wrapped)) == ("find", "Find a person.", inspect.signature(find))


async def test_a_small_result_is_the_tools_own_object_and_a_large_one_a_text():
    async with Session() as session:
        wrapped, *_ = wrap_tools([find], session)
        assert await wrapped("Ann") == Person("Ann")
        assert "stored as out_" in await wrapped(name="everybody")


def test_with_a_blocking_session_nothing_is_async(tmp_path: Path):
    with SyncSession(Settings(storeDir=str(tmp_path))) as session:
        tools = {tool.__name__: tool for tool in wrap_tools([find], session)}
        name = tools["find"](name="everybody").split("stored as ")[1][:10]
        assert "line 777\n" in tools["get_tool_output"](id=name, mode="grep", pattern="^line 777$", context=0, from_=None)


async def test_the_retrieval_tools_are_functions_that_describe_themselves():
    async with Session() as session:
        offered = {tool["name"]: tool["parameters"]["properties"] for tool in session.tools()}
        functions = {tool.__name__: tool for tool in wrap_tools([], session)}
    assert functions.keys() == offered.keys()
    for name, function in functions.items():
        parameters = [key.removesuffix("_") if key == "from_" else key for key in inspect.signature(function).parameters]
        assert parameters == list(offered[name])
        assert set(get_type_hints(function)) == {*inspect.signature(function).parameters, "return"}
        assert all(f"    {key}" in function.__doc__ for key in parameters)


async def test_an_exception_of_the_tool_is_raised():
    def fail() -> str:
        raise ValueError("the disk is full")

    async with Session() as session:
        wrapped, *_ = wrap_tools([fail], session)
        with pytest.raises(ValueError, match="the disk is full"):
            await wrapped()


async def test_an_object_that_only_the_framework_can_show_passes():
    picture = object()
    async with Session() as session:
        wrapped, *_ = wrap_tools([lambda: picture], session)
        assert await wrapped() is picture


async def test_images_stay_beside_a_text_that_is_stored():
    image = {"type": "image", "data": "QUFB", "mimeType": "image/png"}

    def look() -> Any:
        return [{"type": "text", "text": BIG}, image]

    async with Session() as session:
        wrapped, *_ = wrap_tools([look], session)
        text, shown = await wrapped()
    assert "stored as out_" in text["text"]
    assert shown is image


def get_tool_output() -> str:
    return ""


@pytest.mark.parametrize(
    ("tools", "message"),
    [
        (["find"], "A tool must be a function, not str."),
        ([len], "len cannot be a tool: models pass arguments by name, and (obj, /) has some without a name."),
        (
            [get_tool_output],
            "get_tool_output cannot be a tool, because Overspill has a tool of that name. Give the session a tool_prefix.",
        ),
    ],
)
def test_what_cannot_be_a_tool_is_refused(tools: Any, message: str):
    with pytest.raises(BadRequest) as refused:
        wrap_tools(tools, Session())
    assert str(refused.value) == message


def test_a_prefix_makes_room_for_a_tool_of_that_name():
    names = [tool.__name__ for tool in wrap_tools([get_tool_output], Session(tool_prefix="overspill_"))]
    assert names == ["get_tool_output", "overspill_get_tool_output"]


def read_orders(shop: str, **more: Any) -> str:
    """Read all orders."""
    lines = [f"2026-11-16 12:00:{number % 60:02} INFO order {number} of {shop} is paid {more}" for number in range(5_000)]
    return "\n".join([*lines[:2_000], "2026-11-16 13:00:00 ERROR order 4711 was refused: card expired", *lines[2_000:]])


def test_the_model_may_say_what_it_is_looking_for(tmp_path: Path):
    with SyncSession(Settings(storeDir=str(tmp_path), intent="ask", intentWithinSecs=30)) as session:
        wrapped, *_ = wrap_tools([read_orders], session)
        assert list(inspect.signature(wrapped).parameters) == ["shop", "looking_for", "more"]
        assert get_type_hints(wrapped)["looking_for"] == str | None
        assert "order 4711 was refused" in wrapped(shop="x", looking_for="which orders were refused")
        assert "order 4711 was refused" not in wrapped("x")
        small = wrap_tools([find], session)[0]
        assert small("Ann", looking_for="her age") == Person("Ann")
        assert small("Ann", 4, looking_for=None) == Person("Ann")


async def test_an_argument_of_the_tool_that_has_this_name_is_its_own():
    def seek(looking_for: str) -> str:
        return looking_for

    async with Session(Settings(intent="ask")) as session:
        wrapped, *_ = wrap_tools([seek], session)
        assert inspect.signature(wrapped) == inspect.signature(seek)
        assert await wrapped(looking_for="gold") == "gold"


@needs("pydantic_monty", "programs")
@pytest.mark.parametrize(("listed", "printed"), [(["count"], "7"), ([], "'count' is not defined")])
def test_programs_call_the_functions_that_the_user_lists(tmp_path: Path, listed: list[str], printed: str):
    def count(word: str) -> int:
        return len(word)

    with SyncSession(Settings(storeDir=str(tmp_path), programTools=listed, surface=["run_program"])) as session:
        tools = {tool.__name__: tool for tool in wrap_tools([count], session)}
        assert printed in tools["run_program"](code="await count(word='letters')")
