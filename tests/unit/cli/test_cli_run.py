"""`overspill run` and `overspill snapshot` as a user calls them."""

from __future__ import annotations

import gzip
import json
import logging
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from commands import SOURCE, Place
from forked import Forked
from waiting import until

EXAMPLES = Path(__file__).parents[3] / "examples"


def calls(*made: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    return {"calls": [{"tool": tool, "args": args} for tool, args in made]}


REPORT = calls(("agent__final_report", {"content": "<ANSWER>"}))
SCRIPT = [calls(("count", {"upto": 3})), REPORT]
FUNCTIONS = """
import threading
def count(upto: int) -> str:
    print("printed by the function")
    return " ".join(map(str, range(upto)))
def hang(file: str) -> str:
    open(file, "w").close()
    threading.Event().wait()
async def slow(file: str) -> str:
    import anyio
    open(file, "w").close()
    await anyio.sleep(2)
    return "slept"
async def held(file: str) -> str:
    import anyio, os
    open(file, "w").close()
    while not os.path.exists("released"):
        await anyio.sleep(0.01)
    return "released"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Place:
    found = Place(tmp_path, monkeypatch, capsys)
    Path("f.py").write_text(FUNCTIONS)
    write("a.ai", "", SCRIPT)
    return found


def write(name: str, frontmatter: str, script: list[dict[str, Any]], prompt: str = "You count.") -> None:
    Path(f"{name}.json").write_text(json.dumps(script))
    Path(name).write_text(f"---\nmodels: scripted/{name}.json\nextractionModel: builtin/lexical\n{frontmatter}\n---\n{prompt}\n")


COUNT = ("--function", "f.py:count")
ONLY_SLOW = "asyncTimeoutSecs: 100\ntruncation: {overrides: {slow: {asyncTimeoutSecs: 0.05}}}"
"""So that no other tool goes to the background on a busy machine."""


def test_only_the_report_goes_to_standard_output(place: Place) -> None:
    result = place.overspill("run", "a.ai", "Count.", *COUNT)
    assert (result.code, result.out, result.err) == (0, "0 1 2\n", "printed by the function\n")


def test_verbose_reports_each_step(place: Place) -> None:
    result = place.overspill("run", "--agent", "a.ai", "Count.", "--function", "count=f.py:count", "-v")
    assert result.out == "0 1 2\n"
    assert [line.partition(" took")[0].partition(" answered")[0] for line in result.err.splitlines()] == [
        "overspill: a: turn 1 of 10, context 2%",
        "overspill: a: scripted/a.ai.json",
        "printed by the function",
        "overspill: a: count",
        "overspill: a: turn 2 of 10, context 2%",
        "overspill: a: scripted/a.ai.json",
        "overspill: a: agent__final_report",
    ]


def test_kept_and_cut_outputs_are_reported_without_a_terminal(place: Place) -> None:
    write("b.ai", "", [calls(("count", {"upto": 5000})), {"text": "one"}, {"text": "two"}])
    printed, ended = (
        "printed by the function\n",
        "overspill: warning: The model did not mark its answer as the final report. Its last answer is used.\n",
    )
    result = place.overspill("run", "b.ai", "x", *COUNT)
    assert result.err == f"{printed}overspill: Tool 'count' output stored for tool_output (size_cap).\n{ended}"
    result = place.overspill("run", "b.ai", "x", *COUNT, "--set", "toolOutput.enabled=false")
    assert (
        result.err == f"{printed}overspill: warning: Tool 'count' output cut to 12288 of 23889 characters (head_tail).\n{ended}"
    )
    result = place.overspill("run", "b.ai", "x", *COUNT, "-v")
    assert "; kept 24 KB as session-" in result.err
    assert "Tool 'count'" not in result.err
    assert logging.getLogger("overspill").handlers[1:] == []


@pytest.mark.promise("nothing-lost")
@pytest.mark.slow
def test_lone_surrogates_in_question_calls_and_report_are_preserved(place: Place) -> None:
    half = "half of one \ud83d"
    entry = {"id": half, "tool": "echo", "parameters": {"text": half}}
    write("b.ai", "", [calls(("agent__batch", {"calls": [entry]})), calls(("agent__final_report", {"content": half}))])
    Path("e.py").write_text("def echo(text: str) -> str:\n    return text\n")
    options = ("--function", "e.py:echo", "--snapshot", "s.gz", "--accounting", "a.jsonl")
    done = place.process("run", "b.ai", "caf\udce9", *options, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "half of one \ufffd\n".encode(), b"")
    shown = json.loads(place.overspill("snapshot", "show", "s.gz", "--json").out)
    assert (shown["question"], shown["report"]["content"]) == ("caf\udce9", half)
    assert json.loads(shown["messages"][2]["text"])["results"][0]["id"] == half
    assert [json.loads(line)["command"] for line in Path("a.jsonl").read_text().splitlines() if "command" in line] == [
        "echo", "batch", "final_report",
    ]  # fmt: skip
    assert json.loads(place.overspill("run", "b.ai", "x", "--function", "e.py:echo", "--json").out)["report"]["content"] == half


@pytest.mark.parametrize(
    "content", [{"opTree": {}}, {"opTree": {"turns": [7]}, "totals": {}}, {"opTree": None, "totals": {"cost": []}}]
)
def test_a_file_that_only_looks_like_a_snapshot_is_refused(place: Place, content: dict[str, Any]) -> None:
    Path("s.gz").write_bytes(gzip.compress(json.dumps({"version": 1, **content}).encode()))
    words = "overspill: error: s.gz is not a snapshot of this version of Overspill.\n"
    assert place.overspill("snapshot", "show", "s.gz") == (2, "", words)


def test_json_says_how_the_run_went(place: Place) -> None:
    result = place.overspill("run", "a.ai", "Count.", *COUNT, "--json")
    found = json.loads(result.out)
    assert (found["status"], found["report"], found["turns"], found["totals"]["calls"]) == (
        "reported", {"format": "markdown", "content": "0 1 2"}, 2, 2,
    )  # fmt: skip


def test_a_mistyped_model_on_the_command_line_is_not_skipped(place: Place) -> None:
    result = place.overspill("run", "a.ai", "Count.", *COUNT, "--model", "opnai/x", "--model", "scripted/a.ai.json")
    assert (result.code, result.out) == (2, "")
    assert result.err.startswith("overspill: error: No model provider is called 'opnai'. Did you mean 'openai'?")


def closed(place: Place, *args: str) -> tuple[int, bytes]:
    """Called as a shell does with `<&-`."""
    done = place.process(*args, capture_output=True, preexec_fn=lambda: os.close(0))
    return done.returncode, done.stderr.splitlines()[0]


@pytest.mark.slow
def test_a_closed_standard_input_is_a_mistake(place: Place) -> None:
    words = b"overspill: error: Standard input is closed."
    assert closed(place, "run", "a.ai") == (2, words)
    assert closed(place, "extract", "what") == (2, words)


@pytest.mark.slow
def test_a_mistake_in_the_agent_file_comes_before_a_missing_question(place: Place) -> None:
    for options in ((), ("--set", "maxTurns=2")):
        code, words = closed(place, "run", "missing.ai", *options)
        assert (code, b"missing.ai" in words, b"question" in words) == (2, True, False)
    Path("bad.ai").write_text("---\nmaxTurns: many\n---\nDo it.\n")
    code, words = closed(place, "run", "bad.ai")
    assert (code, b"maxTurns is 'many'" in words) == (2, True)


@pytest.mark.slow
def test_the_question_may_come_from_standard_input(place: Place) -> None:
    done = place.process("run", "--agent", "a.ai", *COUNT, "--snapshot", "s.gz", input=b"Count to 3.\n", capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"0 1 2\n")
    assert json.loads(gzip.decompress(Path("s.gz").read_bytes()))["question"] == "Count to 3.\n"
    done = place.process("run", "a.ai", "-", input=b"\xff", capture_output=True)
    assert (done.returncode, b"Standard input is not UTF-8 text." in done.stderr) == (2, True)


@pytest.mark.parametrize(
    ("options", "key", "value"),
    [
        (["--tool-response-max-bytes", "1"], "kept", 1),
        (["--set", "toolResponseMaxBytes=1"], "kept", 1),
        (["--override", "toolResponseMaxBytes=1"], "kept", 1),
        (["--preset", "artifacts"], "kept", 0),
        ([], "kept", 0),
    ],
)
def test_the_command_line_sets_keys(place: Place, options: list[str], key: str, value: int) -> None:
    result = place.overspill("run", "a.ai", "Count.", *COUNT, "--json", *options)
    assert json.loads(result.out)["totals"][key] == value


@pytest.mark.slow
def test_async_can_be_turned_off_and_on(place: Place) -> None:
    write("slow.ai", "asyncTimeoutSecs: 0.05", [calls(("slow", {"file": "begun"})), REPORT])
    slow = ("run", "slow.ai", "x", "--function", "f.py:slow")
    for options, is_background in (((), True), (("--no-async",), False), (("--no-async", "--async"), True)):
        result = place.overspill(*slow, *options)
        assert result.out == "slept\n"  # nothing else was called, so the turn waited for it
        assert ("output stored for tool_output (background)" in result.err) is is_background


def test_models_on_the_command_line_replace_the_configured_ones(place: Place) -> None:
    Path("other.json").write_text('[{"text": "by another"}]')
    result = place.overspill("run", "a.ai", "Count.", "--model", "scripted/other.json")
    assert (result.out, result.err) == (
        "by another\n",
        "overspill: warning: The model did not mark its answer as the final report. Its last answer is used.\n",
    )


def test_a_named_config_gives_functions(place: Place) -> None:
    Path("own.yaml").write_text("functions: {count: f.py:count}")
    write("b.ai", "tools: count", SCRIPT)
    assert place.overspill("run", "b.ai", "Count.", "--config", "own.yaml").out == "0 1 2\n"
    assert place.overspill("run", "b.ai", "Count.").code == 2


def test_a_run_without_a_report_prints_only_an_error(place: Place) -> None:
    write("b.ai", "maxTurns: 1", [{"text": ""}] * 3)
    result = place.overspill("run", "b.ai", "x", "--snapshot", "s.gz", "--accounting", "acc.jsonl")
    assert result == (1, "", "overspill: error: The model gave no final report, even when asked for nothing else.\n")
    assert len(Path("acc.jsonl").read_text().splitlines()) == 3
    result = place.overspill("snapshot", "show", "s.gz")
    assert result.out == (
        "b (unreported, 1 turn, 0 calls, 0 kept, 0 tokens in, 0 out)\n"
        "├── The model gave no final report, even when asked for nothing else.\n"
        "├── there are no turns left.\n"
        "└── turn 1 of 1 (0.0s, final: there are no turns left.)\n"
        "    ├── model scripted/b.ai.json (0.0s)\n"
        "    ├── model scripted/b.ai.json (0.0s)\n"
        "    └── model scripted/b.ai.json (0.0s)\n"
    )


def test_a_run_whose_model_fails_has_its_own_exit_code_and_a_snapshot(place: Place) -> None:
    write("b.ai", "", [{"calls": [{"tool": "count", "args": {"upto": 1}}]}])
    result = place.overspill("run", "b.ai", "x", *COUNT, "--snapshot", "s.gz")
    assert result.code == 3
    assert result.err.endswith("overspill: error: scripted/b.ai.json has 1 answer and was asked once more.\n")
    found = json.loads(place.overspill("snapshot", "show", "s.gz", "--json").out)
    assert (found["status"], [turn["turn"] for turn in found["opTree"]["turns"]]) == ("failed", [1, 2])


def test_an_early_report_is_explained(place: Place) -> None:
    result = place.overspill("run", "a.ai", "x", *COUNT, "--set", "maxTurns=2")
    assert result.err.endswith("overspill: warning: The agent had to report early: there are no turns left.\n")


def test_a_snapshot_shows_kept_outputs_extractions_agents_and_background_jobs(place: Place) -> None:
    Path("below.json").write_text('[{"calls": [{"tool": "agent__final_report", "args": {"content": "below"}}]}]')
    Path("below.ai").write_text("---\nmodels: scripted/below.json\n---\nx")
    write(
        "b.ai",
        f"agents: below.ai\n{ONLY_SLOW}",
        [
            {"calls": [{"tool": "count", "args": {"upto": 5000}}, {"tool": "slow", "args": {"file": "x"}}]},
            {"calls": [{"tool": "tool_output", "args": {"handle": "<HANDLE>", "extract": "4711"}}]},
            {"calls": [{"tool": "agent__below", "args": {"prompt": "x"}}, {"tool": "nothing"}]},
            {"calls": [{"tool": "wait_for_tool_output"}]},
            {"text": "one"},
            {"text": "two"},
        ],
    )
    place.overspill(
        "run", "b.ai", "x", *COUNT, "--function", "f.py:slow", "--snapshot", "s.gz", "--set", "asyncTokenThreshold=null"
    )
    shown = place.overspill("snapshot", "show", "s.gz").out
    for part in (
        "b (reported, 6 turns, ",
        ", kept as session-",
        "session tool_output (",
        "built-in engine",
        "session agent__below (",
        "below (reported, 1 turn, ",
        "tool nothing (0.0s, failed)",
        "in the background, kept as session-",
    ):
        assert part in shown


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run"], "No agent file. Usage: overspill run FILE QUESTION."),
        (["run", "a.ai", "x", "y"], "Expected one question, but got 2 arguments. Put the question in quotes."),
        (["run", "a.ai", " "], "No question. Pass it as an argument or on standard input."),
        (["run", "missing.ai", "x"], "overspill: error: missing.ai cannot be read: No such file or directory."),
        (["run", "a.ai", "x", "--set", "maxTurn=1"], "Unknown key 'maxTurn' on the command line. Did you mean 'maxTurns'?"),
        (["run", "a.ai", "x", "--override", "maxTurns"], "--override maxTurns has no value. Write --override maxTurns=VALUE."),
        (["run", "a.ai", "x", "--tool-response-max-bytes", "-1"], "toolResponseMaxBytes is -1 on the command line; allowed:"),
        (["run", "a.ai", "x", "--snapshot", "no/where.gz"], "The folder of no/where.gz does not exist. Create it first."),
        (["run", "a.ai", "x", "--function", "f.py:nothing"], "but f.py has no function 'nothing'."),
        (
            ["run", "a.ai", "x", "--function", "f.py:count", "--function", "other/f.py:count"],
            "--function other/f.py:count: another function is already called count. "
            "Choose a name: --function NAME=other/f.py:count.",
        ),
        (["run", "a.ai", "x", "--model", "gpt"], "models has 'gpt' on the command line. Name the provider too"),
        (["snapshot", "show", "missing.gz"], "Could not read the snapshot missing.gz: No such file or directory."),
        (["snapshot", "show", "f.py"], "Could not read the snapshot f.py: it is not a gzip file."),
        (["snapshot", "show", "empty.gz"], "empty.gz is not a snapshot of this version of Overspill."),
        (["snapshot", "show", "torn.gz"], "Could not read the snapshot torn.gz: it is damaged or not a snapshot."),
    ],
)
def test_mistakes_are_reported_in_one_line(place: Place, args: list[str], message: str) -> None:
    Path("empty.gz").write_bytes(gzip.compress(b"{}"))
    Path("torn.gz").write_bytes(gzip.compress(b"{}" * 100)[:-12])
    result = place.overspill(*args)
    assert result.code == 2
    assert message in result.err.replace("\n", " ")
    assert "Traceback" not in result.err


def test_unwritable_files_are_reported_after_the_report(place: Place) -> None:
    Path("folder").mkdir()
    long = "s" * 250  # as it is it may be, but not with what a file beside it has in its name
    result = place.overspill("run", "a.ai", "x", *COUNT, "--snapshot", long)
    assert (result.code, result.out) == (2, "0 1 2\n")
    assert f"Could not write the snapshot {long}: File name too long." in result.err
    result = place.overspill("run", "a.ai", "x", *COUNT, "--accounting", "folder")
    assert (result.code, "Could not write the accounting file folder: Is a directory." in result.err) == (2, True)


def test_a_snapshot_replaces_only_a_snapshot(place: Place) -> None:
    Path("notes.gz").write_bytes(gzip.compress(b"mine"))
    os.mkfifo("pipe")
    Path("folder").mkdir()
    for name in ("f.py", "notes.gz", "pipe", "folder"):
        words = f"overspill: error: {name} already exists and is not a snapshot. Choose another name.\n"
        assert place.overspill("run", "a.ai", "x", *COUNT, "--snapshot", name) == (2, "", words)
    assert (Path("f.py").read_text(), gzip.decompress(Path("notes.gz").read_bytes())) == (FUNCTIONS, b"mine")
    Path("s.gz").touch()
    for question in ("first", "second"):
        assert place.overspill("run", "a.ai", question, *COUNT, "--snapshot", "s.gz").code == 0
        assert json.loads(gzip.decompress(Path("s.gz").read_bytes()))["question"] == question


HANGING = [calls(("hang", {"file": "begun"})), {"text": "never"}]
HELD = [calls(("held", {"file": "begun"})), calls(("held", {"file": "x"})), {"text": "As far as I got."}]
PIPES = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}


def started(*args: str, **options: Any) -> subprocess.Popen[bytes]:
    process = Forked(["run", *args], **options)
    anyio.run(until, lambda: Path("begun").exists() or process.poll() is not None, 60)
    assert process.poll() is None
    return process


@pytest.mark.usefixtures("place")
def test_ctrl_c_once_asks_for_the_report() -> None:
    write("b.ai", "asyncTimeoutSecs: 100", HELD)
    process = started("b.ai", "x", "--function", "f.py:held", **PIPES)
    process.send_signal(signal.SIGINT)
    assert process.stderr is not None
    stopping = b"overspill: Stopping: running tools finish, then the agent reports. Press Ctrl-C again to abort.\n"
    assert process.stderr.readline() == stopping
    Path("released").touch()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, b"As far as I got.\n")
    assert b"The agent had to report early: the user asked to stop." in err


@pytest.mark.slow
@pytest.mark.parametrize(("signals", "code"), [([signal.SIGINT, signal.SIGINT], 130), ([signal.SIGTERM], 143)])
@pytest.mark.usefixtures("place")
def test_ctrl_c_twice_or_a_termination_aborts_and_leaves_a_snapshot(signals: list[signal.Signals], code: int) -> None:
    write("b.ai", "asyncTimeoutSecs: 100", HANGING)
    process = started("b.ai", "x", "--function", "f.py:hang", "--snapshot", "s.gz", **PIPES)
    assert process.stderr is not None
    process.send_signal(signals[0])
    if len(signals) == 2:
        assert process.stderr.readline().startswith(b"overspill: Stopping")
        process.send_signal(signals[1])
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (code, b"", b"overspill: error: The run was aborted.\n")
    found = json.loads(gzip.decompress(Path("s.gz").read_bytes()))
    assert (found["status"], len(found["opTree"]["turns"])) == ("aborted", 1)


@pytest.mark.usefixtures("place")
def test_a_terminal_shows_the_run_live() -> None:
    first = calls(("count", {"upto": 5000}), ("slow", {"file": "begun"}), ("agent__task_status", {"now": "Counting"}))
    write("b.ai", ONLY_SLOW, [first, calls(("wait_for_tool_output", {})), REPORT])
    ours, theirs = pty.openpty()
    process = started("b.ai", "x", *COUNT, "--function", "slow=f.py:held", stdout=subprocess.PIPE, stderr=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            shown += os.read(ours, 65536)
        except OSError:  # by which a pseudo-terminal says that nobody is there any more
            break
        if b"wait_for_tool_output " in shown:
            Path("released").touch()
    os.close(ours)
    out, _ = process.communicate(timeout=30)
    assert out.startswith(b"Completed tools:")
    for part in (b"b: turn 2 of 10, context ", b"wait_for_tool_output ", b"kept 24 KB as", b"Counting"):
        assert part in shown
    assert b"overspill: Tool 'slow' output stored for tool_output (background)." in shown
    assert b"Tool 'count' output stored" not in shown


@pytest.mark.usefixtures("place")
@pytest.mark.slow
def test_an_agent_without_servers_loads_no_framework() -> None:
    code = (
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from overspill.cli import main; main(['run', 'a.ai', 'x', '--function', 'f.py:count'])"
    )
    env = {**os.environ, "PYTHONPATH": str(SOURCE)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "0 1 2\n"
    assert set(done.stderr.split()) & {"mcp", "mcp_types", "pydantic", "pydantic_ai", "jsonschema", "httpx2"} == set()


@pytest.mark.parametrize(
    ("module", "frontmatter", "words"),
    [
        ("mcp", "tools: [files]", "An agent with MCP servers needs the package mcp"),
        ("jsonschema", "output: {format: json, schema: {type: object}}", "output.schema needs the package jsonschema"),
    ],
)
@pytest.mark.slow
def test_a_missing_package_of_an_agent_is_named(place: Place, module: str, frontmatter: str, words: str) -> None:
    write("b.ai", frontmatter, SCRIPT)
    Path("c.yaml").write_text("mcpServers: {files: {command: cat}}\n")
    extra = "mcp" if module == "mcp" else "agent"
    end = f"which is not installed or too old. In a clone of Overspill: `pip install '.[{extra}]'`."
    assert place.without(module, "run", "b.ai", "x", "--config", "c.yaml") == (2, "", f"overspill: error: {words}, {end}\n")


@pytest.mark.parametrize("folder", [EXAMPLES.parent, EXAMPLES, Path("/")])
def test_the_example_that_runs_anywhere_runs(place: Place, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.chdir(folder)
    agent, config = (os.path.relpath(EXAMPLES / name) for name in ("scripted.ai", "config.yaml"))
    result = place.overspill("run", agent, "Why?", "--config", config)
    assert (result.code, result.err) == (
        0,
        "overspill: Tool 'deployment_log' output stored for tool_output (size_cap).\n",
    )
    assert result.out.startswith("The database had no space left: the migration could not write")
    assert "ERROR migration 0042 failed: could not extend file: No space left on device" in result.out


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.ai")), ids=lambda path: path.name)
def test_every_example_needs_nothing_but_a_key(place: Place, monkeypatch: pytest.MonkeyPatch, example: Path) -> None:
    monkeypatch.chdir(EXAMPLES.parent)
    for name in ("ANTHROPIC_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    result = place.overspill("run", str(example), "x", "--config", "examples/config.yaml")
    if example.name != "scripted.ai":
        assert (result.code, result.out) == (2, "")
        assert result.err.startswith("overspill: error: No API key for 'anthropic': set ANTHROPIC_API_KEY")
