"""`Settings` itself: spellings, presets, what holds for one tool."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overspill.settings import PRESETS, Allow, Override, Settings
from overspill.settings.keys import PresetName
from overspill.settings.presets import TOOL_STRATEGIES
from overspill.settings.schema import Field, by_spelling, fields


def test_the_defaults_are_the_preset_overspill() -> None:
    s = Settings()
    assert (s.preset, s.tool_response_max_bytes, s.async_token_threshold, s.async_, s.async_timeout_secs) == (
        "overspill",
        12_288,
        "auto",
        True,
        5.0,
    )
    assert (s.tool_timeout, s.wait_max_secs, s.max_running) == (300.0, 300.0, 64)
    assert (s.extraction_model, s.store_dir, s.retention, s.keep_days) == (None, None, "process", 7)
    assert (s.keep_bytes, s.max_run_bytes) == (2 * 1024**3, 10 * 1024**3)
    assert (s.preview_tokens, s.preview_chars) == ("auto", None)
    assert (s.answer_form, s.answer_max_bytes, s.answer_max_chars, s.max_inline_blob) == (
        "handle",
        12_288,
        None,
        1_000_000,
    )
    assert s.surface == ("get_tool_output",)
    assert (s.extraction_fallback, s.extraction_retries, s.model) == (("builtin", "truncate"), 2, None)
    assert (s.servers, s.off, s.background, s.effective_token_threshold) == ({}, False, True, 10_000)


def test_the_sections_have_their_defaults() -> None:
    s = Settings()
    t = s.tool_output
    assert (t.enabled, t.max_chunks, t.overlap_percent, t.avg_line_bytes_threshold, t.models) == (True, 1, 10, 1_000, ())
    assert (t.max_extraction_chunks, t.answer_within_secs) == (64, None)
    c = s.truncation
    assert (c.inline_limit, c.artifact_threshold, c.max_artifact_size, c.default_strategy) == (None, 50_000, 1024**3, "head_tail")
    assert (c.head_ratio, c.head_lines, c.tail_lines, c.line_from) == (0.6, None, None, "start")
    assert (c.depth, c.first_elements, c.last_elements, c.max_keys, c.overrides) == (None, None, None, None, {})
    assert (s.refs.enabled, s.refs.allow, s.refs.max_ref_bytes) == (True, (), 1_000_000)


def test_the_preset_tool_output_stores_by_bytes_and_never_moves_calls_to_the_background() -> None:
    s = Settings(preset="tool_output")
    assert (s.tool_response_max_bytes, s.effective_token_threshold, s.background, s.answer_form) == (
        12_288,
        None,
        False,
        "handle",
    )
    assert (s.preview_chars, s.surface) == (0, ("tool_output",))
    assert (s.extraction_fallback, s.store_dir, s.retention) == (("truncate",), None, "process")
    assert s.truncation.max_artifact_size is None


def test_the_preset_artifacts_stores_by_characters() -> None:
    s = Settings("artifacts")
    assert (s.tool_response_max_bytes, s.effective_token_threshold, s.background, s.answer_form) == (0, None, False, "artifact")
    assert (s.preview_chars, s.surface) == (0, ("get_artifact",))
    assert (s.extraction_fallback, s.store_dir, s.retention) == (("truncate",), ".overspill/artifacts", "session")
    assert (s.answer_max_bytes, s.answer_max_chars) == (None, 50_000)
    assert (s.truncation.inline_limit, s.truncation.max_artifact_size) == (8_000, 10_485_760)


def test_the_preset_slow_stores_by_tokens() -> None:
    s = Settings("slow")
    assert (s.size_cap, s.effective_token_threshold, s.background, s.answer_form) == (0, 10_000, True, "ready")
    assert (s.preview_chars, s.surface) == (0, ("get_tool_output", "wait_for_tool_output"))
    assert (s.extraction_fallback, s.store_dir, s.retention) == (("truncate",), None, "session")
    assert s.truncation.max_artifact_size == 10_485_760


def test_keys_are_accepted_in_both_spellings() -> None:
    assert Settings(toolResponseMaxBytes=5_000) == Settings(tool_response_max_bytes=5_000)
    assert Settings(toolOutput={"maxChunks": 2}) == Settings(tool_output={"max_chunks": 2})
    assert Settings(**{"async": False}) == Settings(async_=False)
    assert Settings(truncation={"overrides": {"x": {"inlineLimit": 1, "async": True}}}) == Settings(
        truncation={"overrides": {"x": {"inline_limit": 1, "background": True}}}
    )


@given(st.sampled_from([field for field in fields(Settings) if field.section is None]), st.sampled_from(list(PRESETS)))
def test_every_value_of_a_preset_can_be_given_in_every_spelling(field: Field, preset: PresetName) -> None:
    value = getattr(Settings(preset), field.name)
    for spelling in field.spellings:
        assert getattr(Settings(**{spelling: value}), field.name) == value


def test_a_list_of_one_may_be_written_as_that_entry() -> None:
    s = Settings(toolOutput={"models": "openai/gpt-4o"}, surface="get_artifact")
    assert (s.tool_output.models, s.surface) == (("openai/gpt-4o",), ("get_artifact",))
    assert Settings(toolOutput={"models": ["a/b", "c/d"]}).tool_output.models == ("a/b", "c/d")


def test_seconds_may_be_whole_numbers() -> None:
    assert Settings(asyncTimeoutSecs=2).async_timeout_secs == 2.0


def test_the_store_may_be_named_at_the_top_or_inside_tool_output(tmp_path: Path) -> None:
    assert Settings(storeDir="/kept").store_dir == Settings(toolOutput={"storeDir": "/kept"}).store_dir == "/kept"
    assert Settings(store_dir="/kept", tool_output={"store_dir": "/kept"}).store_dir == "/kept"
    assert Settings(store_dir=tmp_path).store_dir == str(tmp_path)


def test_null_turns_a_limit_off_and_an_empty_section_sets_nothing() -> None:
    assert Settings("artifacts", truncation={"inlineLimit": None}).truncation.inline_limit is None
    assert Settings(toolOutput=None, servers=None) == Settings()


def test_async_false_turns_off_background_and_token_threshold() -> None:
    s = Settings(async_=False)
    assert (s.background, s.effective_token_threshold) == (False, None)
    assert Settings(async_=False, asyncTokenThreshold=9).effective_token_threshold is None


@pytest.mark.parametrize(
    ("settings", "cap"),
    [
        (Settings("slow"), 0),
        (Settings("slow", async_=False), 12_288),
        (Settings("slow", truncation={"overrides": {"x": {"async": False}}}).for_tool("x"), 12_288),
        (Settings("slow", async_=False, toolResponseMaxBytes=0), 0),
        (Settings("slow", async_=False, toolResponseMaxBytes=500), 500),
        (Settings(async_=False, toolResponseMaxBytes=0), 0),
        (Settings("artifacts"), 0),
    ],
)
def test_the_size_cap_applies_without_a_token_threshold(settings: Settings, cap: int) -> None:
    assert settings.size_cap == cap


@pytest.mark.parametrize(
    ("settings", "threshold"),
    [
        (Settings(toolResponseMaxBytes=50_000), None),
        (Settings(toolResponseMaxBytes=12_289), None),
        (Settings(toolResponseMaxBytes=12_288), 10_000),
        (Settings(toolResponseMaxBytes=8_192), 10_000),
        (Settings(toolResponseMaxBytes=0), 10_000),  # some limit has to hold
        (Settings(toolResponseMaxBytes=50_000, asyncTokenThreshold=10_000), 10_000),
        (Settings(toolResponseMaxBytes=50_000, asyncTokenThreshold="auto"), None),
        (Settings("slow", toolResponseMaxBytes=50_000), 10_000),
        (Settings(truncation={"overrides": {"x": {"toolResponseMaxBytes": 50_000}}}).for_tool("x"), None),
        (Settings(truncation={"overrides": {"x": {"toolResponseMaxBytes": 50_000}}}).for_tool("y"), 10_000),
        (Settings(servers={"s": {"toolResponseMaxBytes": 50_000}}).for_tool("x", "s"), None),
        (Settings(asyncTokenThreshold=9, servers={"s": {"toolResponseMaxBytes": 50_000}}).for_tool("x", "s"), 9),
    ],
)
def test_a_raised_limit_in_bytes_is_not_undone_by_a_token_threshold_that_nobody_set(
    settings: Settings, threshold: int | None
) -> None:
    assert settings.effective_token_threshold == threshold


def test_references_are_allowed_by_pairs() -> None:
    pair = Allow("github", "mail")
    assert Settings(refs={"allow": [{"from": "github", "to": "mail"}]}).refs.allow == (pair,)
    assert Settings(refs={"allow": [pair]}).refs.allow == (pair,)


def test_an_outdated_key_warns() -> None:
    with pytest.warns(UserWarning, match=r"asyncToolTTL in Settings\(\) has no effect: outputs live as long as the session\."):
        assert Settings(asyncToolTTL=3_600) == Settings()
    with pytest.warns(UserWarning, match=r"surfaceSticky in Settings\(\) has no effect: the retrieval tools are always"):
        assert Settings(surfaceSticky=False) == Settings()


def test_settings_cannot_be_changed() -> None:
    s = Settings(truncation={"overrides": {"a": {"off": True}}})
    with pytest.raises(FrozenInstanceError):
        s.preset = "slow"
    with pytest.raises(AttributeError):
        s.truncation.depth = 9
    with pytest.raises(TypeError):
        s.truncation.overrides["b"] = Override()


def test_settings_can_be_copied_and_pickled() -> None:
    s = Settings("slow", servers={"a": {"off": True}}, refs={"allow": [Allow("a", "b")]}).for_tool("x", "a")
    assert s.off
    assert copy.deepcopy(s) == s
    assert pickle.loads(pickle.dumps(s)) == s  # noqa: S301


def test_the_repr_shows_what_differs_from_the_preset() -> None:
    s = Settings("slow", toolOutput={"maxChunks": 2}, truncation={"overrides": {"Read": {"off": True}}})
    assert repr(s) == "Settings(preset='slow', tool_output.max_chunks=2, truncation.overrides.read.off=True)"
    assert repr(s.for_tool("read")).endswith(", off=True)")


@pytest.mark.parametrize(("tool", "strategy"), TOOL_STRATEGIES.items())
def test_well_known_tools_have_a_strategy_whatever_the_case_of_their_name(tool: str, strategy: str) -> None:
    assert Settings(truncation={"defaultStrategy": "head"}).for_tool(tool.upper()).truncation.default_strategy == strategy


def test_other_tools_have_the_general_settings() -> None:
    s = Settings(truncation={"defaultStrategy": "line"})
    assert s.for_tool("unheard_of", "nowhere") is s


def test_a_servers_rule_beats_the_built_in_strategy_and_a_tools_rule_beats_both() -> None:
    s = Settings(
        servers={"shell": {"strategy": "head", "toolTimeout": 9, "headLines": 7}},
        truncation={"overrides": {"execute_command": {"headLines": 5}}},
    )
    at_server = s.for_tool("execute_script", "shell")
    assert (at_server.truncation.default_strategy, at_server.truncation.head_lines, at_server.tool_timeout) == ("head", 7, 9.0)
    own = s.for_tool("Execute_Command", "shell")
    assert (own.truncation.default_strategy, own.truncation.head_lines, own.tool_timeout) == ("head", 5, 9.0)
    assert s.for_tool("execute_command", "SHELL").truncation.default_strategy == "tail"


def test_a_servers_tool_has_the_rules_of_its_own_name_and_of_the_one_a_model_calls_it_by() -> None:
    rules = {"Log": {"headLines": 3, "tailLines": 4}, "depot__LOG": {"tailLines": 5}, "git__log": {"headLines": 6}}
    rules |= {"git__git_log": {"headLines": 7}}
    s = Settings(servers={"depot": {"headLines": 1, "maxKeys": 2}}, truncation={"overrides": rules})

    def held(name: str, server: str) -> tuple[int | None, ...]:
        found = s.for_tool(name, server).truncation
        return found.head_lines, found.tail_lines, found.max_keys

    assert held("depot__log", "depot") == (3, 5, 2)
    assert held("log", "depot") == (3, 4, 2)
    assert held("shop__Log", "shop") == (3, 4, None)
    assert held("depot__log", "") == (None, 5, None)
    assert held("git__log", "git")[0] == held("git__log", "other")[0] == 6
    well_known = s.for_tool("git__git_log", "git").truncation
    assert (well_known.head_lines, well_known.default_strategy) == (7, "tail")


def test_a_rule_reaches_every_setting_it_names() -> None:
    rule = Override(
        off=True,
        strategy="line",
        inline_limit=1,
        artifact_threshold=2,
        max_artifact_size=3,
        head_ratio=0.5,
        head_lines=4,
        tail_lines=5,
        line_from="end",
        depth=6,
        first_elements=7,
        last_elements=0,
        max_keys=8,
        tool_response_max_bytes=0,
        async_token_threshold=9,
        async_timeout_secs=1.5,
        tool_timeout=2.5,
        background=False,
        refs=False,
    )
    s = Settings(truncation={"overrides": {"x": rule}}).for_tool("x")
    c = s.truncation
    assert (s.off, c.default_strategy, c.inline_limit, c.artifact_threshold, c.max_artifact_size) == (True, "line", 1, 2, 3)
    assert (c.head_ratio, c.head_lines, c.tail_lines, c.line_from) == (0.5, 4, 5, "end")
    assert (c.depth, c.first_elements, c.last_elements, c.max_keys) == (6, 7, 0, 8)
    assert (s.tool_response_max_bytes, s.async_token_threshold, s.async_timeout_secs, s.tool_timeout) == (0, 9, 1.5, 2.5)
    assert (s.background, s.refs.enabled) == (False, False)


def test_the_settings_of_a_tool_are_made_once_and_unknown_names_use_no_memory() -> None:
    s = Settings(servers={"a": {"off": True}})
    assert s.for_tool("read_file", "a") is s.for_tool("READ_FILE", "a")
    assert s.for_tool("tool-1", "a") is s.for_tool("tool-2", "a")
    assert {id(s.for_tool(f"tool-{n}", f"server-{n}")) for n in range(1_000)} == {id(s)}
    assert {id(s.for_tool(f"server-{n}__tool-{n}", f"server-{n}")) for n in range(1_000)} == {id(s)}


def test_no_spelling_of_a_section_means_two_keys() -> None:
    sections = [Settings, *(field.section for field in fields(Settings) if field.section)]
    for section in sections:
        assert len(by_spelling(section)) == sum(len(field.spellings) for field in fields(section))
