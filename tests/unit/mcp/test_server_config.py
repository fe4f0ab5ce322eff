"""The list of servers that MCP clients share: every form it has, and what is said about mistakes."""

import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from rich.pretty import pretty_repr

from overspill.errors import SettingsError
from overspill.mcp.client.config import ServerConfig, read_servers, server_configs
from overspill.mcp.host_configs.files import MAX_BYTES

PROJECTS = {f"/p/{n}": {"mcpServers": {"other": {"command": "y"}}} for n in range(20_000)}
CLAUDE = json.dumps({"projects": PROJECTS, "mcpServers": {"a": {"command": "x"}}})


def one(entry: Any, environ: dict[str, str] | None = None) -> ServerConfig:
    return server_configs({"files": entry}, "in mcp.json", environ)["files"]


def mistake(entry: Any, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(SettingsError) as caught:
        one(entry, environ)
    return str(caught.value)


def test_a_command_has_arguments_an_environment_and_a_folder():
    entry = {"type": "stdio", "command": "node", "args": ["a.js", "-v"], "env": {"KEY": "v", "N": 1, "ON": True}, "cwd": "/srv"}
    assert one(entry) == ServerConfig(
        "files", "node", ("a.js", "-v"), {"KEY": "v", "N": "1", "ON": "true"}, cwd="/srv", url="", headers={}, tools=None
    )


@pytest.mark.parametrize("kind", ["http", "streamable-http", "streamableHttp", "streamable_http", None])
def test_a_url_has_headers(kind: str | None):
    entry = {"type": kind, "url": "https://example.org/mcp", "headers": {"Authorization": " Bearer x\n"}}
    assert one(entry) == ServerConfig("files", url="https://example.org/mcp", headers={"Authorization": "Bearer x"})


def test_a_url_may_be_spelled_as_windsurf_does():
    assert one({"serverUrl": "http://localhost:1/mcp"}).url == "http://localhost:1/mcp"


@pytest.mark.parametrize(
    ("given", "allowed", "refused"),
    [
        ({}, ["read", "write"], []),
        ({"tools": ["*"]}, ["read", "write"], []),
        ({"tools": ["read"]}, ["read"], ["write"]),
        ({"allowedTools": ["read"]}, ["read"], ["write"]),
        ({"tools": None, "allowedTools": ["read"]}, ["read"], ["write"]),
        ({"tools": []}, [], ["read", "write"]),
    ],
)
def test_only_named_tools_are_available(given: dict[str, Any], allowed: list[str], refused: list[str]):
    config = one({"command": "x", **given})
    assert [tool for tool in allowed if not config.allows(tool)] == []
    assert [tool for tool in refused if config.allows(tool)] == []


@pytest.mark.parametrize("off", [{"disabled": True}, {"enabled": False}])
def test_disabled_servers_are_skipped_even_with_mistakes(off: dict[str, Any]):
    assert list(server_configs({"a": {"command": "x"}, "b": {"command": 1, **off}}, "in mcp.json")) == ["a"]


def test_variables_are_expanded_everywhere():
    environ = {"HOME": "/home/me", "TOKEN": "s3cret"}
    command = one(
        {"command": "${HOME}/bin", "args": ["-t=${env:TOKEN}", "$HOME"], "env": {"A": "${NONE:-b c}"}, "cwd": "${HOME}"}, environ
    )
    assert command == ServerConfig("files", "/home/me/bin", ("-t=s3cret", "$HOME"), {"A": "b c"}, cwd="/home/me")
    remote = one({"url": "https://x/${TOKEN}", "headers": {"X-Key": "${TOKEN}"}}, environ)
    assert remote == ServerConfig("files", url="https://x/s3cret", headers={"X-Key": "s3cret"})


def test_without_an_environment_variables_are_not_expanded():
    assert one({"command": "${HOME}/bin", "args": ["${input:key}"]}).args == ("${input:key}",)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ("npx", "must be a mapping with a command or a url."),
        ({}, "needs either a command or a url."),
        ({"command": "x", "url": "http://x"}, "needs either a command or a url."),
        ({"command": ""}, "needs either a command or a url."),
        ({"comand": "npx"}, "needs either a command or a url (did you mean 'command' instead of 'comand'?)."),
        ({"uri": "http://x"}, "needs either a command or a url (did you mean 'url' instead of 'uri'?)."),
        ({"command": ["x"]}, "has a bad value: `command` must be a string, not list."),
        ({"command": "x", "args": "-v"}, "has a bad value: `args` must be a list of strings."),
        ({"command": "x", "args": [1]}, "has a bad value: `args` must be a list of strings."),
        ({"command": "x", "env": ["A=1"]}, "has a bad value: `env` must be a mapping."),
        ({"command": "x", "env": {"A": None}}, "has a bad value: every value in `env` must be a string."),
        ({"command": "x", "envFile": ".env"}, "has an envFile, which Overspill does not read. Move its variables to env."),
        ({"url": "http://x", "type": "sse"}, "has the type 'sse'. Overspill supports stdio and streamable HTTP servers."),
        (
            {"url": "ftp://user:s3cret@x"},
            "has a bad url. Use http:// or https:// with a host, without spaces or control characters.",
        ),
        (
            {"url": "https:///s3cret"},
            "has a bad url. Use http:// or https:// with a host, without spaces or control characters.",
        ),
        (
            {"url": "http://x/\ns3cret"},
            "has a bad url. Use http:// or https:// with a host, without spaces or control characters.",
        ),
        (
            {"url": "http://x", "headers": {"Key": "s3cret\nEvil: 1"}},
            "has a bad header 'Key': it contains characters that are not allowed in a header.",
        ),
        (
            {"url": "http://x", "headers": {"Key": "s3crét"}},
            "has a bad header 'Key': it contains characters that are not allowed in a header.",
        ),
        (
            {"url": "http://x", "headers": {"A b": "s3cret"}},
            "has a bad header 'A b': it contains characters that are not allowed in a header.",
        ),
        ({"command": "x", "args": ["${MISSING}"]}, "uses ${MISSING}, but that variable is not set."),
        (
            {"command": "x", "env": {"K": "${input:api-key}"}},
            "uses ${input:api-key}, which only your client can ask you for. Use an environment variable instead.",
        ),
    ],
)
def test_a_mistake_is_reported_with_its_place_but_without_values(entry: Any, words: str):
    assert mistake(entry, {}) == f"Server 'files' in mcp.json {words}"


