"""Config files: where they are found, and what a broken or hostile one does."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overspill.errors import SettingsError
from overspill.settings import Settings, load
from overspill.settings.files import parse_yaml


def refusal(cwd: Path, name: str, content: bytes | str) -> str:
    (cwd / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(SettingsError) as problem:
        load(cwd=cwd)
    return str(problem.value)


@pytest.mark.parametrize("name", [".overspill.yaml", ".overspill.yml", ".overspill.json"])
def test_a_file_in_the_working_directory_is_found(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"previewChars": 3}')
    assert load(cwd=tmp_path).settings.preview_chars == 3


@pytest.mark.parametrize("name", ["config.yaml", "config.yml", "config.json"])
def test_the_users_file_is_found_and_trusted(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"storeDir": "/mine"}')
    assert load(user_config_dir=tmp_path).settings.store_dir == "/mine"


def test_without_files_the_defaults_apply(tmp_path: Path) -> None:
    assert load().settings == load(cwd=tmp_path, user_config_dir=tmp_path / "absent").settings == Settings()


def test_two_files_in_the_same_place_are_refused(tmp_path: Path) -> None:
    (tmp_path / ".overspill.json").write_text("{}")
    text = refusal(tmp_path, ".overspill.yaml", "")
    assert text == f".overspill.yaml and .overspill.json are both in {tmp_path}. Keep one."


def test_the_working_directory_is_named_in_full(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".overspill.json").write_text("{}")
    assert refusal(Path(), ".overspill.yaml", "") == f".overspill.yaml and .overspill.json are both in {tmp_path}. Keep one."


@pytest.mark.parametrize("content", ["", "# nothing yet\n", "toolOutput:\n", "\ufeffpreset: overspill"])
def test_an_empty_file_sets_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / ".overspill.yaml").write_text(content, encoding="utf-8")
    assert load(cwd=tmp_path).settings == Settings()


def test_function_files_are_relative_to_the_config_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    (tmp_path / "config.yaml").write_text(
        "functions: {a: tools.py:f, b: ../x/tools.py:F.g, c: /srv/tools.py:f, d: ~/tools.py:f, e: package.tools:f, f: tools.py}"
    )
    expected = {
        "a": f"{tmp_path}/tools.py:f",
        "b": f"{tmp_path}/../x/tools.py:F.g",
        "c": "/srv/tools.py:f",
        "d": "/home/ada/tools.py:f",
        "e": "package.tools:f",
        "f": "tools.py",
    }
    assert load(user_config_dir=tmp_path).settings.functions == expected
    (tmp_path / "config.yaml").write_text("functions: {a: ~nobody-of-this-name/tools.py:f}")
    unknown = {"a": f"{tmp_path}/~nobody-of-this-name/tools.py:f"}
    assert load(user_config_dir=tmp_path).settings.functions == unknown
    (tmp_path / "config.yaml").write_text("functions: {a: 3}")
    with pytest.raises(
        SettingsError, match=r"^functions is \{'a': 3\} in .*; allowed: a mapping from names to values, or null\.$"
    ):
        load(user_config_dir=tmp_path)


def test_the_section_of_the_truncation_manual_is_understood(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(
        "tools:\n"
        "  truncation:\n"
        "    inline_limit: 8000\n"
        "    artifact_threshold: 50000\n"
        "    max_artifact_size: 10485760  # 10MB\n"
        "    default_strategy: head_tail\n"
        "    head_ratio: 0.6\n"
        "    overrides:\n"
        "      execute_command:\n"
        "        strategy: tail\n"
        "        inline_limit: 5000\n"
    )
    s = load(user_config_dir=tmp_path).settings
    assert (s.truncation.inline_limit, s.for_tool("execute_command").truncation.inline_limit) == (8_000, 5_000)


def test_the_same_section_twice_is_refused(tmp_path: Path) -> None:
    text = refusal(tmp_path, ".overspill.yaml", "tools: {truncation: {depth: 1}}\ntruncation: {depth: 2}\n")
    assert text == "truncation and tools.truncation are the same key, both in .overspill.yaml. Keep one."


@pytest.mark.parametrize("tools", ["{truncation: {depth: 1}, run: rm}", "3", "{}"])
def test_other_keys_inside_tools_are_refused(tmp_path: Path, tools: str) -> None:
    text = refusal(tmp_path, ".overspill.yaml", f"tools: {tools}\n")
    assert text == "tools in .overspill.yaml may contain only the section truncation."


def test_off_and_on_are_strings_and_only_true_and_false_are_booleans() -> None:
    assert parse_yaml("{off: true, no: False, a: yes}", "x") == {"off": True, "no": False, "a": "yes"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12_288", 12_288),
        ("-1", -1),
        ("0", 0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("~", None),
        ("null", None),
        ("010", "010"),
        ("1:30", "1:30"),
        ("2026-01-01", "2026-01-01"),
        (".nan", ".nan"),
        ("'12'", "12"),
    ],
)
def test_plain_values_are_what_they_look_like(text: str, value: object) -> None:
    parsed = parse_yaml(text, "x")
    assert (parsed, type(parsed)) == (value, type(value))


REFUSED = [
    (".overspill.yaml", "- a\n- b\n", ".overspill.yaml has no keys. A config file is a mapping from keys to values."),
    (".overspill.json", "3", ".overspill.json has no keys. A config file is a mapping from keys to values."),
    (
        ".overspill.yaml",
        "a: &a [x]\nb: [*a, *a]\n",
        ".overspill.yaml is not usable YAML, line 1: anchors and aliases are not allowed.",
    ),
    (".overspill.yaml", "a: 1\nb: *a\n", ".overspill.yaml is not usable YAML, line 2: anchors and aliases are not allowed."),
    (".overspill.yaml", "a: !!python/name:os.system x\n", ".overspill.yaml is not usable YAML, line 1: tags are not allowed."),
    (
        ".overspill.yaml",
        "maxRunning: 1\nmaxRunning: 2\n",
        ".overspill.yaml is not usable YAML, line 2: the key 'maxRunning' appears twice.",
    ),
    (".overspill.yaml", "? [a]\n: 1\n", ".overspill.yaml is not usable YAML, line 1: a key must be a plain string."),
    (
        ".overspill.yaml",
        "<<: {maxRunning: 1}\n",
        "Unknown key '<<' in .overspill.yaml. `overspill config` lists all keys.",
    ),
    (".overspill.yaml", "a: [1\n", ".overspill.yaml is not usable YAML, line 2: expected ',' or ']', but got '<stream end>'."),
    (".overspill.yaml", "a: 1\nb: \x01\n", ".overspill.yaml is not usable YAML, line 2: special characters are not allowed."),
    (".overspill.yaml", "[" * 100_000, ".overspill.yaml is not usable YAML, line 1: nested too deeply."),
    (".overspill.yaml", "a: [" + "1," * 100_000 + "]", ".overspill.yaml is not usable YAML, line 1: more than 10000 values."),
    (".overspill.yaml", "a: " + "9" * 5_000, ".overspill.yaml has a number that is too long."),
    (".overspill.yaml", "a: 1\n---\nb: 2\n", ".overspill.yaml is not usable YAML, line 2: but found another document."),
    (".overspill.yaml", b"a: 1\nb: \xff\n", ".overspill.yaml is not UTF-8, line 2. Save it as UTF-8."),
    (".overspill.yaml", b"#" * 1_048_577, ".overspill.yaml is larger than the limit of 1048576 bytes."),
    (".overspill.json", '{"a": 1,\n "a": 2}', ".overspill.json has the key 'a' twice. Keep one."),
    (".overspill.json", '{\n"a": }', ".overspill.json is not usable JSON, line 2: Expecting value."),
    (".overspill.json", '{\r\r"a": }', ".overspill.json is not usable JSON, line 3: Expecting value."),
    (".overspill.yaml", b"a: 1\rb: \xff\r", ".overspill.yaml is not UTF-8, line 2. Save it as UTF-8."),
    (".overspill.json", "[" * 100_000, ".overspill.json is nested too deeply."),
    (".overspill.json", '{"surface": ' + "[" * 20 + "]" * 20 + "}", ".overspill.json is nested too deeply."),
    (".overspill.json", '{"surface": [' + "1," * 10_000 + "1]}", ".overspill.json has more than 10000 values."),
    (".overspill.json", '{"a": ' + "9" * 5_000 + "}", ".overspill.json has a number that is too long."),
    (".overspill.json", '{"asyncTimeoutSecs": NaN}', "asyncTimeoutSecs is nan in .overspill.json; allowed: a number above 0."),
]


@pytest.mark.parametrize(("name", "content", "text"), REFUSED, ids=[text[:60] for _, _, text in REFUSED])
def test_a_file_that_cannot_be_used_says_why_in_one_line(tmp_path: Path, name: str, content: bytes | str, text: str) -> None:
    assert refusal(tmp_path, name, content) == text


def test_a_file_of_a_hundred_megabytes_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / ".overspill.yaml").open("wb") as file:
        file.truncate(100_000_000)
    with pytest.raises(SettingsError, match="larger than the limit of 1048576 bytes"):
        load(cwd=tmp_path)


def test_something_that_is_not_a_regular_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".overspill.yaml").mkdir()
    with pytest.raises(SettingsError, match=r"^\.overspill\.yaml is not a regular file\.$"):
        load(cwd=tmp_path)


def test_a_pipe_is_refused_without_waiting_for_its_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / ".overspill.yaml")
    with pytest.raises(SettingsError, match="is not a regular file"):
        load(cwd=tmp_path)
    with pytest.raises(SettingsError, match="is not a regular file"):
        load(config=tmp_path / ".overspill.yaml")


@pytest.mark.parametrize("target", ["elsewhere", "absent"])
def test_a_link_is_refused_in_the_working_directory_only(tmp_path: Path, target: str) -> None:
    (tmp_path / "elsewhere").write_text("maxRunning: 3\n")
    (tmp_path / ".overspill.yaml").symlink_to(tmp_path / target)
    with pytest.raises(SettingsError, match="is not a regular file"):
        load(cwd=tmp_path)
    (tmp_path / "config.yaml").symlink_to(tmp_path / "elsewhere")
    assert load(user_config_dir=tmp_path).settings.max_running == 3


def test_a_missing_file_given_by_name_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as problem:
        load(config=tmp_path / "mine.yaml")
    assert str(problem.value) == f"{tmp_path / 'mine.yaml'} cannot be read: No such file or directory."


@given(st.text(alphabet=st.characters(codec="utf-8") | st.sampled_from(list(":-{}[],&*!|>'\"%@\n \t#?<~0.e_")), max_size=60))
def test_any_string_is_a_value_or_a_settings_error(text: str) -> None:
    with suppress(SettingsError):
        parse_yaml(text, "x")
