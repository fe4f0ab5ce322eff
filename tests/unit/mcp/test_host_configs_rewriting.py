"""Entries of servers: which can run through the proxy, how they are written then, and how they become what they were."""

from __future__ import annotations

import json
from typing import Any

import pytest
from client_files import ALL, CLAUDE_CODE, CLAUDE_CODE_PROJECT, CURSOR, VS_CODE

from overspill.errors import SettingsError
from overspill.mcp.host_configs import entries, rewriting
from overspill.mcp.host_configs.documents import ConfigText
from overspill.mcp.host_configs.rewriting import RewriteOutcome

LAUNCH = ["/opt/overspill"]
OWN_SIGN_IN = "it says how your client signs in, which the proxy cannot do; remove that to wrap it and log in with Overspill"


def file_of(entry: object) -> str:
    return json.dumps({"mcpServers": {"s": entry}})


def wrap(text: str, *only: str) -> str:
    return rewriting.wrap(ConfigText(text, "mcp.json"), LAUNCH, only).text


def unwrap(text: str, *earlier: str) -> str:
    return rewriting.unwrap(ConfigText(text, "mcp.json"), earlier).text


def wrapped(entry: object) -> Any:
    return json.loads(wrap(file_of(entry), "s"))["mcpServers"]["s"]


def unwrapped(entry: object) -> Any:
    return json.loads(unwrap(file_of(entry)))["mcpServers"]["s"]


def reason(entry: object, *only: str) -> str:
    (outcome,) = rewriting.wrap(ConfigText(file_of(entry), "mcp.json"), LAUNCH, only).outcomes
    return outcome.reason


def told(outcomes: tuple[RewriteOutcome, ...]) -> list[tuple[str, str, str]]:
    return [(outcome.server, outcome.project, outcome.change) for outcome in outcomes]


def test_a_command_runs_behind_the_proxy_and_all_else_stays():
    entry = {"type": "stdio", "command": "npx", "args": ["-y", "fs"], "env": {"A": "1"}, "cwd": "/x", "disabled": True}
    assert wrapped(entry) == {
        "type": "stdio",
        "command": "/opt/overspill",
        "args": ["proxy", "--name", "s", "--", "npx", "-y", "fs"],
        "env": {"A": "1"},
        "cwd": "/x",
        "disabled": True,
    }


def test_a_command_without_arguments_gets_some():
    assert wrapped({"command": "run"}) == {"command": "/opt/overspill", "args": ["proxy", "--name", "s", "--", "run"]}


def test_overspill_can_be_started_by_a_command_of_several_words():
    text = rewriting.wrap(ConfigText(file_of({"command": "run"}), "mcp.json"), ["uvx", "overspill"]).text
    entry = json.loads(text)["mcpServers"]["s"]
    assert entry == {"command": "uvx", "args": ["overspill", "proxy", "--name", "s", "--", "run"]}
    assert wrap(text) == text
    assert unwrapped(entry) == {"command": "run", "args": []}


def test_a_url_becomes_a_command_and_its_headers_variables():
    entry = {"type": "http", "url": "https://a.example/mcp", "headers": {"Authorization": "Bearer ${T}", "X-Team": "7"}}
    assert wrapped(entry) == {
        "type": "stdio",
        "command": "/opt/overspill",
        "args": [
            "proxy", "--name", "s",
            "--header-env", "Authorization=OVERSPILL_HEADER_AUTHORIZATION",
            "--header-env", "X-Team=OVERSPILL_HEADER_X_TEAM",
            "--url", "https://a.example/mcp",
        ],
        "env": {"OVERSPILL_HEADER_AUTHORIZATION": "Bearer ${T}", "OVERSPILL_HEADER_X_TEAM": "7"},
    }  # fmt: skip


