"""Code in colours: every character stays, nothing runs, and no text takes long."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from linear import is_linear
from viewers import Client, fill, output_path, running_viewer

from overspill.view.rendering import color_code, find_comments

PYTHON, RUST = find_comments(["def f():", "    return 1"]), find_comments(["fn f() {", "    g();", "}"])


def show(text: str, pattern: re.Pattern[str]) -> str:
    return color_code(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "line", "colored"),
    [
        (PYTHON, "return 7 // 2  # half", [("w", "return"), ("n", "7"), ("n", "2"), ("c", "# half")]),
        (PYTHON, 'print("a # b", returned)', [("s", '"a # b"')]),
        (RUST, 'let x = "a\\" // b"; // c', [("w", "let"), ("s", '"a\\" // b"'), ("c", "// c")]),
        (RUST, "/* if */ if", [("c", "/* if */"), ("w", "if")]),
        (RUST, "#include <stdio.h>", [("w", "include")]),
    ],
)
def test_comments_strings_numbers_and_words_are_told_apart(pattern: re.Pattern[str], line: str, colored: list[tuple[str, str]]):
    found = re.findall(r'<span class="code-(.)">(.*?)</span>', show(line, pattern))
    assert [(kind, unescape(text)) for kind, text in found] == colored


@given(st.text(alphabet=st.one_of(st.sampled_from("\"'`\\/*#<>&;{}0a \n"), st.characters())), st.sampled_from([PYTHON, RUST]))
def test_every_character_stays_and_is_escaped(text: str, pattern: re.Pattern[str]):
    shown = show(text, pattern)
    bare = re.sub(r'<span class="code-[csnw]">|</span>', "", shown)
    assert "<" not in bare
    assert (
        bare.replace("&lt;", "<").replace("&gt;", ">").replace("&#34;", '"').replace("&#39;", "'").replace("&amp;", "&") == text
    )


@pytest.mark.parametrize("unit", ['"', '"\\', "'", "`", "/*", "/*/", "//", "#", "1.", "if ", "'\"`"])
@pytest.mark.parametrize("pattern", [PYTHON, RUST], ids=["hashes", "slashes"])
def test_no_text_takes_longer_than_its_length(unit: str, pattern: re.Pattern[str]):
    assert is_linear(lambda size: lambda: show((unit * size)[:size], pattern), 5_000, quick=0.01, hopeless=10)


def test_hostile_code_is_shown_in_colours_and_as_text(tmp_path: Path):
    code = (
        "import os\n\n"
        + "def f(x):\n    y = '<script>window.ran=1</script>'  # <img src=x onerror=alert(1)>\n    return y\n\n" * 500
    )
    kept = fill(tmp_path, big=code)[0]
    with running_viewer(tmp_path) as viewer:
        page = Client(viewer).enter().get(output_path(kept)).text
    assert '<span class="code-w">def</span>' in page
    assert "<script>window" not in page
    assert "<img" not in page
    assert '<span class="code-c"># &lt;img src=x onerror=alert(1)&gt;</span>' in page
