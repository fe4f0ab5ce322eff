"""Which value an agent's key has, who may set it, and the agents below."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from overspill.agent import Sources, load_agent
from overspill.errors import SettingsError
from overspill.settings import Layer, Settings
from overspill.settings.schema import fields


def write(folder: Path, name: str, frontmatter: str = "") -> Path:
    path = folder / name
    path.write_text(f"---\n{frontmatter}\n---\nPrompt.\n")
    return path


# Three values of each key: in a config file, in frontmatter, on the command line.
KEYS: dict[str, tuple[Any, Any, Any]] = {
    "preset": ("slow", "artifacts", "tool_output"),
    "models": (["a/1"], ["a/2"], ["a/3"]),
    "maxTurns": (1, 2, 3),
    "maxToolCallsPerTurn": (1, 2, 3),
    "contextWindow": (1000, 2000, 3000),
    "contextBuffer": (1, 2, 3),
    "maxOutputTokens": (100, 200, 300),
    "temperature": (0.1, 0.2, 0.3),
    "topP": (0.1, 0.2, 0.3),
    "llmTimeout": (1.0, 2.0, 3.0),
    "maxRetries": (1, 2, 3),
    "toolTimeout": (1.0, 2.0, 3.0),
    "toolResponseMaxBytes": (1, 2, 3),
    "async": (False, True, False),
    "asyncTokenThreshold": (1, 2, 3),
    "asyncTimeoutSecs": (1.0, 2.0, 3.0),
    "extractionModel": ("a/1", "a/2", "a/3"),
    "toolOutput.enabled": (False, True, False),
    "toolOutput.maxChunks": (2, 3, 4),
    "toolOutput.overlapPercent": (1, 2, 3),
    "toolOutput.avgLineBytesThreshold": (1, 2, 3),
    "toolOutput.models": (["a/1"], ["a/2"], ["a/3"]),
    "truncation.overrides.log.inlineLimit": (1, 2, 3),
}


def nested(key: str, value: object) -> dict[str, Any]:
    first, _, rest = key.partition(".")
    return {first: nested(rest, value) if rest else value}


def value_of(settings: Settings, key: str) -> object:
    place: Any = settings
    for part in key.split("."):
        name = "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in part)
        name = {"async": "async_"}.get(name, name)
        place = place[name] if hasattr(place, "keys") else getattr(place, name)
    return list(place) if isinstance(place, tuple) else place


@pytest.mark.parametrize("key", KEYS)
def test_the_command_line_beats_frontmatter_which_beats_the_config(tmp_path: Path, key: str) -> None:
    config, front, line = KEYS[key]
    plain, own = write(tmp_path, "plain.ai"), tmp_path / "own.ai"
    own.write_text(f"---\n{json.dumps(nested(key, front))}\n---\nPrompt.")
    files = (Layer("config", nested(key, config)),)
    assert value_of(load_agent(plain, Sources(files=files)).settings, key) == config
    assert value_of(load_agent(own, Sources(files=files)).settings, key) == front
    assert value_of(load_agent(own, Sources(nested(key, line), files=files)).settings, key) == line
    assert value_of(load_agent(own, Sources({}, nested(key, line), files)).settings, key) == line


def test_agent_files_can_set_every_key_for_agents() -> None:
    own = {field.spelling for field in fields(Settings) if field.key.for_agents and field.key.may_be_set_by("agent")}
    assert own <= set(KEYS)


@pytest.mark.parametrize("key", ["mcpServers", "functions", "providers"])
def test_agent_files_cannot_set_what_runs_or_where_keys_go(tmp_path: Path, key: str) -> None:
    with pytest.raises(SettingsError) as error:
        load_agent(write(tmp_path, "a.ai", f"{key}: {{}}"))
    assert str(error.value) == (
        f"{key} may not be set in a.ai: an agent file may be somebody else's. "
        "Set it in your own config file, in a file given with --config or on the command line."
    )


@pytest.mark.parametrize("key", ["mcpServers", "functions"])
def test_a_file_in_the_working_directory_cannot_either(tmp_path: Path, key: str) -> None:
    with pytest.raises(SettingsError) as error:
        load_agent(write(tmp_path, "a.ai"), Sources(files=(Layer(".overspill.yaml", {key: {}}, author="anyone"),)))
    assert str(error.value) == (
        f"{key} may not be set in .overspill.yaml: a file in the working directory may be somebody else's. "
        "Set it in your own config file, in a file given with --config or on the command line."
    )


def test_secrets_of_servers_are_not_shown() -> None:
    settings = Settings(mcpServers={"github": {"command": "x", "env": {"TOKEN": "secret"}}})
    assert repr(settings) == "Settings(preset='overspill', mcp_servers=['github'])"


def test_mistakes_are_reported_with_the_files_name(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^Unknown key 'maxTurn' in a\.ai\. Did you mean 'maxTurns'\?$"):
        load_agent(write(tmp_path, "a.ai", "maxTurn: 1"))
    with pytest.raises(SettingsError, match=r"^Unknown key 'modls' in a\.ai\. Did you mean 'models'\?$"):  # and not 'tools'
        load_agent(write(tmp_path, "a.ai", "modls: x/y"))


def test_called_agents_have_their_own_settings_and_their_callers_models(tmp_path: Path) -> None:
    write(tmp_path, "one.ai", "maxTurns: 3")
    (tmp_path / "sub").mkdir()
    write(tmp_path / "sub", "two words.ai", "models: b/2\nagents: ../one.ai")
    agent = load_agent(write(tmp_path, "lead.ai", "models: a/1\nagents: [one.ai, sub/two words.ai]"), Sources({"maxTurns": 9}))
    assert list(agent.agents) == ["agent__one", "agent__two_words"]
    one, two = agent.agents.values()
    assert (agent.settings.max_turns, one.settings.max_turns, two.settings.max_turns) == (9, 3, 10)
    assert (one.settings.models, two.settings.models, two.agents["agent__one"].settings.models) == (("a/1",), ("b/2",), ("b/2",))
    assert [each.name for each in agent.everyone()] == ["lead", "one", "two_words", "one"]


def test_an_override_also_applies_to_called_agents(tmp_path: Path) -> None:
    write(tmp_path, "one.ai", "maxTurns: 3")
    agent = load_agent(write(tmp_path, "lead.ai", "agents: one.ai"), Sources(overrides={"maxTurns": 5}))
    assert [each.settings.max_turns for each in agent.everyone()] == [5, 5]


def test_tokens_are_counted_as_the_agents_model_counts_them(tmp_path: Path) -> None:
    assert load_agent(write(tmp_path, "a.ai", "models: x/llama-3.1-8b")).settings.model == "x/llama-3.1-8b"
    assert load_agent(write(tmp_path, "b.ai", "models: x/llama-3.1-8b\nmodel: openai/gpt-4o")).settings.model == "openai/gpt-4o"
    assert load_agent(write(tmp_path, "c.ai", "models: x/unheard-of")).settings.model is None


def test_agents_that_call_each_other_in_a_circle_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.ai", "agents: b.ai")
    write(tmp_path, "b.ai", "agents: c.ai")
    write(tmp_path, "c.ai", "agents: ./b.ai")
    with pytest.raises(SettingsError) as error:
        load_agent(tmp_path / "a.ai")
    assert str(error.value) == "These agents call each other in a circle: b.ai → c.ai → b.ai. Remove one of them from `agents`."


@pytest.mark.parametrize(("files", "clash"), [(["batch.ai"], "batch.ai"), (["x.ai", "sub/x.ai"], "sub/x.ai")])
def test_two_tools_of_one_name_are_refused(tmp_path: Path, files: list[str], clash: str) -> None:
    (tmp_path / "sub").mkdir()
    for file in files:
        write(tmp_path, file)
    with pytest.raises(SettingsError) as error:
        load_agent(write(tmp_path, "lead.ai", f"agents: {files}"))
    tool = f"agent__{Path(clash).stem}"
    assert str(error.value) == f"lead.ai names the agent {clash}, but there already is a tool {tool}. Rename the file."


def test_a_file_name_that_cannot_be_a_tool_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"^…\.ai cannot be a tool name\. Rename the file"):
        load_agent(write(tmp_path, "….ai"))


@pytest.mark.parametrize("way", ["../secret", "link", "absolute"])
def test_an_agent_file_cannot_make_a_prompt_of_a_file_outside_its_folder(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "agents"
    folder.mkdir()
    (tmp_path / "secret").write_text("a key")
    (folder / "link").symlink_to(tmp_path / "secret")
    name = str(tmp_path / "secret") if way == "absolute" else way
    with pytest.raises(SettingsError) as error:
        load_agent(write(folder, "a.ai", f"agents: [{name}]"))
    assert (
        str(error.value)
        == f"a.ai names the agent {name}, which is outside {folder}. Move it into the folder of the agent you run."
    )
