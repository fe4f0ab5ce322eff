"""Python functions as tools: how they are found, described and called."""

from __future__ import annotations

from pathlib import Path

import pytest

from overspill.agent.tools.functions import load_function
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


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("search", "The function f is 'search'. Write it as module:function or file.py:function."),
        ("nowhere:x", "The function f: nowhere cannot be imported (ModuleNotFoundError: No module named 'nowhere')."),
        ("json:nothing", "The function f is 'json:nothing', and json has no function 'nothing'."),
        ("{file}:number", "The function f is '{file}:number', and {file} has no function 'number'."),
        ("{file}:every", "The function f cannot be a tool: a model names its arguments, and *args has no name."),
        ("{file}:nameless", "The function f cannot be a tool: a model names its arguments, and x has no name."),
        ("{file}:broken", "The function f does not say what it takes: name 'Nothing' is not defined."),
    ],
)
def test_what_cannot_be_a_tool_is_refused(file: Path, reference: str, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        load_function("f", reference.format(file=file))
    assert str(error.value) == message.format(file=file)


def test_a_file_that_fails_is_refused_with_its_error(tmp_path: Path) -> None:
    path = tmp_path / "bad.py"
    path.write_text("1 / 0")
    with pytest.raises(SettingsError, match=r"bad\.py cannot be imported \(ZeroDivisionError: division by zero\)\."):
        load_function("f", f"{path}:x")
    with pytest.raises(SettingsError, match=r"cannot be imported \(FileNotFoundError"):
        load_function("f", f"{tmp_path / 'missing.py'}:x")


def test_a_type_json_does_not_have_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "odd.py"
    path.write_text("class Odd: ...\ndef take(x: Odd): ...\ndef self(self, x: object): ...")
    with pytest.raises(SettingsError, match=r"^The function f takes something JSON has no type for: type <.*> is"):
        load_function("f", f"{path}:take")
    assert load_function("f", f"{path}:self").parameters["properties"]["x"] == {}