def test_headers_with_similar_names_get_different_variables():
    headers = {"X-A-2": "1", "X-A": "2", "x_a": "3", "X.A": "4"}
    assert wrapped({"url": "http://localhost/mcp", "headers": headers})["env"] == {
        "OVERSPILL_HEADER_X_A_2": "1",
        "OVERSPILL_HEADER_X_A": "2",
        "OVERSPILL_HEADER_X_A_3": "3",
        "OVERSPILL_HEADER_X_A_4": "4",
    }


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example/mcp?key=1",
        "https://user:pw@a.example/mcp",
        "https://a.example/s/abcdefghijklmnopqrst/mcp",
        "https://a.example/mcp#k",
        "${BASE}/mcp",
        "http://[broken/mcp",
    ],
)
def test_a_url_that_may_hold_a_secret_is_in_no_argument(url: str):
    entry = wrapped({"type": "streamable-http", "url": url})
    assert entry == {
        "type": "stdio",
        "command": "/opt/overspill",
        "args": ["proxy", "--name", "s", "--url-env", "OVERSPILL_URL"],
        "env": {"OVERSPILL_URL": url, "OVERSPILL_TYPE": "streamable-http"},
    }
    assert unwrapped(entry) == {"type": "streamable-http", "url": url}


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ("npx", "it is not an object"),
        ({}, "it has neither a command nor a url"),
        ({"command": ["npx"]}, "it has neither a command nor a url"),
        ({"comand": "npx"}, "it has neither a command nor a url (did you mean 'command' instead of 'comand'?)"),
        ({"httpUrl": "https://a.example"}, "it has neither a command nor a url (its keys: httpUrl)"),
        ({"command": "x", "type": "sdk"}, "it is of type 'sdk', and the proxy speaks stdio and streamable HTTP"),
        ({"command": "x", "args": "-y"}, "its args are not a list of strings"),
        ({"command": "x", "args": [1]}, "its args are not a list of strings"),
        ({"command": "x", "dev": {"debug": {"type": "node"}}}, "it runs in a debugger, which needs its own command"),
        ({"command": "x", "url": "y"}, "it has keys for both a command and a url"),
        ({"url": 7}, "its url does not begin with http:// or https://"),
        ({"url": "ftp://a/mcp"}, "its url does not begin with http:// or https://"),
        ({"url": "http://a/mcp", "env": {}}, "it has keys for both a command and a url"),
        ({"url": "http://a/mcp", "type": "sse"}, "it is of type 'sse', and the proxy speaks stdio and streamable HTTP"),
        ({"url": "http://a/mcp", "type": None}, "it is of type None, and the proxy speaks stdio and streamable HTTP"),
        ({"url": "http://a/mcp", "transport": "sse"}, "it speaks SSE, and the proxy speaks stdio and streamable HTTP"),
        ({"url": "http://localhost:8000/sse/"}, "it speaks SSE, and the proxy speaks stdio and streamable HTTP"),
        ({"url": "http://a/mcp", "oauth": {"clientId": "x"}}, OWN_SIGN_IN),
        ({"url": "http://a/mcp", "headers": "x"}, "its headers are not strings with valid names"),
        ({"url": "http://a/mcp", "headers": {"a b": "c"}}, "its headers are not strings with valid names"),
        ({"url": "http://a/mcp", "headers": {"a": 1}}, "its headers are not strings with valid names"),
    ],
)  # fmt: skip
def test_an_entry_that_cannot_run_through_the_proxy_is_left_alone(entry: object, expected: str):
    assert reason(entry, "s") == expected
    assert wrap(file_of(entry), "s") == file_of(entry)


def test_duplicate_keys_are_refused():
    text = '{"mcpServers": {"s": {"command": "a", "command": "b"}, "t": {"url": "http://a", "headers": {"x": "1", "x": "2"}}}}'
    made = rewriting.wrap(ConfigText(text, "mcp.json"), LAUNCH)
    assert [outcome.reason for outcome in made.outcomes] == ["it has the key 'command' twice", "it has the key 'x' twice"]
    assert made.text == text


def test_an_entry_that_may_stop_working_is_wrapped_only_by_name():
    entry = {"command": "x", "sandboxEnabled": True}
    why = "it runs in a sandbox, where Overspill may not be able to store anything"
    assert reason(entry) == f"{why}; name it with --server to wrap it anyway"
    assert reason(entry, "s") == ""
    assert unwrap(wrap(file_of(entry), "s"), file_of(entry)) == file_of(entry)


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"type": "http", "url": "https://mcp.notion.com/mcp"}, True),
        ({"url": "http://localhost:3000/mcp"}, False),
        ({"url": "http://127.0.0.1/mcp"}, False),
        ({"url": "http://[::1]:80/mcp"}, False),
        ({"url": "https://mcp.example.com/mcp", "headers": {"Authorization": "Bearer x"}}, False),
        ({"url": "https://mcp.example.com/mcp?key=x"}, False),
        ({"url": "http://[/mcp"}, False),
        ({"command": "npx"}, False),
    ],
)
def test_a_remote_server_is_wrapped_and_may_need_a_login(entry: dict[str, Any], expected: bool):
    assert reason(entry) == ""
    assert entries.may_need_login(entry) == expected


@pytest.mark.parametrize("name", ALL)
def test_the_files_of_known_clients_come_back_byte_for_byte(name: str):
    text = ALL[name]
    done = wrap(text)
    assert done != text
    assert wrap(done) == done
    assert unwrap(done, text) == text
    assert unwrap(done) == text
    assert unwrap(text) == text


