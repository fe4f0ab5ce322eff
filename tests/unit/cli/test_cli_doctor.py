"""`overspill doctor`, with real servers: one that works, and the ways in which others do not."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
import pytest
from commands import Place, Result
from small_servers import entry, over_http
from upstream import is_alive
from waiting import until

from overspill.store.files.store import FileStore

pytestmark = pytest.mark.slow

PROGRAM = str(Path(sys.executable).with_name("overspill"))
CHECK_COMMAND = "Run its command in a shell and see what it prints."


def examined(place: Place, servers: dict[str, Any], *options: str) -> dict[str, tuple[str, str, str]]:
    """Level, text and advice by server."""
    Path("mcp.json").write_text(json.dumps({"mcpServers": servers}))
    result = place.overspill("doctor", "mcp.json", "--json", *options)
    findings = json.loads(result.out)["findings"]
    assert result.code == (1 if any(finding["level"] == "wrong" for finding in findings) else 0)
    shown = {each["about"]: (each["level"], each["text"], each["advice"]) for each in findings}
    return {name: shown[name] for name in servers if name in shown}


def plain(result: Result, place: Place) -> str:
    out = result.out.replace(str(place.root), "HOME")
    out = re.sub(r"room for [\d.]+ GB", "room for N GB", out)
    return re.sub(r"in [\d.]+ s", "in N s", out)


def test_everything_is_in_order(place: Place):
    Path("mcp.json").write_text(json.dumps({"mcpServers": {"small": entry("works")}}))
    result = place.overspill("doctor", "mcp.json")
    assert (result.code, result.err) == (0, "")
    assert (
        plain(result, place)
        == """\
ok     settings: HOME/config/overspill/config.yaml is used.
ok     secrets: Models see secrets that are in outputs.
       To hide them, set redact: {shown: on} in your config file.
ok     store: HOME/store holds 0 sessions, 0 of them live, with 0 bytes of outputs.
ok     store: HOME/store has room for N GB.
ok     small: small 1 answered in N s with protocol 2025-06-18. 2 tools: 185 bytes of schema, 47 tokens.
                 109 bytes      29 tokens  add
                  76 bytes      18 tokens  log
