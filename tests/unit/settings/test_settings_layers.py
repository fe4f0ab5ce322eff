"""Which layer wins, where values come from, and what an untrusted file may set."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overspill.errors import SettingsError
from overspill.settings import PRESETS, Layer, Override, Settings, load, merge
from overspill.settings.files import file_layers, parse_yaml
from overspill.settings.keys import (
    Author,
    Key,
    ModelLimits,
    Provider,
    RedactSettings,
    RefsSettings,
    ToolOutputSettings,
    TruncationSettings,
)
from overspill.settings.schema import fields


@pytest.fixture
def cwd(tmp_path: Path) -> Path:
    directory = tmp_path / "cwd"
    directory.mkdir()
    return directory


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "config"
    directory.mkdir()
    return directory


def test_each_layer_beats_the_ones_below_it(cwd: Path, home: Path) -> None:
    (home / "config.yaml").write_text(
        "maxRunning: 1\nkeepDays: 1\npreviewChars: 1\nmaxInlineBlob: 1\nwaitMaxSecs: 1\npreset: slow\n"
    )
    (cwd / ".overspill.yaml").write_text("previewChars: 2\nmaxInlineBlob: 2\n")
    agent = Layer("frontmatter", {"max_running": 3, "previewChars": 3}, author="agent")
    loaded = merge([Layer("command line", {"maxRunning": 4}), agent, *file_layers(None, cwd, home)])
    s = loaded.settings
    assert (s.max_running, s.preview_chars, s.max_inline_blob, s.wait_max_secs, s.keep_days) == (4, 3, 2, 1.0, 1)
    assert s.tool_response_max_bytes is None
    assert {key: loaded.origins[key] for key in ("maxRunning", "previewChars", "maxInlineBlob", "waitMaxSecs")} == {
        "maxRunning": "command line",
        "previewChars": "frontmatter",
        "maxInlineBlob": ".overspill.yaml",
        "waitMaxSecs": str(home / "config.yaml"),
    }
    assert (loaded.origins["toolResponseMaxBytes"], loaded.origins["asyncTimeoutSecs"]) == ("preset slow", "default")


def test_a_file_given_by_name_replaces_those_found(cwd: Path, home: Path, tmp_path: Path) -> None:
    (home / "config.yaml").write_text("maxRunning: 1\n")
    (cwd / ".overspill.yaml").write_text("previewChars: 2\n")
    named = tmp_path / "named.json"
    named.write_text('{"toolTimeout": 3, "storeDir": "/kept"}')
    loaded = load(config=named, cwd=cwd, user_config_dir=home)
    assert loaded.settings == Settings(tool_timeout=3, store_dir="/kept")
    assert loaded.origins["toolTimeout"] == str(named)


def test_the_preset_of_the_strongest_layer_counts_and_stays_below_every_file(home: Path) -> None:
    (home / "config.yaml").write_text("preset: artifacts\nretention: keep\n")
    loaded = load(cli={"preset": "slow"}, user_config_dir=home)
    assert loaded.settings == Settings("slow", retention="keep")
    assert loaded.origins["preset"] == "command line"


def test_sections_merge_key_by_key_and_rules_field_by_field(home: Path) -> None:
    (home / "config.yaml").write_text(
        "toolOutput: {maxChunks: 2, overlapPercent: 20}\n"
        "truncation: {overrides: {Read_File: {strategy: head, headLines: 9}, ls: {off: true}}}\n"
        "servers: {github: {toolTimeout: 9}}\n"
    )
    loaded = load(
        cli={
            "tool_output": {"max_chunks": 3},
            "truncation": {"overrides": {"read_file": {"head_lines": 1}, "LS": {"off": None}}},
            "servers": {"github": {"async": False}},
        },
        user_config_dir=home,
    )
    s = loaded.settings
    assert (s.tool_output.max_chunks, s.tool_output.overlap_percent) == (3, 20)
    assert s.truncation.overrides == {"read_file": Override(strategy="head", head_lines=1), "ls": Override()}
    assert s.servers == {"github": Override(tool_timeout=9, background=False)}
    assert loaded.origins["truncation.overrides.read_file.strategy"] == str(home / "config.yaml")
    assert loaded.origins["truncation.overrides.read_file.headLines"] == "command line"
    assert loaded.origins["servers.github.async"] == "command line"


def test_a_rule_for_a_tool_with_dots_in_its_name_is_its_own() -> None:
    loaded = merge([Layer("x", {"truncation": {"overrides": {"a.b": {"off": True}}}})])
    assert loaded.settings.for_tool("A.B").off
    assert loaded.origins["truncation.overrides.a.b.off"] == "x"


def test_an_outdated_key_is_a_warning_wherever_it_is() -> None:
    agent = Layer("frontmatter", {"asyncToolTTL": 3600, "servers": {"a": {"asyncToolTTL": 1}}}, author="agent")
    loaded = merge([Layer("command line", {"toolOutput": {"async_tool_ttl": 1}}), agent])
    assert loaded.warnings == (
        "toolOutput.async_tool_ttl on the command line has no effect: outputs live as long as the session.",
        "asyncToolTTL in frontmatter has no effect: outputs live as long as the session.",
        "servers.a.asyncToolTTL in frontmatter has no effect: outputs live as long as the session.",
    )
    assert loaded.settings == Settings()


def test_a_host_can_add_a_layer_below_the_users() -> None:
    loaded = merge([Layer("command line", {"waitMaxSecs": 9}), Layer("proxy", {"waitMaxSecs": 45, "toolTimeout": 45})])
    assert (loaded.settings.wait_max_secs, loaded.settings.tool_timeout, loaded.origins["toolTimeout"]) == (9, 45, "proxy")


REFUSED = {
    "extractionModel": "extractionModel: evil/model",
    "model": "model: evil/model",
    "toolOutput.models": "toolOutput: {models: evil/model}",
    "toolOutput.enabled": "toolOutput: {enabled: false}",
    "toolOutput.maxChunks": "toolOutput: {maxChunks: 1000}",
    "toolOutput.answerWithinSecs": "toolOutput: {answerWithinSecs: 0.001}",
    "maxRunBytes": "maxRunBytes: 1",
    "maxRunning": "maxRunning: 1",
    "toolTimeout": "toolTimeout: 0.001",
    "waitMaxSecs": "waitMaxSecs: 0.001",
    "answerMaxBytes": "answerMaxBytes: 1",
    "surface": "surface: []",
    "answerForm": "answerForm: artifact",
    "maxOutputTokens": "maxOutputTokens: 1",
    "truncation.maxArtifactSize": "truncation: {maxArtifactSize: 1}",
    "truncation.overrides.mail.maxArtifactSize": "truncation: {overrides: {mail: {maxArtifactSize: 1}}}",
    "servers.mail.maxArtifactSize": "servers: {mail: {maxArtifactSize: 1}}",
    "servers.mail.toolTimeout": "servers: {mail: {toolTimeout: 1}}",
}
REFUSED_IN_AGENT_FILES_TOO = {
    "storeDir": "storeDir: /home/somebody/.ssh",
    "toolOutput.store_dir": "toolOutput: {store_dir: /home/somebody/.ssh}",
    "retention": "retention: keep",
    "keep_days": "keep_days: 1",
    "keepBytes": "keepBytes: 1",
    "refs": "refs: {enabled: true}",
    "truncation.overrides.mail.refs": "truncation: {overrides: {mail: {refs: true}}}",
    "servers.mail.refs": "servers: {mail: {refs: true}}",
    "mcpServers": "mcpServers: {}",
    "functions": "functions: {}",
    "providers": "providers: {}",
}


@pytest.mark.parametrize(("key", "text"), (REFUSED | REFUSED_IN_AGENT_FILES_TOO).items())
def test_a_file_in_the_working_directory_may_not_set_harmful_keys(cwd: Path, key: str, text: str) -> None:
    (cwd / ".overspill.yml").write_text(text)
    with pytest.raises(SettingsError) as problem:
        load(cwd=cwd)
    frontmatter = ", in frontmatter" if key in REFUSED else ""
    refusal = (
        f"{key} may not be set in .overspill.yml: a file in the working directory may be somebody else's. "
        f"Set it in your own config file, in a file given with --config{frontmatter} or on the command line."
    )
    assert str(problem.value) == refusal
    loaded = load(cwd=cwd, forgiving=True)
    assert (loaded.settings, loaded.warnings) == (Settings(), (f"Ignored: {refusal}",))
    load(config=cwd / ".overspill.yml")


@pytest.mark.parametrize(("key", "text"), (REFUSED | REFUSED_IN_AGENT_FILES_TOO).items())
def test_an_agent_file_may_set_keys_that_can_harm_only_its_own_run(key: str, text: str) -> None:
    values = parse_yaml(text, "x")
    if key in REFUSED:
        assert merge([Layer("frontmatter", values, author="agent")]).settings == merge([Layer("x", values)]).settings
        return
    with pytest.raises(SettingsError) as problem:
        merge([Layer("frontmatter", values, author="agent")])
    assert str(problem.value) == (
        f"{key} may not be set in frontmatter: an agent file may be somebody else's. "
        "Set it in your own config file, in a file given with --config or on the command line."
    )


HARMLESS = """
preset toolResponseMaxBytes asyncTokenThreshold async asyncTimeoutSecs previewTokens previewChars maxInlineBlob toolOutput
truncation servers redact
intent intentTokens *.intent
truncation.inlineLimit truncation.artifactThreshold truncation.defaultStrategy truncation.headRatio truncation.headLines
truncation.tailLines truncation.lineFrom truncation.depth truncation.firstElements truncation.lastElements truncation.maxKeys
truncation.overrides repeats
*.off *.strategy *.inlineLimit *.artifactThreshold *.headRatio *.headLines *.tailLines *.lineFrom *.depth *.firstElements
*.lastElements *.maxKeys *.toolResponseMaxBytes *.asyncTokenThreshold *.asyncTimeoutSecs *.async
"""


def test_only_these_keys_may_be_set_by_a_file_in_the_working_directory() -> None:
    """Whoever adds one has to show that no value of it can hurt."""
    sections = {"": Settings, "toolOutput.": ToolOutputSettings, "truncation.": TruncationSettings, "refs.": RefsSettings}
    sections |= {"*.": Override, "providers.": Provider, "modelLimits.": ModelLimits, "redact.": RedactSettings}
    keys = [(prefix + field.spelling, field.key) for prefix, section in sections.items() for field in fields(section)]
    assert {name for name, key in keys if key.set_by == "anyone"} == set(HARMLESS.split())


def test_a_key_without_an_author_cannot_be_made() -> None:
    unmarked: Any = Key
    with pytest.raises(TypeError, match="set_by"):
        unmarked("What it means.")


def test_a_rule_for_one_tool_may_be_set_by_the_same_authors_as_the_general_key() -> None:
    renamed = {"strategy": "default_strategy", "background": "async_", "refs": "enabled"}
    renamed |= {f"redact_{place}": place for place in ("shown", "sent", "stored")}
    sections = (Settings, TruncationSettings, RefsSettings, RedactSettings)
    general = {field.name: field.key for section in reversed(sections) for field in fields(section)}
    rules = {field.name: field.key for field in fields(Override) if field.name != "off"}
    assert {name: key.set_by for name, key in rules.items()} == {name: general[renamed.get(name, name)].set_by for name in rules}


def test_a_file_in_the_working_directory_may_set_limits_and_strategies(cwd: Path) -> None:
    (cwd / ".overspill.yaml").write_text(
        "asyncTimeoutSecs: 1\ntruncation: {overrides: {ls: {off: true, strategy: tail, inline_limit: 12_288}}}\n"
    )
    loaded = load(cwd=cwd)
    assert (loaded.settings.async_timeout_secs, loaded.warnings) == (1.0, ())
    assert loaded.settings.truncation.overrides == {"ls": Override(off=True, strategy="tail", inline_limit=12_288)}


def test_a_preset_chosen_in_the_working_directory_brings_limits_and_strategies_only(cwd: Path) -> None:
    (cwd / ".overspill.yaml").write_text("preset: artifacts\n")
    loaded = load(cwd=cwd)
    s = loaded.settings
    assert (s.tool_response_max_bytes, s.async_, s.preview_chars, s.truncation.inline_limit) == (0, False, 0, 8_000)
    assert (s.store_dir, s.retention, s.truncation.max_artifact_size) == (None, "process", 1_073_741_824)
    assert (loaded.origins["truncation.inlineLimit"], loaded.origins["storeDir"]) == ("preset artifacts", "default")
    assert loaded.warnings == (
        "preset: artifacts in .overspill.yaml leaves these keys alone: answerForm, answerMaxBytes, answerMaxChars, surface, "
        "extractionFallback, storeDir, retention, truncation.maxArtifactSize. "
        "A file in the working directory may be somebody else's. "
        "For the whole preset, choose it in your own config file, in a file given with --config or on the command line.",
    )


@pytest.mark.parametrize("chosen", PRESETS)
def test_a_preset_chosen_in_the_working_directory_leaves_the_users_preset_intact(cwd: Path, home: Path, chosen: str) -> None:
    (cwd / ".overspill.yaml").write_text(f"preset: {chosen}\n")
    (home / "config.yaml").write_text("preset: artifacts\n")
    s = load(cwd=cwd, user_config_dir=home).settings
    mine = Settings("artifacts")
    assert (s.store_dir, s.retention, s.surface, s.answer_form) == (
        mine.store_dir,
        mine.retention,
        mine.surface,
        mine.answer_form,
    )
    assert s.truncation.max_artifact_size == mine.truncation.max_artifact_size
    limits = Settings(chosen)
    assert (s.tool_response_max_bytes, s.truncation.inline_limit) == (
        limits.tool_response_max_bytes,
        limits.truncation.inline_limit,
    )


def test_a_preset_on_the_command_line_applies_whole_whatever_the_files_choose(cwd: Path, home: Path) -> None:
    (cwd / ".overspill.yaml").write_text("preset: artifacts\n")
    (home / "config.yaml").write_text("preset: tool_output\n")
    loaded = load(cli={"preset": "slow"}, cwd=cwd, user_config_dir=home)
    assert (loaded.settings, loaded.warnings) == (Settings("slow"), ())


def test_a_preset_chosen_in_an_agent_file_does_not_decide_where_outputs_are_stored() -> None:
    loaded = merge([Layer("frontmatter", {"preset": "artifacts"}, author="agent")])
    s = loaded.settings
    assert (s.store_dir, s.retention, s.surface) == (None, "process", ("get_artifact",))
    (warning,) = loaded.warnings
    assert warning.startswith("preset: artifacts in frontmatter leaves these keys alone: storeDir, retention. An agent file may")


def test_the_valid_part_of_a_file_with_mistakes_in_the_working_directory_is_used(cwd: Path) -> None:
    (cwd / ".overspill.json").write_text(
        json.dumps(
            {
                "previewChars": 7,
                "asyncTimeoutSecs": 0,
                "nonsense": 1,
                "servers": {"a": {"off": 3, "strategy": "tail"}, "b\n": {}, "c": 3},
                "truncation": [],
                "toolOutput": {"storeDir": "/x"},
            }
        )
    )
    loaded = load(cwd=cwd, forgiving=True)
    s = loaded.settings
    assert (s.preview_chars, s.async_timeout_secs, s.store_dir) == (7, 5.0, None)
    assert s.servers == {"a": Override(strategy="tail")}
    assert [warning.split(" in ")[0] for warning in loaded.warnings] == [
        "Ignored: asyncTimeoutSecs is 0",
        "Ignored: Unknown key 'nonsense'",
        "Ignored: servers.a.off is 3",
        "Ignored: servers has the name 'b\\n'",
        "Ignored: servers.c is 3",
        "Ignored: truncation is []",
        "Ignored: toolOutput.storeDir may not be set",
    ]


def test_mistakes_in_the_users_own_files_are_never_ignored(home: Path) -> None:
    (home / "config.yaml").write_text("nonsense: 1\n")
    with pytest.raises(SettingsError, match="nonsense"):
        load(user_config_dir=home, forgiving=True)
    with pytest.raises(SettingsError, match="nonsense"):
        load(config=home / "config.yaml", forgiving=True)


def test_a_file_full_of_mistakes_is_ignored_with_a_few_warnings(cwd: Path) -> None:
    mistakes = {f"{'x' * 1_000}{number}": 1 for number in range(4_000)}
    (cwd / ".overspill.json").write_text(json.dumps({"previewChars": 7} | mistakes)[:1_000_000] + '": 1}')
    loaded = load(cwd=cwd, forgiving=True)
    assert loaded.settings == Settings()
    assert len(loaded.warnings) == 21
    assert loaded.warnings[-1] == "Ignored: all of .overspill.json, because it has more than 20 mistakes."
    assert max(map(len, loaded.warnings)) < 250


limits = st.dictionaries(st.sampled_from(["maxRunning", "headLines", "maxChunks", "keepDays"]), st.integers(1, 99))


def layer_of(name: str, values: dict[str, int]) -> Layer:
    places = {"headLines": "truncation", "maxChunks": "toolOutput"}
    nested: dict[str, object] = {}
    for key, value in values.items():
        nested |= {places[key]: {key: value}} if key in places else {key: value}
    return Layer(name, nested)


@given(st.lists(limits, max_size=5))
def test_every_value_comes_from_the_strongest_layer_with_that_key(layers: list[dict[str, int]]) -> None:
    loaded = merge([layer_of(f"layer {number}", values) for number, values in enumerate(layers)])
    s = loaded.settings
    expected: dict[str, tuple[int | None, str]] = {"maxRunning": (64, "default"), "truncation.headLines": (None, "default")}
    expected |= {"toolOutput.maxChunks": (1, "default"), "keepDays": (7, "default")}
    for number, values in reversed([*enumerate(layers)]):
        for key, value in values.items():
            expected[{"headLines": "truncation.headLines", "maxChunks": "toolOutput.maxChunks"}.get(key, key)] = (
                value,
                f"layer {number}",
            )
    found = [s.max_running, s.truncation.head_lines, s.tool_output.max_chunks, s.keep_days]
    assert found == [value for value, _ in expected.values()]
    assert all(loaded.origins[key] == origin for key, (_, origin) in expected.items())


@pytest.mark.parametrize(
    ("theirs", "mine", "ignored"),
    [
        ({"truncation": {"inlineLimit": 60_000}}, {}, "truncation.inlineLimit."),
        ({"truncation": {"inlineLimit": 9}}, {"truncation": {"artifactThreshold": 8}}, "truncation.inlineLimit."),
        ({"preset": "artifacts"}, {"truncation": {"artifactThreshold": 8}}, "preset."),
        (
            {"truncation": {"inlineLimit": 9, "artifactThreshold": 8, "overrides": {"a": {"inlineLimit": 10}, "b": {}}}},
            {},
            "truncation.artifactThreshold and 2 other keys.",
        ),
        (
            {"servers": {str(number): {"inlineLimit": 60_000} for number in range(2_000)}},
            {},
            "servers.0.inlineLimit and 1999 other keys.",
        ),
    ],
)
def test_limits_in_somebody_elses_file_that_contradict_are_ignored(
    theirs: dict[str, Any], mine: dict[str, Any], ignored: str
) -> None:
    layers = [Layer("their file", theirs, author="anyone", forgiving=True), Layer("my file", mine)]
    loaded = merge(layers)
    assert any(warning.startswith(f"Ignored: {ignored} ") for warning in loaded.warnings)
    for name in ("a", "other"):
        limits = loaded.settings.for_tool(name).truncation
        assert limits.inline_limit is None or limits.inline_limit <= limits.artifact_threshold
    expected = merge([layers[1]]).settings.truncation
    assert loaded.settings.truncation.artifact_threshold == expected.artifact_threshold


def test_limits_of_mine_that_contradict_stop_whatever_else_there_is() -> None:
    theirs = Layer("their file", {"truncation": {"inlineLimit": 60_000}}, author="anyone", forgiving=True)
    mine = Layer("my file", {"truncation": {"inlineLimit": 9, "artifactThreshold": 8}})
    with pytest.raises(SettingsError, match=r"truncation\.inlineLimit is 9 \(my file\)"):
        merge([theirs, mine])


@pytest.mark.parametrize("author", ["anyone", "agent"])
def test_somebody_elses_file_may_turn_redaction_on_and_never_make_it_weaker(author: Author) -> None:
    def shown(values: dict[str, Any], mine: str) -> tuple[str, str]:
        theirs = Layer(".overspill.yaml", values, author=author, forgiving=True)
        settings = merge([theirs, Layer("mine", {"redact": {"shown": mine}})]).settings
        return settings.redact.shown, settings.for_tool("ls", "gh").redact.shown

    assert shown({"redact": {"shown": "on", "sent": "on"}}, "off") == ("on", "on")
    assert shown({"servers": {"gh": {"redactShown": "on"}}}, "off") == ("off", "on")
    for weaker in ("off", "warn"):
        assert shown({"redact": {"shown": weaker}, "servers": {"gh": {"redactShown": weaker}}}, "on") == ("on", "on")
    patterns = merge([Layer(".overspill.yaml", {"redact": {"patterns": {"all": "."}}}, author=author, forgiving=True)])
    assert patterns.settings.redact.patterns is None
    assert "redact.patterns may not be set" in patterns.warnings[0]