def test_a_command_is_searched_where_the_server_would_start(tmp_path: Path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "mine"
    program.write_text("#!/bin/sh\n")
    environ = {"PATH": "/usr/bin:/bin"}
    gone = "The server files cannot be started: no such command {}. Check the spelling, or give its full path."
    assert one({"command": str(program)}).find_problem(environ) == gone.format(repr(str(program)))  # not yet to be run
    program.chmod(0o755)
    assert one({"command": str(program)}).find_problem(environ) == ""
    assert one({"command": "cat"}).find_problem(environ) == ""
    assert one({"command": "mine"}).find_problem(environ) == gone.format("'mine'")
    assert one({"command": "mine", "env": {"PATH": str(program.parent)}}).find_problem(environ) == ""
    assert one({"command": "bin/mine"}).find_problem(environ) == gone.format("'bin/mine'")
    assert one({"command": "bin/mine", "cwd": str(tmp_path)}).find_problem(environ) == ""
    assert one({"url": "http://x"}).find_problem(environ) == ""


def test_secrets_do_not_appear_in_repr():
    config = one({"command": "x", "args": ["s3cret"], "env": {"KEY": "s3cret"}})
    remote = one({"url": "https://s3cret@x/s3cret", "headers": {"Key": "s3cret"}})
    for shown in (repr(config), str([remote]), f"{remote}", pretty_repr({"a": config}), pretty_repr(remote)):
        assert "s3cret" not in shown
        assert "files" in shown


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mcp.json", '{"mcpServers": {"a": {"command": "x"}}}'),
        ("mcp.json", '\ufeff{"mcpServers": {"a": {"command": "x"}}}'),
        ("mcp.json", '{"servers": {"a": {"command": "x"}}, "inputs": []}'),
        ("mcp.json", '// mine\n{"servers": { /* one\nonly */ "a": {"command": "x",}, // no more,\n },\n}\n'),
        ("mcp.yaml", "mcpServers:\n  a:\n    command: x\n"),
        pytest.param(".claude.json", CLAUDE, id="claude"),
    ],
)
def test_a_clients_own_file_is_read_in_all_its_forms(tmp_path: Path, name: str, content: str):
    (tmp_path / name).write_text(content, "utf-8")
    assert read_servers(tmp_path / name, {}) == {"a": ServerConfig("a", "x")}