def test_claude_code_has_servers_for_all_projects_and_for_one():
    made = rewriting.wrap(ConfigText(CLAUDE_CODE, ".claude.json"), LAUNCH)
    assert told(made.outcomes) == [
        ("filesystem", "", "wrapped"),
        ("notion", "", "wrapped"),
        ("github", "", "wrapped"),
        ("postgres", "/home/ada/shop", "wrapped"),
    ]
    after = json.loads(made.text)
    assert after["projects"]["/home/ada/shop"]["mcpServers"]["postgres"]["args"][:5] == [
        "proxy",
        "--name",
        "postgres",
        "--",
        "uvx",
    ]
    assert after["oauthAccount"] == {"emailAddress": "ada@example.com"}


def test_placeholders_stay_where_clients_fill_them_in():
    code = json.loads(wrap(CLAUDE_CODE_PROJECT))["mcpServers"]["api"]
    assert code["env"] == {
        "OVERSPILL_URL": "${API_BASE:-https://api.example.com}/mcp",
        "OVERSPILL_HEADER_X_API_KEY": "${API_KEY}",
    }
    cursor = json.loads(wrap(CURSOR))["mcpServers"]["jot"]
    assert cursor["env"] == {"OVERSPILL_HEADER_AUTHORIZATION": "Bearer ${env:JOT_TOKEN}"}


def test_the_comments_of_vs_code_stay_where_they_are():
    github = '"proxy", "--name", "github", "--header-env", "Authorization=OVERSPILL_HEADER_AUTHORIZATION", "--url", '
    expected = """\
{
  // Asked for once and kept by VS Code.
  "inputs": [
    {"type": "promptString", "id": "github-token", "description": "GitHub token", "password": true},
  ],
  "servers": {
    "playwright": {
      "command": "/opt/overspill", // Node.js 20 or later
      "args": [
        "proxy",
        "--name",
        "playwright",
        "--",
        "npx",
        "-y",
        "@playwright/mcp@latest", /* pinned by nobody */
      ],
    },
    /* "off": {"command": "nothing"}, */
    "github": {
      "type": "stdio",
      "command": "/opt/overspill",
      "args": [GITHUB],
      "env": {
        // needs the scope repo
        "OVERSPILL_HEADER_AUTHORIZATION": "Bearer ${input:github-token}",
      },
    },
    "fetch": {"type": "stdio", "command": "/opt/overspill", "args": [FETCH], "cwd": "${workspaceFolder}"},
    "debugged": {"command": "node", "args": ["server.js"], "dev": {"debug": {"type": "node"}}},
  },
}
"""
    expected = expected.replace("GITHUB", f'{github}"https://api.githubcopilot.com/mcp/"')
    assert wrap(VS_CODE) == expected.replace("FETCH", '"proxy", "--name", "fetch", "--", "uvx", "mcp-server-fetch"')


def test_only_the_servers_that_are_named_change():
    made = rewriting.wrap(ConfigText(CURSOR, "mcp.json"), LAUNCH, ["web"])
    assert told(made.outcomes) == [("web", "", "wrapped")]
    back = rewriting.unwrap(ConfigText(wrap(CURSOR), "mcp.json"), only=["jot"])
    assert told(back.outcomes) == [("jot", "", "unwrapped")]
    assert back.text == made.text


def test_an_unknown_name_is_answered_with_the_known_ones():
    with pytest.raises(SettingsError) as error:
        wrap(CURSOR, "wbe")
    assert str(error.value) == "mcp.json has no server 'wbe'. Its servers: jot, old, web."
    with pytest.raises(SettingsError) as error:
        unwrap('{"mcpServers": {}}') and rewriting.unwrap(ConfigText('{"mcpServers": {}}', "mcp.json"), only=["a"])
    assert str(error.value) == "mcp.json has no server 'a'. Its servers: none."


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "mcp.json is empty, so it has no servers."),
        ('{"mcpServers": {}, "mcpServers": {}}', "mcp.json has the key 'mcpServers' twice. Keep one."),
        ('{"mcpServers": {"a": {}, "b": {}, "a": {}}}', "mcp.json has the server 'a' twice. Keep one."),
        ("{", 'mcp.json is not usable JSON, line 1, column 2: a key in "…" is missing.'),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused(text: str, message: str):
    with pytest.raises(SettingsError) as error:
        wrap(text)
    assert str(error.value) == message


