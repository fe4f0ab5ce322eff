"""What somebody reads who made a mistake in the settings."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overspill.errors import SettingsError
from overspill.settings import PRESETS, Layer, Settings, load, merge

MISTAKES: list[tuple[dict[Any, Any], str]] = [
    ({"toolResponseMaxByte": 1}, "Unknown key 'toolResponseMaxByte' in frontmatter. Did you mean 'toolResponseMaxBytes'?"),
    ({"store_dri": "x"}, "Unknown key 'store_dri' in frontmatter. Did you mean 'store_dir'?"),
    (
        {"toolOutput": {"maxChunk": 1}},
        "Unknown key 'toolOutput.maxChunk' in frontmatter. Did you mean 'toolOutput.maxChunks'?",
    ),
    ({"inline_limit": 1}, "Unknown key 'inline_limit' in frontmatter. Did you mean 'truncation.inline_limit'?"),
    ({"xyz\x1b": 1}, "Unknown key 'xyz\\x1b' in frontmatter. `overspill config` lists all keys."),
    (
        {"truncation": {"overrides": {"x": {"strateg": "tail"}}}},
        "Unknown key 'truncation.overrides.x.strateg' in frontmatter. Did you mean 'truncation.overrides.x.strategy'?",
    ),
    (
        {"toolResponseMaxBytes": -1},
        "toolResponseMaxBytes is -1 in frontmatter; allowed: a whole number from 0 to 1000000, or null.",
    ),
    (
        {"toolResponseMaxBytes": 1_000_001},
        "toolResponseMaxBytes is 1000001 in frontmatter; allowed: a whole number from 0 to 1000000, or null.",
    ),
    (
        {"toolResponseMaxBytes": True},
        "toolResponseMaxBytes is true in frontmatter; allowed: a whole number from 0 to 1000000, or null.",
    ),
    (
        {"toolResponseMaxBytes": "12 KB"},
        "toolResponseMaxBytes is '12 KB' in frontmatter; allowed: a whole number from 0 to 1000000, or null.",
    ),
    ({"maxRunBytes": 1.0}, "maxRunBytes is 1.0 in frontmatter; allowed: a whole number of at least 1."),
    (
        {"asyncTokenThreshold": 0},
        "asyncTokenThreshold is 0 in frontmatter; allowed: a whole number of at least 1, or auto, or null.",
    ),
    ({"asyncTimeoutSecs": 0}, "asyncTimeoutSecs is 0 in frontmatter; allowed: a number above 0."),
    ({"asyncTimeoutSecs": math.inf}, "asyncTimeoutSecs is inf in frontmatter; allowed: a number above 0."),
    ({"toolTimeout": math.nan}, "toolTimeout is nan in frontmatter; allowed: a number above 0, or null."),
    ({"async": "yes"}, "async is 'yes' in frontmatter; allowed: true or false."),
    ({"async": 1}, "async is 1 in frontmatter; allowed: true or false."),
    ({"preset": "fast"}, "preset is 'fast' in frontmatter; allowed: one of overspill, tool_output, artifacts, slow."),
    ({"storeDir": ""}, "storeDir is '' in frontmatter; allowed: a non-empty string, or null."),
    (
        {"extractionFallback": ["guess"]},
        "extractionFallback is ['guess'] in frontmatter; allowed: a list, each item one of builtin, truncate.",
    ),
    ({"toolOutput": {"models": [1]}}, "toolOutput.models is [1] in frontmatter; allowed: a list, each item a non-empty string."),
    (
        {"toolOutput": {"models": ["openai/gpt-4.1", "gpt-4o"]}},
        "toolOutput.models has 'gpt-4o' in frontmatter. Name the provider too: provider/model, like openai/gpt-4.1-mini.",
    ),
    (
        {"toolOutput": {"models": "a/x, b/y"}},
        "toolOutput.models has 'a/x, b/y' in frontmatter. This is one string; give a list, with one provider/model each.",
    ),
    (
        {"extractionModel": "claude"},
        "extractionModel has 'claude' in frontmatter. Name the provider too: provider/model, like openai/gpt-4.1-mini.",
    ),
    (
        {"models": ["a/x,"]},
        "models has 'a/x,' in frontmatter. This is one string; give a list, with one provider/model each.",
    ),
    (
        {"toolOutput": {"overlapPercent": 51}},
        "toolOutput.overlapPercent is 51 in frontmatter; allowed: a whole number from 0 to 50.",
    ),
    ({"toolOutput": False}, "toolOutput is false in frontmatter; allowed: a mapping from keys to values."),
    ({"truncation": {"head_ratio": 1.1}}, "truncation.head_ratio is 1.1 in frontmatter; allowed: a number from 0 to 1."),
    (
        {"truncation": {"overrides": ["x"]}},
        "truncation.overrides is ['x'] in frontmatter; allowed: a mapping from keys to values.",
    ),
    (
        {"refs": {"allow": [{"from": "a"}]}},
        "refs.allow is [{'from': 'a'}] in frontmatter; allowed: a list, each item a mapping with from and to.",
    ),
    ({"servers": {"a\n": {}}}, "servers has the name 'a\\n' in frontmatter; allowed: a printable name."),
    ({"servers": {"": {}}}, "servers has the name '' in frontmatter; allowed: a printable name."),
    ({7: 1}, "The key 7 in frontmatter is not a string. Put it in quotes."),
    ({"truncation": {None: 1}}, "The key truncation.null in frontmatter is not a string. Put it in quotes."),
    (
        {"tool_response_max_bytes": 1, "toolResponseMaxBytes": 1},
        "tool_response_max_bytes and toolResponseMaxBytes are the same key, both in frontmatter. Keep one.",
    ),
    (
        {"tool_output": {}, "toolOutput": {}},
        "tool_output and toolOutput are the same key, both in frontmatter. Keep one.",
    ),
    ({"truncation": {"overrides": {"Ls": {}, "ls": {}}}}, "truncation.overrides has 'ls' twice in frontmatter. Keep one."),
    (
        {"storeDir": "/a", "toolOutput": {"storeDir": "/b"}},
        "toolOutput.storeDir is '/b' in frontmatter, which also sets the same key to '/a'. Keep one.",
    ),
    (
        {"truncation": {"inlineLimit": 50_001}},
        "truncation.inlineLimit is 50001 (frontmatter), but truncation.artifactThreshold is 50000 (default). An output that "
        "passes whole cannot be too long to be shown: set inlineLimit to at most artifactThreshold.",
    ),
    (
        {"preset": "artifacts", "truncation": {"overrides": {"ls": {"artifactThreshold": 5}}}},
        "truncation.inlineLimit is 8000 (preset artifacts), but truncation.overrides.ls.artifactThreshold is 5 (frontmatter). "
        "An output that passes whole cannot be too long to be shown: set inlineLimit to at most artifactThreshold.",
    ),
]


@pytest.mark.parametrize(("values", "text"), MISTAKES)
def test_a_mistake_is_named_with_what_is_allowed(values: dict[Any, Any], text: str) -> None:
    with pytest.raises(SettingsError) as problem:
        merge([Layer("frontmatter", values)])
    assert str(problem.value) == text


def test_the_place_of_a_mistake_is_named() -> None:
    with pytest.raises(SettingsError, match=r"^maxRunning is 0 on the command line; allowed: a whole number of at least 1\.$"):
        load(cli={"maxRunning": 0})
    with pytest.raises(SettingsError, match=r"^max_running is 0 in Settings\(\); allowed: a whole number of at least 1\.$"):
        Settings(max_running=0)
    with pytest.raises(SettingsError, match=r"^The content is \[\] in x; allowed: a mapping from keys to values\.$"):
        merge([Layer("x", [])])


def test_a_long_value_is_shown_in_part() -> None:
    with pytest.raises(SettingsError) as problem:
        load(cli={"maxRunning": "9" * 10_000})
    assert str(problem.value) == f"maxRunning is '{'9' * 98}… on the command line; allowed: a whole number of at least 1."


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=3,
)
known_keys = st.sampled_from(
    ["toolOutput", "truncation", "overrides", "servers", "refs", "allow", "surface", "preset", "maxRunning"]
)


@pytest.mark.slow
@pytest.mark.no_cover
@given(st.dictionaries(known_keys | st.text(), json_values | st.dictionaries(known_keys, json_values)))
def test_any_input_makes_settings_or_a_settings_error(values: dict[str, Any]) -> None:
    with suppress(SettingsError):
        assert load(cli=values).settings.preset in PRESETS