def test_comment_marks_inside_a_string_stay(tmp_path: Path):
    args = ["http://x//y", "/* not */", 'quote \\" // still', ",]", ",\n}"]
    file = tmp_path / "mcp.json"
    file.write_text("/**/" + json.dumps({"mcpServers": {"a": {"command": "x", "args": args}}}), "utf-8")
    assert read_servers(file, {})["a"].args == tuple(args)


def test_names_in_yaml_may_be_numbers(tmp_path: Path):
    (tmp_path / "mcp.yml").write_text("mcpServers:\n  7:\n    command: x\n")
    assert read_servers(tmp_path / "mcp.yml", {}) == {"7": ServerConfig("7", "x")}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b'{"mcp": {}}', "{path} has no mcpServers. Use the file in which your MCP client lists its servers."),
        (b"[]", "{path} has no mcpServers. Use the file in which your MCP client lists its servers."),
        (b'{"mcpServers": ["a"]}', "mcpServers in {path} must be a mapping of names to servers."),
        (b'{\n "a": s3cret\n}', "{path} is not usable JSON, line 2, column 7: a value is missing."),
        (b'{\r "a": s3cret\r}', "{path} is not usable JSON, line 2, column 7: a value is missing."),
        (b'{ /*\n\n*/ "a": s3cret}', "{path} is not usable JSON, line 3, column 9: a value is missing."),
        (
            b'{"mcpServers": "unfinished',
            "{path} is not usable JSON, line 1, column 16: this string is not closed or has an invalid character.",
        ),
        (b'{"a": "\xff"}', "{path} is not UTF-8, line 1. Save it as UTF-8."),
        pytest.param(b"[" * 100_000, "{path} is not usable JSON, line 1, column 202: nested too deeply.", id="deep"),
    ],
)
def test_an_unusable_file_is_named_with_the_reason(tmp_path: Path, content: bytes, words: str):
    file = tmp_path / "mcp.json"
    file.write_bytes(content)
    with pytest.raises(SettingsError) as caught:
        read_servers(file, {})
    assert str(caught.value) == words.format(path=file)


def test_a_missing_file_is_named(tmp_path: Path):
    with pytest.raises(SettingsError) as caught:
        read_servers(tmp_path / "mcp.json", {})
    assert str(caught.value) == f"{tmp_path / 'mcp.json'} cannot be read: No such file or directory."


def write_file(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def write_pipe(path: Path, data: bytes) -> None:
    def feed() -> None:
        with suppress(BrokenPipeError), open(path, "wb", buffering=0) as pipe:  # a reader that has read enough is gone
            pipe.write(data)

    os.mkfifo(path)
    Thread(target=feed, daemon=True).start()


@pytest.mark.parametrize("write", [write_file, write_pipe])
def test_a_file_or_a_pipe_is_read_up_to_the_limit(tmp_path: Path, write: Callable[[Path, bytes], None]):
    servers = b'{"mcpServers": {"a": {"command": "x"}}}'
    write(tmp_path / "mcp.json", servers.ljust(MAX_BYTES))
    assert [*read_servers(tmp_path / "mcp.json", {})] == ["a"]
    write(tmp_path / "large.json", servers.ljust(MAX_BYTES + 1))
    with pytest.raises(SettingsError, match=r"large.json is larger than 33,554,432 bytes. That is too large for a client's"):
        read_servers(tmp_path / "large.json", {})
