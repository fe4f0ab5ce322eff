"""In the default preset, what is shown fills the limit it was given. In the documents' presets, their numbers hold."""

from __future__ import annotations

import json

import pytest

from overspill.settings import Settings
from overspill.truncate import Shape, read_shape, truncate

FILLING = read_shape(Settings().truncation)
DOCUMENTED = read_shape(Settings("artifacts").truncation)
FILE_NAMES = json.dumps([f"src/module_{number}/file_{number}.py" for number in range(2000)])
SEARCH = json.dumps(
    {
        "results": [
            {"file": f"src/{name}.py", "matches": [{"line": line, "text": f"return {name} + {line}"} for line in range(20)]}
            for name in range(20)
        ]
    }
)
BY_KEY = json.dumps({f"file_{number}": {"size": number, "tags": ["a", "b"]} for number in range(2000)})
RECORDS = "\n".join(json.dumps({"id": number, "message": f"event {number}"}) for number in range(2000))
ELEMENTS = "<files>" + "".join(f"<file id='{number}'><name>f{number}</name></file>" for number in range(2000)) + "</files>"
LOG = "\n".join(f"step {number}" for number in range(5000))


@pytest.mark.parametrize("limit", [1000, 8000])
@pytest.mark.parametrize("text", [FILE_NAMES, SEARCH, BY_KEY, RECORDS, ELEMENTS], ids=["names", "search", "keys", "lines", "xml"])
def test_element_fills_its_limit(text: str, limit: int) -> None:
    cut = truncate(text, limit, "element", FILLING)
    assert cut.strategy == "element"
    assert 0.8 * limit < len(cut.text) <= limit
    assert len(truncate(text, limit, "element", DOCUMENTED).text) <= len(cut.text)


def test_element_shows_hundreds_of_file_names_where_the_documents_show_ten() -> None:
    assert truncate(FILE_NAMES, 8000, "element", DOCUMENTED).text.count("file_") == 10
    shown = json.loads(truncate(FILE_NAMES, 8000, "element", FILLING).text)
    (omission,) = (item for item in shown if item not in FILE_NAMES)
    assert len(shown) > 200
    assert omission == f"... {2000 - len(shown) + 1:,} items omitted ..."


def test_what_is_nested_is_opened_before_more_elements_are_shown() -> None:
    shown = json.loads(truncate(SEARCH, 8000, "element", FILLING).text)
    assert shown["results"][0]["matches"][0] == {"line": 0, "text": "return 0 + 0"}


@pytest.mark.parametrize("strategy", ["head", "tail", "line"])
def test_lines_fill_their_limit(strategy: str) -> None:
    assert 7900 < len(truncate(LOG, 8000, strategy, FILLING).text) <= 8000
    assert len(truncate(LOG, 8000, strategy, DOCUMENTED).text) < 4000


def test_a_number_that_was_set_holds_while_the_others_fill() -> None:
    shape = Shape(depth=None, first_elements=3, last_elements=None, max_keys=None)
    shown = json.loads(truncate(FILE_NAMES, 8000, "element", shape).text)
    assert shown[3].endswith("items omitted ...")
    assert len(shown) > 200
    assert truncate(FILE_NAMES, 8000, "element", Shape(first_elements=2, last_elements=1)).text.count("file_") == 3
