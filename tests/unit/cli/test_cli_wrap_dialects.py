"""`overspill wrap` and `unwrap` for clients that spell their servers in their own way."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from client_files import CODEX, DIALECTS, GOOSE, OPENCODE_2
from commands import Place, Result

from overspill.mcp.host_configs.clients import known_clients
from overspill.text import jsonc


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME"):
        monkeypatch.delenv(name, raising=False)
    return Place(tmp_path, monkeypatch, capsys)


def install(place: Place, client: str, text: str = "") -> Path:
    file = known_clients(place.root, "linux", {"XDG_CONFIG_HOME": str(place.root / "config")})[client].file
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text or DIALECTS[client])
    return file


def wrap(place: Place, client: str, *options: str) -> Result:
    return place.overspill("wrap", client, "--command", "overspill", *options)


def read(file: Path) -> Any:
    text = file.read_text()
    if file.suffix == ".toml":
        return tomllib.loads(text)
    return yaml.safe_load(text) if file.suffix == ".yaml" else jsonc.scan(text, file.name).value


PROXY = ["proxy", "--name"]
HEADERS = ["--header-env", "Authorization=OVERSPILL_HEADER_AUTHORIZATION", "--url", "https://mcp.example.com/mcp"]
WRAPPED: dict[str, dict[str, Any]] = {
    "windsurf": {
        "sqlite": {
            "command": "overspill",
            "args": [*PROXY, "sqlite", "--", "uvx", "mcp-server-sqlite", "--db-path", "/home/ada/a.db"],
            "disabled": False,
            "disabledTools": ["write_query"],
        }
    },
    "cline": {
        "remote": {
            "type": "stdio",
            "command": "overspill",
            "args": [*PROXY, "remote", *HEADERS],
            "env": {"OVERSPILL_TYPE": "streamableHttp", "OVERSPILL_HEADER_AUTHORIZATION": "Bearer cline-secret"},
            "disabled": False,
            "autoApprove": ["search"],
        }
    },
    "codex": {
        "search": {
            "command": "overspill",
            "args": [*PROXY, "search", *HEADERS],
            "env": {"OVERSPILL_HEADER_AUTHORIZATION": "Bearer codex-secret"},
            "enabled": True,
        },
        "with space": {"command": "overspill", "args": [*PROXY, "with space", "--", "tool"]},
    },
    "gemini-cli": {
        "streamed": {
            "command": "overspill",
            "args": [*PROXY, "streamed", *HEADERS],
            "env": {"OVERSPILL_HEADER_AUTHORIZATION": "Bearer gemini-secret"},
            "timeout": 5000,
        }
    },
    "opencode": {
        "everything": {
            "type": "local",
            "command": ["overspill", *PROXY, "everything", "--", "npx", "-y", "@modelcontextprotocol/server-everything"],
            "environment": {"LOG": "opencode-secret"},
            "enabled": True,
        },
    },
    "zed": {
        "remote": {
            "command": "overspill",
            "args": [*PROXY, "remote", *HEADERS],
            "env": {"OVERSPILL_HEADER_AUTHORIZATION": "Bearer zed-secret"},
        }
    },
    "goose": {
        "github": {
            "args": [*PROXY, "github", "--", "npx", "-y", "@modelcontextprotocol/server-github"],
            "bundled": None,
            "cmd": "overspill",
            "description": "",
            "enabled": True,
            "env_keys": ["GITHUB_PERSONAL_ACCESS_TOKEN"],
            "envs": {},
            "name": "GitHub",
            "timeout": 300,
            "type": "stdio",
        }
    },
}
REFUSED = {
    "cline": "older: it is of type 'sse'",
    "codex": "figma: Codex fills in its bearer_token_env_var",
    "gemini-cli": "events: it is of type 'sse'",
    "opencode": "signed-in: it says how your client signs in",
    "zed": "from-an-extension: an extension of Zed starts it",
    "goose": "developer: it is part of Goose",
}
TABLES = {"codex": "mcp_servers", "opencode": "mcp", "zed": "context_servers", "goose": "extensions"}


@pytest.mark.parametrize("client", DIALECTS)
def test_entries_are_wrapped_in_the_clients_own_form(place: Place, client: str):
    file = install(place, client)
    result = wrap(place, client, "--each")
    assert (result.code, result.err) == (0, "")
    entries = read(file)[TABLES.get(client, "mcpServers")]
    assert {name: entries[name] for name in WRAPPED[client]} == WRAPPED[client]
    assert REFUSED.get(client, "") in result.out


@pytest.mark.parametrize("client", DIALECTS)
def test_one_entry_offers_the_retrieval_tools_if_the_client_can_have_it(place: Place, client: str):
    file = install(place, client)
    result = wrap(place, client)
    entries = read(file)[TABLES.get(client, "mcpServers")]
    if client == "goose":
        assert "overspill" not in entries
        assert "--group" not in file.read_text()
        assert "because entries of this client need more keys" in result.out
    else:
        words = ["overspill", "serve", client]
        made = {"type": "local", "command": words} if client == "opencode" else {"command": words[0], "args": words[1:]}
        assert entries["overspill"] == made
        assert "--group" in file.read_text()


@pytest.mark.parametrize("client", DIALECTS)
def test_everything_else_in_the_file_stays_as_it_is(place: Place, client: str):
    file = install(place, client)
    before = read(file)
    assert wrap(place, client).code == 0
    after = read(file)
    table = TABLES.get(client, "mcpServers")
    assert {key: value for key, value in after.items() if key != table} == {
        key: value for key, value in before.items() if key != table
    }
    gone = set(DIALECTS[client].splitlines()) - set(file.read_text().splitlines())
    assert not [line for line in gone if "#" in line or line.strip().startswith("//")] or client == "codex"


@pytest.mark.parametrize("client", DIALECTS)
def test_undo_is_byte_for_byte_and_leaves_no_copy(place: Place, client: str):
    file = install(place, client)
    wrap(place, client)
    assert file.read_text() != DIALECTS[client]
    result = place.overspill("unwrap", client)
    assert (result.code, result.err) == (0, "")
    assert file.read_text() == DIALECTS[client]
    assert [each.name for each in file.parent.iterdir()] == [file.name]


@pytest.mark.parametrize("client", DIALECTS)
def test_undo_works_without_the_copy(place: Place, client: str):
    file = install(place, client)
    before = read(file)
    wrap(place, client)
    for copy in file.parent.glob("*.bak"):
        copy.unlink()
    assert place.overspill("unwrap", client).code == 0
    table = TABLES.get(client, "mcpServers")

    def without_empty(entries: dict[str, Any]) -> dict[str, Any]:
        return {name: {key: value for key, value in entry.items() if value not in ([], {})} for name, entry in entries.items()}

    assert without_empty(read(file)[table]) == without_empty(before[table])


@pytest.mark.parametrize("client", DIALECTS)
def test_wrapping_twice_changes_nothing(place: Place, client: str):
    file = install(place, client)
    wrap(place, client)
    once = file.read_text()
    assert "already runs through Overspill" in wrap(place, client).out
    assert file.read_text() == once


@pytest.mark.parametrize("client", DIALECTS)
def test_print_shows_no_secret_and_writes_nothing(place: Place, client: str):
    file = install(place, client)
    result = wrap(place, client, "--print")
    assert result.code == 0
    assert "-secret" not in result.out
    assert file.read_text() == DIALECTS[client]


def test_the_second_form_of_opencode_is_known(place: Place):
    file = install(place, "opencode", OPENCODE_2)
    assert wrap(place, "opencode").code == 0
    assert read(file)["mcp"]["servers"]["everything"]["command"][:4] == ["overspill", "proxy", "--name", "everything"]
    assert place.overspill("unwrap", "opencode").code == 0
    assert file.read_text() == OPENCODE_2


@pytest.mark.parametrize("client", ["windsurf", "cline", "gemini-cli"])
def test_a_server_may_be_named_servers(place: Place, client: str):
    file = install(place, client, '{"mcpServers": {"servers": {"command": "tool"}, "other": {"command": "tool"}}}')
    assert wrap(place, client, "--each").code == 0
    wrapped = {name: {"command": "overspill", "args": [*PROXY, name, "--", "tool"]} for name in ("servers", "other")}
    assert read(file) == {"mcpServers": wrapped}


def test_a_change_in_between_survives_the_undo(place: Place):
    file = install(place, "codex")
    wrap(place, "codex")
    file.write_text(file.read_text().replace('model = "gpt-6-mini"', 'model = "other"'))
    assert place.overspill("unwrap", "codex").code == 0
    now = tomllib.loads(file.read_text())
    assert now["profiles"]["quick"]["model"] == "other"
    assert now["mcp_servers"] == tomllib.loads(CODEX)["mcp_servers"]


@pytest.mark.parametrize(
    ("client", "text", "words"),
    [
        ("codex", "model = ", "is not valid TOML"),
        ("codex", 'model = "x"\n[features]\n', "has no servers: it has no key mcp_servers. Its keys: model, features."),
        ("goose", "a: [", "is not valid YAML"),
        ("goose", "GOOSE_MODEL: x\n", "it has no key extensions. Its keys: GOOSE_MODEL."),
        ("goose", "- a\n", "it has no key extensions. Its keys: none."),
        ("zed", '{"theme": "x"}', "it has no key context_servers. Its keys: theme."),
        ("zed", "", "is empty, so it has no servers."),
        ("codex", " \n", "is empty, so it has no servers."),
        ("opencode", '{"mcp": {"a": {"type": "local", "type": "local"}}}', "has the key 'type' twice"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_line_and_unchanged(place: Place, client: str, text: str, words: str):
    file = install(place, client, "x")
    file.write_text(text)
    result = wrap(place, client)
    assert (result.code, result.out) == (2, "")
    assert words in result.err
    assert len(result.err.splitlines()) == 1
    assert file.read_text() == text


def test_yaml_that_would_be_written_differently_is_refused_with_the_lines_to_paste(place: Place):
    text = GOOSE.replace("GOOSE_MODEL: claude  # the usual", "GOOSE_MODEL:     claude")
    file = install(place, "goose", text)
    result = wrap(place, "goose")
    assert (result.code, result.out) == (2, "")
    assert "would change other places in it too. Nothing was written. Change its entries by hand." in result.err
    assert file.read_text() == text
    assert [each.name for each in file.parent.iterdir()] == [file.name]
    told, _, lines = result.err.partition("\n\n")
    assert "keep your own value" in told
    assert "goose-secret" not in result.err
    pasted: dict[str, Any] = {}
    for block in lines.split("extensions:\n")[1:]:
        pasted |= yaml.safe_load(f"extensions:\n{block}")["extensions"]
    assert pasted["github"] == WRAPPED["goose"]["github"]
    assert pasted["remote"]["envs"] == {"OVERSPILL_HEADER_AUTHORIZATION": "…"}


def test_toml_that_would_be_written_differently_is_refused_with_the_lines_to_paste(place: Place):
    first, _, rest = CODEX.partition("\n[")
    text = f"{first}\n[[notes]]\na = 1\n\n[{rest}\n[[notes]]\na = 2\n"
    file = install(place, "codex", text)
    result = wrap(place, "codex", "--each")
    assert (result.code, result.out) == (2, "")
    assert "would change other places in it too. Nothing was written. Change its entries by hand." in result.err
    assert file.read_text() == text
    assert [each.name for each in file.parent.iterdir()] == [file.name]
    assert "secret" not in result.err
    _, _, lines = result.err.partition("\n\n")
    pasted = tomllib.loads(lines)["mcp_servers"]
    file.write_text(CODEX)
    wrap(place, "codex", "--each")
    written = read(file)["mcp_servers"]
    assert set(pasted) == {name for name, entry in written.items() if "proxy" in entry.get("args", ())}
    for name, entry in pasted.items():
        assert {**entry, "env": {}} == {**written[name], "env": {}}
        assert set(entry.get("env", {})) == set(written[name].get("env", {}))


def test_a_file_that_is_only_read_may_be_written_in_any_form(place: Place):
    install(place, "goose", "GOOSE_MODEL:     x\nextensions:\n  gone: {type: stdio, cmd: no-such-program, enabled: true}\n")
    result = place.overspill("doctor", "goose")
    assert (result.code, "gone: " in result.out) == (1, True)


def test_entries_of_unknown_shape_name_their_keys(place: Place):
    install(place, "zed", '{"context_servers": {"odd": {"colour": 1, "shape": 2}}}')
    assert "odd: it has neither a command nor a url (its keys: colour, shape)." in wrap(place, "zed").out


@pytest.mark.parametrize(("client", "module"), [("codex", "tomlkit"), ("goose", "ruamel")])
def test_a_missing_library_is_named(place: Place, client: str, module: str):
    install(place, client)
    result = place.without(module, "wrap", client)
    assert result.code == 2
    assert "needs the package tomlkit or ruamel.yaml" in result.err
    assert "pip install '.[clients]'" in result.err


def test_doctor_reads_every_dialect(place: Place):
    install(place, "codex", '[mcp_servers.missing]\ncommand = "no-such-program"\n')
    result = place.overspill("doctor", "codex")
    assert result.code == 1
    assert "missing: " in result.out


def test_doctor_describes_a_wrapped_entry_by_its_original(place: Place):
    file = install(place, "opencode", json.dumps({"mcp": {"gone": {"type": "local", "command": ["no-such-program"]}}}))
    assert place.overspill("wrap", "opencode").code == 0
    assert "overspill" in file.read_text()
    assert "no-such-program" in place.overspill("doctor", "opencode").out
