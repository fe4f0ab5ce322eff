"""Agent files: what they may look like, and what is said of those that cannot be used."""

from __future__ import annotations

from pathlib import Path

import pytest

from overspill.agent.file import OutputKeys, read_agent_file
from overspill.errors import SettingsError

FULL = """\
#!/usr/bin/env -S overspill run

---
description: Reads logs.
models: [openai/gpt-4.1, scripted/answers.yaml]
tools: [files, {github: [search, get]}]
agents: [below.ai]
output: {format: json, schema: {type: object}}
maxTurns: 3
---

You read logs.

---
Not frontmatter.
"""


NOT_YAML = "The frontmatter of a.ai is not usable YAML"


def read(tmp_path: Path, text: str | bytes, name: str = "a.ai"):
    path = tmp_path / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_agent_file(path)


def test_a_file_has_a_shebang_frontmatter_and_a_prompt(tmp_path: Path) -> None:
    file = read(tmp_path, FULL)
    assert file.keys.description == "Reads logs."
    assert file.keys.tools == ("files", {"github": ("search", "get")})
    assert file.keys.agents == ("below.ai",)
    assert file.keys.output == OutputKeys("json", {"type": "object"})
    assert file.settings == {"models": ["openai/gpt-4.1", f"scripted/{tmp_path / 'answers.yaml'}"], "maxTurns": 3}
    assert file.prompt == "You read logs.\n\n---\nNot frontmatter."


@pytest.mark.parametrize("text", ["Just this.", "\ufeffJust this.\r\n", "#!/bin/x\nJust this.", "---\n---\nJust this."])
def test_only_the_prompt_is_required(tmp_path: Path, text: str) -> None:
    file = read(tmp_path, text)
    assert (file.prompt, file.settings, file.keys.tools) == ("Just this.", {}, ())


def test_a_single_name_is_a_list_of_one(tmp_path: Path) -> None:
    file = read(tmp_path, "---\ntools: files\nagents: b.ai\nmodels: openai/x\n---\nx")
    assert (file.keys.tools, file.keys.agents, file.settings["models"]) == (("files",), ("b.ai",), "openai/x")


@pytest.mark.parametrize(
    ("frontmatter", "settings"),
    [
        ("models: scripted/x.yaml", {"models": "scripted/FOLDER/x.yaml"}),
        ("models: [a/b, scripted/x.yaml, 1]", {"models": ["a/b", "scripted/FOLDER/x.yaml", 1]}),
        ("extractionModel: scripted/x.yaml", {"extractionModel": "scripted/FOLDER/x.yaml"}),
        ("extraction_model: scripted/x.yaml", {"extraction_model": "scripted/FOLDER/x.yaml"}),
        ("extractionModel: null", {"extractionModel": None}),
        (
            "toolOutput: {models: scripted/x.yaml, maxChunks: 2}",
            {"toolOutput": {"models": "scripted/FOLDER/x.yaml", "maxChunks": 2}},
        ),
        ("toolOutput: {models: [a/b, scripted/../x.yaml]}", {"toolOutput": {"models": ["a/b", "scripted/FOLDER/../x.yaml"]}}),
        ("tool_output: {models: [scripted//x.yaml]}", {"tool_output": {"models": ["scripted//x.yaml"]}}),
        ("toolOutput: {maxChunks: 2}", {"toolOutput": {"maxChunks": 2}}),
        ("toolOutput: scripted/x.yaml", {"toolOutput": "scripted/x.yaml"}),
        ("model: scripted/x.yaml", {"model": "scripted/x.yaml"}),
    ],
)
def test_a_script_path_is_relative_to_the_agent_file_for_every_key(
    tmp_path: Path, frontmatter: str, settings: dict[str, object]
) -> None:
    found = read(tmp_path, f"---\n{frontmatter}\n---\nx").settings
    assert str(found).replace(str(tmp_path), "FOLDER") == str(settings)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.ai has no prompt. Write what the agent should do below the frontmatter."),
        ("---\nmaxTurns: 3\n---\n \n", "a.ai has no prompt. Write what the agent should do below the frontmatter."),
        ("---\nmaxTurns: 3\nprompt", "The frontmatter of a.ai is not closed. Add a line --- below its keys."),
        ("---\n- a\n---\nx", "The frontmatter of a.ai is not a mapping. Write one `key: value` per line."),
        ("#!x\n---\nok: 1\na: ]\n---\nx", f"{NOT_YAML}, line 4: expected the node content, but found ']'."),
        ("---\na: &x 1\n---\nx", f"{NOT_YAML}, line 2: anchors and aliases are not allowed."),
        ("---\nmaxTurns: 1\nmaxTurns: 2\n---\nx", f"{NOT_YAML}, line 3: the key 'maxTurns' appears twice."),
        ("---\ndescripton: x\n---\nx", "Unknown key 'descripton' in a.ai. Did you mean 'description'?"),
        ("---\ntool: [x]\n---\nx", "Unknown key 'tool' in a.ai. Did you mean 'tools'?"),
        ("---\ndescription: ''\n---\nx", "description in a.ai must be a string that is not empty."),
        ("---\ntools: {a: 1}\n---\nx", "tools in a.ai must be a list of names, or of `server: [tool, tool]`."),
        ("---\nagents: [1]\n---\nx", "agents in a.ai must be a list of agent files."),
        (
            "---\noutput: {format: html}\n---\nx",
            "output in a.ai must be a mapping with format (text, markdown or json) and schema.",
        ),
        ("---\noutput: {schema: {}}\n---\nx", "output.schema in a.ai needs the format json, but the format is markdown."),
    ],
)  # fmt: skip
def test_a_broken_file_is_refused_with_its_mistake(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        read(tmp_path, text)
    assert str(error.value) == message


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"missing.ai cannot be read: No such file or directory\."):
        read_agent_file(tmp_path / "missing.ai")
    with pytest.raises(SettingsError, match=r"is not a regular file\."):
        read_agent_file(tmp_path)
    with pytest.raises(SettingsError, match=r"is not UTF-8, line 2\."):
        read(tmp_path, b"ok\n\xff")