@pytest.mark.parametrize(
    "text", ["[]", "7", "{}", '{"mcpServers": []}', '{"projects": {"/a": {}, "/b": 1}}', '{"projects": []}', '{"projects": [1]}']
)
def test_a_file_without_servers_is_refused(text: str):
    with pytest.raises(SettingsError) as error:
        wrap(text)
    assert str(error.value) == (
        "mcp.json has no servers: it has neither an mcpServers nor a servers key. "
        "For a client with another kind of file, see `overspill wrap --print`."
    )


def test_an_exact_text_comes_back_from_an_earlier_one_even_if_the_rest_has_changed():
    text = '{"mcpServers": {"a": {"comm\\u0061nd": "x"}, "b": {"command": "y", "args": [ ]}}}'
    later = wrap(text).replace('"b": {', '"c": {"command": "new"}, "b": {')
    assert unwrap(later, "not JSON", '{"mcpServers": {"a": 1, "b": {"command": "other"}}}', text) == text.replace(
        '"b": {', '"c": {"command": "new"}, "b": {'
    )


def test_what_was_changed_by_hand_since_is_kept():
    text = file_of({"command": "x", "args": ["1"]})
    later = wrap(text).replace('"1"', '"1", "2"')
    assert unwrap(later, text) == file_of({"command": "x", "args": ["1", "2"]})
    url = file_of({"type": "http", "url": "http://localhost/mcp", "headers": {"A": "1"}})
    later = wrap(url).replace('"env": {', '"env": {"MINE": "2", ')
    assert json.loads(unwrap(later, url))["mcpServers"]["s"] == {
        "type": "http",
        "url": "http://localhost/mcp",
        "headers": {"A": "1"},
        "env": {"MINE": "2"},
    }


@pytest.mark.parametrize(
    ("args", "rest", "before"),
    [
        (["proxy", "--dry-run", "--", "npx", "-y", "--", "fs"], {}, {"command": "npx", "args": ["-y", "--", "fs"]}),
        (["proxy", "--name", "--", "--", "run"], {}, {"command": "run", "args": []}),
        (["proxy", "--url", "u"], {}, {"url": "u"}),
        (["proxy", "--url", "u"], {"env": {"A": "1"}}, {"url": "u", "env": {"A": "1"}}),
        (["proxy", "--url-env", "U"], {"env": {"U": "u", "W": "w"}}, {"url": "u", "env": {"W": "w"}}),
        (
            ["proxy", "--header-env", "A=V", "--header-env", "B=V", "--url", "u"],
            {"env": {"V": "1"}},
            {"url": "u", "headers": {"A": "1", "B": "1"}, "env": {}},
        ),
    ],
)
def test_an_entry_written_by_hand_is_undone_too(args: list[str], rest: dict[str, object], before: object):
    for program in ("overspill", "C:\\tools\\overspill.exe"):
        for entry in ({"command": program, "args": args, **rest}, {**rest, "args": args, "command": program}):
            assert wrap(file_of(entry)) == file_of(entry)
            assert unwrapped(entry) == before


def test_a_renamed_program_is_recognized_by_its_name_option():
    entry = {"command": "ospill", "args": ["proxy", "--name", "s", "--", "run"]}
    assert unwrapped(entry) == {"command": "run", "args": []}


@pytest.mark.parametrize(
    "entry",
    [
        {"command": "overspill", "args": ["proxy", "--config", "mcp.json"]},
        {"command": "overspill", "args": ["proxy"]},
        {"command": "overspill", "args": ["proxy", "--"]},
        {"command": "overspill", "args": ["proxy", "--url"]},
        {"command": "overspill", "args": ["proxy", "--url=http://a"]},
        {"command": "overspill", "args": ["proxy", "--url-env", "ELSEWHERE"]},
        {"command": "overspill", "args": ["proxy", "--header-env", "A=ELSEWHERE", "--url", "u"], "env": {}},
    ],
)
def test_an_entry_whose_original_is_unknown_is_left_alone(entry: object):
    (outcome,) = rewriting.unwrap(ConfigText(file_of(entry), "mcp.json")).outcomes
    assert outcome.reason == "its original entry is unknown; change it by hand"
    assert unwrap(file_of(entry)) == file_of(entry)


@pytest.mark.parametrize(
    "entry", [7, {"command": "x"}, {"command": "x", "args": "proxy"}, {"command": "overspill", "args": ["proxy", 1]}]
)
def test_an_entry_that_never_ran_through_overspill_is_left_alone(entry: object):
    (outcome,) = rewriting.unwrap(ConfigText(file_of(entry), "mcp.json")).outcomes
    assert (outcome.change, outcome.reason) == ("none", "it does not run through Overspill")
