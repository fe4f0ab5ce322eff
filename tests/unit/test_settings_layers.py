"""Which layer wins, where values come from, and what an untrusted file may set."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overspill.errors import SettingsError
from overspill.settings import Layer, Override, Settings, load, merge


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
        "maxRunning: 1\nkeepDays: 1\npreviewChars: 1\ntoolTimeout: 1\nwaitMaxSecs: 1\npreset: slow\n"
    )
    (cwd / ".overspill.yaml").write_text("maxRunning: 2\npreviewChars: 2\ntoolTimeout: 2\n")
    loaded = load(cli={"maxRunning": 4}, frontmatter={"max_running": 3, "previewChars": 3}, cwd=cwd, user_config_dir=home)
    s = loaded.settings
    assert (s.max_running, s.preview_chars, s.tool_timeout, s.wait_max_secs, s.keep_days) == (4, 3, 2.0, 1.0, 1)
    assert s.tool_response_max_bytes is None
    assert {key: loaded.origins[key] for key in ("maxRunning", "previewChars", "toolTimeout", "waitMaxSecs")} == {
        "maxRunning": "command line",
        "previewChars": "frontmatter",
        "toolTimeout": ".overspill.yaml",
        "waitMaxSecs": str(home / "config.yaml"),
    }
    assert (loaded.origins["toolResponseMaxBytes"], loaded.origins["asyncTimeoutSecs"]) == ("preset slow", "default")


def test_a_file_that_is_named_replaces_the_ones_that_are_found(cwd: Path, home: Path, tmp_path: Path) -> None:
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


def test_an_outdated_key_is_a_warning_wherever_it_stands() -> None:
    loaded = load(
        cli={"toolOutput": {"async_tool_ttl": 1}}, frontmatter={"asyncToolTTL": 3600, "servers": {"a": {"asyncToolTTL": 1}}}
    )
    assert loaded.warnings == (
        "toolOutput.async_tool_ttl on the command line has no effect: outputs live as long as the session.",
        "asyncToolTTL in frontmatter has no effect: outputs live as long as the session.",
        "servers.a.asyncToolTTL in frontmatter has no effect: outputs live as long as the session.",
    )
    assert loaded.settings == Settings()


def test_a_layer_of_a_hosts_own_can_stand_below_the_users() -> None:
    loaded = merge([Layer("command line", {"waitMaxSecs": 9}), Layer("proxy", {"waitMaxSecs": 45, "toolTimeout": 45})])
    assert (loaded.settings.wait_max_secs, loaded.settings.tool_timeout, loaded.origins["toolTimeout"]) == (9, 45, "proxy")


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("extractionModel", "extractionModel: evil/model"),
        ("model", "model: evil/model"),
        ("toolOutput.models", "toolOutput: {models: evil/model}"),
        ("storeDir", "storeDir: /home/somebody/.ssh"),
        ("toolOutput.store_dir", "toolOutput: {store_dir: /home/somebody/.ssh}"),
        ("retention", "retention: keep"),
        ("keep_days", "keep_days: 1"),
        ("keepBytes", "keepBytes: 1"),
        ("refs", "refs: {enabled: true}"),
        ("truncation.overrides.mail.refs", "truncation: {overrides: {mail: {refs: true}}}"),
        ("servers.mail.refs", "servers: {mail: {refs: true}}"),
    ],
)
def test_a_file_in_the_working_directory_may_not_say_where_data_goes(cwd: Path, key: str, text: str) -> None:
    (cwd / ".overspill.yml").write_text(text)
    with pytest.raises(SettingsError) as problem:
        load(cwd=cwd)
    assert str(problem.value) == (
        f"{key} may not be set in .overspill.yml: a file in the working directory may be somebody else's. "
        "Set it in your own config file, in a file given with --config, in frontmatter or on the command line."
    )
    load(config=cwd / ".overspill.yml")


def test_a_file_in_the_working_directory_may_set_limits_strategies_and_the_preset(cwd: Path) -> None:
    (cwd / ".overspill.yaml").write_text(
        "preset: artifacts\nasyncTimeoutSecs: 1\n"
        "truncation: {overrides: {ls: {off: true, strategy: tail, inline_limit: 12_288}}}\n"
    )
    s = load(cwd=cwd).settings
    assert (s.preset, s.store_dir, s.async_timeout_secs) == ("artifacts", ".overspill/artifacts", 1.0)
    assert s.truncation.overrides == {"ls": Override(off=True, strategy="tail", inline_limit=12_288)}


def test_the_users_store_beats_the_one_of_a_preset_chosen_in_the_working_directory(cwd: Path, home: Path) -> None:
    (cwd / ".overspill.yaml").write_text("preset: artifacts\n")
    (home / "config.yaml").write_text("storeDir: /mine\n")
    assert load(cwd=cwd, user_config_dir=home).settings.store_dir == "/mine"


limits = st.dictionaries(st.sampled_from(["maxRunning", "headLines", "maxChunks", "keepDays"]), st.integers(1, 99))


def layer_of(name: str, values: dict[str, int]) -> Layer:
    places = {"headLines": "truncation", "maxChunks": "toolOutput"}
    nested: dict[str, object] = {}
    for key, value in values.items():
        nested |= {places[key]: {key: value}} if key in places else {key: value}
    return Layer(name, nested)


@settings(deadline=None)
@given(st.lists(limits, max_size=5))
def test_every_value_is_that_of_the_strongest_layer_that_has_the_key(layers: list[dict[str, int]]) -> None:
    loaded = merge([layer_of(f"layer {number}", values) for number, values in enumerate(layers)])
    s = loaded.settings
    expected = {"maxRunning": (64, "default"), "truncation.headLines": (300, "default")}
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
