"""Python functions as tools: how they are found, described and called."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from agents import Stage, call, report, scripted, seen

from overspill.agent.tools import Files, load_function
from overspill.errors import SettingsError

SOURCE = '''
from __future__ import annotations
from dataclasses import dataclass
from typing import Literal

@dataclass
class Place:
    city: str

def search(text: str, place: Place, order: Literal["up", "down"] = "up", most: int = 5) -> list[object]:
    """Search the depot.

    Every word counts.
    """
    return [text, place.city, order, most]

class Depot:
    @staticmethod
    def close(): return "closed"

def untyped(a, b=[1]): return [a, b]
def every(*args): ...
def odd(x: object): ...
def nameless(x, /): ...
def broken(x: Nothing): ...
number = 3
'''


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "tools.py"
    path.write_text(SOURCE)
    return path


def test_a_function_is_described_by_its_docstring_and_its_signature(file: Path) -> None:
    offer = load_function("find", f"{file}:search")
    assert (offer.name, offer.description) == ("find", "Search the depot.\n\nEvery word counts.")
    assert offer.parameters == {
        "type": "object",
        "additionalProperties": False,
        "required": ["text", "place"],
        "properties": {
            "text": {"type": "string"},
            "place": {"$ref": "#/$defs/Place"},
            "order": {"enum": ["down", "up"]},
            "most": {"type": "integer"},
        },
        "$defs": {
            "Place": {
                "title": "Place", "type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"],
            }
        },
    }  # fmt: skip


def test_arguments_are_checked_and_become_what_the_function_takes(file: Path) -> None:
    run = load_function("find", f"{file}:search").run
    assert run(text="x", place={"city": "Riga"}, most="7") == ["x", "Riga", "up", 7]
    wrong = run(text="x", place={"city": "Riga"}, order="sideways")
    assert (wrong.is_error, wrong.content[0]["text"]) == (
        True, "Invalid arguments for find: Invalid enum value 'sideways' - at `$.order`.",
    )  # fmt: skip
    assert "unknown field `colour`" in run(text="x", place={"city": "Riga"}, colour="red").content[0]["text"]


def test_functions_without_types_and_inside_classes_work_too(file: Path) -> None:
    assert load_function("u", f"{file}:untyped").run(a={"any": "thing"}) == [{"any": "thing"}, [1]]
    assert load_function("close", f"{file}:Depot.close").run() == "closed"
    assert load_function("basename", "posixpath:basename").run(p="a/b") == "b"


def test_files_of_the_same_name_do_not_collide(tmp_path: Path) -> None:
    files: Files = {}
    for folder, type_ in (("orders", "int"), ("people", "str")):
        (tmp_path / folder).mkdir()
        source = f"from __future__ import annotations\nfrom dataclasses import dataclass\nNumber = {type_}\n"
        source += "@dataclass\nclass Item:\n    number: Number\ndef add(item: Item): ...\ndef remove(item: Item): ...\n"
        (tmp_path / folder / "tools.py").write_text(source)
    load_function("add_order", f"{tmp_path}/orders/tools.py:add", files)
    load_function("add_person", f"{tmp_path}/people/tools.py:add", files)
    found = load_function("remove_order", f"{tmp_path}/orders/tools.py:remove", files)
    assert found.parameters["$defs"]["Item"]["properties"] == {"number": {"type": "integer"}}


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("search", "The function f is 'search'. Write it as module:function or file.py:function."),
        ("nowhere:x", "Could not import nowhere for the function f (ModuleNotFoundError: No module named 'nowhere')."),
        ("json:nothing", "The function f is 'json:nothing', but json has no function 'nothing'."),
        ("{file}:number", "The function f is '{file}:number', but {file} has no function 'number'."),
        ("{file}:every", "The function f cannot be a tool: models pass arguments by name, and *args cannot be passed by name."),
        ("{file}:nameless", "The function f cannot be a tool: models pass arguments by name, and x cannot be passed by name."),
        ("{file}:broken", "Cannot read the parameters of the function f: name 'Nothing' is not defined."),
    ],
)
def test_what_cannot_be_a_tool_is_refused(file: Path, reference: str, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        load_function("f", reference.format(file=file))
    assert str(error.value) == message.format(file=file)


def test_a_file_that_fails_is_refused_with_its_error(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("1 / 0")
    with pytest.raises(
        SettingsError, match=r"^Could not import .*bad\.py for the function f \(ZeroDivisionError: division by zero\)\.$"
    ):
        load_function("f", f"{path}:x")
    with pytest.raises(SettingsError, match=r"^Could not import .*missing\.py for the function f \(FileNotFoundError"):
        load_function("f", f"{tmp_path / 'missing.py'}:x")


def test_a_type_json_does_not_have_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    path.write_text("class Odd: ...\ndef take(x: Odd): ...\ndef self(self, x: object): ...")
    with pytest.raises(SettingsError, match=r"^The function f has a parameter that JSON cannot represent: type <.*> is"):
        load_function("f", f"{path}:take")
    assert load_function("f", f"{path}:self").parameters["properties"]["x"] == {}


@pytest.mark.anyio
async def test_an_agent_calls_a_function_of_your_program(tmp_path: Path) -> None:
    weights = {"p1": 3}

    async def weigh(parcel: str) -> int:
        """The weight of a parcel in kg."""
        return weights[parcel]

    stage, model = Stage(tmp_path), scripted(call("weigh", parcel="p1"), report())
    stage.functions["weigh"] = weigh
    record = await stage.run(stage.write("a.ai"), model)
    assert (record.outcome.status, seen(model)[1].answers) == ("reported", ["3"])
    (tool,) = [tool for tool in model.requests[0].tools if tool["name"] == "weigh"]
    assert tool["description"] == "The weight of a parcel in kg."


@pytest.mark.parametrize("odd", [None, 3, ["module:function"]])
def test_what_is_neither_a_function_nor_its_name_is_refused(odd: Any) -> None:
    with pytest.raises(SettingsError, match=r"The function f is .+ Write it as module:function or file\.py:function\.$"):
        load_function("f", odd)