No problems found.
"""
    )


def test_servers_that_do_not_work_are_told_apart(place: Place, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    exits = {**entry("exits"), "env": {"KEY": "${NO_SUCH_KEY}", "SET": "${HOME}", "AGAIN": "${NO_SUCH_KEY}"}}
    found = examined(
        place,
        {"gone": {"command": "no-such-command"}, "exits": exits, "garbage": entry("garbage"), "hangs": entry("hangs")},
        "--timeout",
        "5",
    )
    assert found["gone"] == (
        "wrong",
        "The server gone cannot be started: no such command 'no-such-command'. Check its command and its folder.",
        CHECK_COMMAND,
    )
    level, text, advice = found["exits"]
    assert (level, advice) == ("wrong", f"${{NO_SUCH_KEY}} is not set in this shell. {CHECK_COMMAND}")
    assert re.fullmatch(
        r"The server exits (closed its output|ended with exit code 1)\. Its last line on standard error: small: no key given",
        text,
    )
    assert found["garbage"] == (
        "wrong",
        "The server garbage did not answer within 5 s. It wrote 1 line to its standard output that could not be read as MCP.",
        CHECK_COMMAND,
    )
    assert found["hangs"] == ("wrong", "The server hangs did not answer within 5 s.", CHECK_COMMAND)


NONE = "small 1 answered in N s with protocol 2025-06-18. 0 tools: 0 bytes of schema, 0 tokens."
UNUSABLE = "It lists tools that cannot be used, and Overspill leaves them out:"


def test_servers_of_all_kinds_are_understood(place: Place):
    servers = {kind: entry(kind) for kind in ("pages", "bare", "modern", "null", "half")}
    found = {name: re.sub(r"[\d.]+ s with", "N s with", text) for name, (_, text, _) in examined(place, servers).items()}
    assert found == {
        "pages": "small 1 answered in N s with protocol 2025-06-18. 2 tools: 185 bytes of schema, 47 tokens.",
        "bare": "small 1 answered in N s with protocol 2025-06-18. 0 tools: 0 bytes of schema, 0 tokens.",
        "modern": "modern answered in N s with protocol 2026-07-28. 2 tools: 185 bytes of schema, 47 tokens.",
        "null": f"{NONE} {UNUSABLE} a page that is not a list of tools.",
        "half": f"{NONE} {UNUSABLE} number 1 (not an object), 'odd' (not valid Unicode).",
    }


HANGS = "import os, time; open('pid', 'w').write(f'{os.getpid()}\\n'); time.sleep(1000)"


@pytest.mark.parametrize(("ending", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_termination_ends_the_servers_too(place: Place, ending: signal.Signals, code: int):
    Path("mcp.json").write_text(json.dumps({"mcpServers": {"hangs": {"command": sys.executable, "args": ["-c", HANGS]}}}))
    with subprocess.Popen([PROGRAM, "doctor", "mcp.json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        anyio.run(until, lambda: os.path.exists("pid") and Path("pid").read_text().endswith("\n"))
        process.send_signal(ending)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, b"Traceback" in errors) == (code, False)
    assert not is_alive(int(Path("pid").read_text()))


def test_servers_in_the_settings_are_checked(place: Place):
    config = place.root / "config" / "overspill" / "config.yaml"
    config.write_text(config.read_text() + f"mcpServers: {json.dumps({'mine': entry('bare'), 'other': entry('exits')})}\n")
    result = place.overspill("doctor", "--server", "mine", "--json")
    found = {each["about"]: each["text"] for each in json.loads(result.out)["findings"]}
    assert result.code == 0
    assert "other" not in found
    assert re.sub(r"[\d.]+ s with", "N s with", found["mine"]) == (
        "small 1 answered in N s with protocol 2025-06-18. 0 tools: 0 bytes of schema, 0 tokens."
    )


def test_a_server_over_http_may_lack_its_header(place: Place):
    with over_http("X-Key", "7") as url:
        found = examined(place, {"good": {"url": url, "headers": {"X-Key": "7"}}, "bad": {"type": "http", "url": url}})
    assert found["good"][0] == "ok"
    assert found["bad"][0] == "wrong"
    assert found["bad"][2] == "Check its URL and headers, and whether it needs you to sign in."


def test_a_wrapped_server_is_checked_behind_the_proxy(place: Place):
    works, exits = entry("works"), entry("exits")
    found = examined(
        place,
        {
            "works": {"command": PROGRAM, "args": ["proxy", "--name", "works", "--", works["command"], *works["args"]]},
            "exits": {"command": PROGRAM, "args": ["proxy", "--name", "exits", "--", exits["command"], *exits["args"]]},
            "moved": {"command": "/gone/overspill", "args": ["proxy", "--", "x"]},
        },
    )
    assert found["works"][0] == "ok"
    assert found["works"][1].endswith(" It runs through Overspill.")
    assert found["exits"][0] == "wrong"
    assert found["moved"] == (
        "wrong",
        "It runs through Overspill, but /gone/overspill does not exist.",
        "Run overspill unwrap and then overspill wrap on the same file.",
    )


def test_servers_that_only_the_client_can_start_are_noted(place: Place):
    found = examined(
        place,
        {
            "asks": {"command": "x", "env": {"T": "${input:token}"}},
            "sse": {"url": "http://localhost/sse"},
            "off": {"command": "x", "disabled": True},
            "odd": {"args": []},
            "typo": {"comand": "x"},
            "none": 7,
        },
    )
    assert found == {
        "asks": ("note", "Not checked: only the client can ask you for 'token'.", ""),
        "sse": ("note", "Not checked: it speaks SSE, which Overspill does not support.", ""),
        "off": ("note", "Not checked: it is disabled.", ""),
        "odd": ("wrong", "Server 'odd' in mcp.json needs either a command or a url.", "Fix its entry."),
        "typo": (
            "wrong",
            "Server 'typo' in mcp.json needs either a command or a url (did you mean 'command' instead of 'comand'?).",
            "Fix its entry.",
        ),
        "none": ("wrong", "Server 'none' in mcp.json must be a mapping with a command or a url.", "Fix its entry."),
    }


def test_entries_of_a_client_that_expands_nothing_are_left_unexpanded(place: Place):
    folder = place.root / ("Library/Application Support/Claude" if sys.platform == "darwin" else "config/Claude")
    folder.mkdir(parents=True)
    server = {**entry("works"), "env": {"T": "${NO_SUCH_KEY}"}}
    (folder / "claude_desktop_config.json").write_text(json.dumps({"mcpServers": {"small": server}}))
    assert place.overspill("doctor", "claude-desktop").code == 0


def test_only_this_projects_servers_of_claude_code_are_checked(place: Place):
    projects = {str(Path.cwd()): {"mcpServers": {"here": {}}}, "/elsewhere": {"mcpServers": {"there": {}}}}
    (place.root / ".claude.json").write_text(json.dumps({"mcpServers": {"mine": {}}, "projects": projects}))
    result = json.loads(place.overspill("doctor", "claude-code", "--json").out)
    assert [each["about"] for each in result["findings"]][-2:] == ["mine", "here"]
    assert result["servers"] == []


def test_names_of_servers_cannot_add_lines(place: Place):
    forged = "files\nNo problems found.\u2028ok     store"
    Path("mcp.json").write_text(json.dumps({"mcpServers": {forged: {"command": "no-such-program"}}}))
    result = place.overspill("doctor", "mcp.json")
    assert (result.code, result.err) == (1, "")
    lines = result.out.splitlines()
    assert [line.partition(":")[0] for line in lines if "files" in line] == [
        "wrong  files\\nNo problems found.\\u2028ok     store"
    ]
    assert lines[-1] == "Found 1 problem."


def test_only_named_servers_are_started(place: Place):
    found = examined(place, {"a": entry("works"), "b": {"command": "no-such-command"}}, "--server", "a")
    assert list(found) == ["a"]
    result = place.overspill("doctor", "mcp.json", "--server", "c")
    assert (result.code, result.err) == (2, "overspill: error: mcp.json has no server 'c'. Its servers: a, b.\n")
    assert "--server needs FILE" in place.overspill("doctor", "--server", "a").err


def test_without_a_file_the_installed_clients_are_listed(place: Place):
    (place.root / ".cursor").mkdir()
    (place.root / ".cursor" / "mcp.json").write_text("{}")
    result = place.overspill("doctor")
    assert result.code == 0
    assert f"Cursor has servers in {place.root}/.cursor/mcp.json. To check them: overspill doctor cursor\n" in result.out


def test_a_missing_mcp_package_is_reported(place: Place):
    Path("mcp.json").write_text(json.dumps({"mcpServers": {"small": entry("works")}}))
    result = place.without("mcp_types", "doctor", "mcp.json")
    assert (result.code, result.err) == (1, "")
    assert result.out.endswith(
        "wrong  servers: Checking servers needs the package mcp, which is not installed or too old. "
        "In a clone of Overspill: `pip install '.[mcp]'`.\nFound 1 problem.\n"
    )


def test_settings_that_do_not_load_are_wrong(place: Place):
    Path(".overspill.yaml").write_text("storeDir: /tmp\n")
    result = place.overspill("doctor")
    assert result.code == 1
    assert "wrong  settings: storeDir may not be set in .overspill.yaml" in result.out
    assert result.out.endswith("Found 1 problem.\n")


def test_doctor_reports_where_settings_come_from_and_who_can_change_them(place: Place):
    config = place.root / "config" / "overspill" / "config.yaml"
    config.write_text(f"storeDir: {place.store}\nasyncToolTTL: 5\nproviders: {{lab: {{apiKeyEnv: NO_SUCH_KEY}}}}\n")
    config.chmod(0o666)
    Path(".overspill.yaml").write_text("previewChars: 3\n")
    result = place.overspill("doctor")
    assert plain(result, place).splitlines()[:9] == [
        "note   settings: asyncToolTTL in HOME/config/overspill/config.yaml has no effect: outputs live as long as the session.",
        "ok     settings: .overspill.yaml in this folder is used, but only for limits and strategies.",
        "wrong  settings: Any user can change HOME/config/overspill/config.yaml, and with it where your outputs are stored.",
        "       To fix it: chmod o-w HOME/config/overspill/config.yaml",
        "ok     secrets: Models see secrets that are in outputs.",
        "       To hide them, set redact: {shown: on} in your config file.",
        "wrong  settings: providers.lab.apiKeyEnv names NO_SUCH_KEY, and that environment variable is not set.",
        "       Set it wherever you start Overspill, and in your client.",
        "ok     store: HOME/store holds 0 sessions, 0 of them live, with 0 bytes of outputs.",
    ]
    assert result.out.endswith("Found 2 problems.\n")


def test_models_that_cannot_be_asked_are_wrong(place: Place, monkeypatch: pytest.MonkeyPatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GROQ_API_KEY", "s3cret")
    monkeypatch.setenv("LAB_KEY", "s3cret")
    Path("c.yaml").write_text(
        f"storeDir: {place.store}\n"
        "models: [foo/bar, builtin/lexical, groq/llama]\n"
        "extractionModel: openai/gpt-4.1\n"
        "toolOutput: {models: [lab/m, builtin/lexical, near/m]}\n"
        "providers: {lab: {apiKeyEnv: LAB_KEY}, near: {baseUrl: http://127.0.0.1:1/v1}}\n"
    )
    result = place.overspill("doctor", "--config", "c.yaml", "--set", "maxRunning=3")
    lines = [line for line in result.out.splitlines() if " store: " not in line]
    known = "anthropic, deepseek, google, groq, lab, mistral, near, ollama, openai, openrouter, xai"
    assert lines == [
        "ok     settings: c.yaml is used.",
        "ok     secrets: Models see secrets that are in outputs.",
        "       To hide them, set redact: {shown: on} in your config file.",
        "wrong  providers: The model endpoint 'lab' has no base URL. Give it one, like http://127.0.0.1:8080/v1.",
        "ok     providers: near is configured. Nothing was sent to it.",
        f"wrong  models: No model provider is called 'foo'. Known: {known}. "
        "For any other server, configure an endpoint called 'foo' of the kind openai-compatible with its base URL.",
        "wrong  models: builtin/lexical only extracts from stored outputs and cannot be asked. Name a model, as provider/model.",
        "ok     models: groq/llama is configured. Nothing was sent to it.",
        "ok     toolOutput.models: near/m is configured. Nothing was sent to it.",
        "wrong  extractionModel: No API key for 'openai': set OPENAI_API_KEY, or give the endpoint 'openai' a key.",
        "Found 4 problems.",
    ]
    assert (result.code, result.err, "s3cret" in result.out) == (1, "", False)


def test_settings_on_the_command_line_are_checked(place: Place):
    result = place.overspill("doctor", "--set", "toolOutput.models=gpt4")
    assert result.code == 1
    assert "wrong  settings: toolOutput.models has 'gpt4' on the command line. Name the provider too" in result.out
    result = place.overspill("doctor", "--set", "maxRunning=many")
    assert (result.code, result.out.splitlines()[0]) == (
        1,
        "wrong  settings: maxRunning is 'many' on the command line; allowed: a whole number of at least 1.",
    )
    assert place.overspill("doctor", "--preset", "artifacts").code == 0


def test_without_a_config_file_both_stores_are_checked(place: Place, monkeypatch: pytest.MonkeyPatch):
    (place.root / "config" / "overspill" / "config.yaml").unlink()
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    lines = place.overspill("doctor", "--json").out
    texts = [finding["text"] for finding in json.loads(lines)["findings"]]
    assert texts[0] == "No config file found; the defaults apply."
    lasting = place.root / ".local" / "state" / "overspill"
    assert f"{lasting} holds 0 sessions, 0 of them live, with 0 bytes of outputs." in texts
    assert any(text.startswith(f"{tempfile.gettempdir()} holds ") for text in texts)


@pytest.mark.parametrize("kind", ["file", "open"])
def test_an_unusable_or_unsafe_store_is_a_problem(place: Place, kind: str):
    if kind == "file":
        place.store.write_text("")
        expected = f"Nothing can be stored in {place.store}: {place.store} is not a folder."
    else:
        place.store.mkdir()
        place.store.chmod(0o777)
        expected = f"{place.store} is not safe: any user can remove what others store there."
    result = place.overspill("doctor")
    assert result.code == 1
    advice = "Set storeDir in your config file to a folder that you own."
    assert f"wrong  store: {expected}\n       {advice}\n" in result.out


def test_stored_outputs_are_counted_and_untrusted_folders_are_named(place: Place):
    (kept,) = place.keep(report="x" * 5000)
    store = FileStore(place.store)
    store.open_shelf("0193a1b2-0000-7000-8000-000000000001", retention="process")
    run = place.file(kept).parents[1]
    open_to_all = place.store / "overspill-000000000000"
    open_to_all.mkdir(mode=0o755)
    result = place.overspill("doctor")
    store.close()
    assert result.code == 1
    assert "store holds 2 sessions, 1 of them live, with 5 KB of outputs." in result.out
    assert f"wrong  store: {open_to_all} is refused: other users may enter it (mode 0755)." in result.out
    assert run.is_dir()


def test_leftovers_and_a_full_store_are_noted(place: Place):
    config = place.root / "config" / "overspill" / "config.yaml"
    config.write_text(f"storeDir: {place.store}\nkeepBytes: 1000\nmaxRunBytes: 5000\n")
    place.keep(report="x" * 5000)
    code = (
        "import os, sys; from pathlib import Path; from overspill.store.files.store import FileStore\n"
        f"FileStore(Path({str(place.store)!r})).open_shelf('0193a1b2-0000-7000-8000-000000000001', retention='process')\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
    result = place.overspill("doctor")
    assert f"note   store: {place.store} holds 2 sessions, 0 of them live, with 5 KB of outputs.\n" in result.out
    expected = "That is more than keepBytes. The next kept session removes what has been unused for a day, oldest first."
    assert f"       {expected}\n" in result.out
    assert "note   store: 1 session left behind by processes that ended without cleaning up.\n" in result.out
    assert f"wrong  store: {place.store} has room for only 5 KB, so large outputs will be cut.\n" in result.out


def test_a_client_whose_programs_may_get_results_is_named_until_you_choose(place: Place):
    (place.root / ".claude.json").write_text('{"mcpServers": {}}')

    def examine(*options: str) -> list[str]:
        findings = json.loads(place.overspill("doctor", "claude-code", "--json", *options).out)["findings"]
        return [finding["text"] for finding in findings if finding["about"] == "programs"]

    (said,) = examine()
    assert "set clients.claude-code.programs to whole" in said
    assert examine("--set", "clients.claude-code.programs=card") == []
    assert examine("--set", "programs=whole") == []
