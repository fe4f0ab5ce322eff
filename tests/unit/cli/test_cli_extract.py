"""`overspill extract`: a file or a stream in, the parts that answer out, nothing left behind."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from contextlib import redirect_stderr, redirect_stdout
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import anyio
import pytest
from commands import on_a_terminal
from forked import run as run_forked
from waiting import list_paths, until

from overspill.cli import main
from overspill.cli.settings import endpoints
from overspill.errors import SettingsError
from overspill.settings import Settings

RUN = "from overspill.cli import main; main()"
LOG = "".join(f"INFO step {i} done\n" for i in range(3000)) + "ERROR step 3000 failed: no space left on device\n"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "home").mkdir()
    (tmp_path / "temp").mkdir()
    (tmp_path / "build.log").write_text(LOG)
    return tmp_path


def command(place: Path, *args: str) -> tuple[list[str], dict[str, str]]:
    home = {"HOME": str(place / "home"), "XDG_CONFIG_HOME": str(place / "home"), "TMPDIR": str(place / "temp")}
    environ = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return [sys.executable, "-c", RUN, "extract", *args], {**environ, **home}


def process(place: Path, *args: str, stdin: str = "", is_forked: bool = True) -> subprocess.CompletedProcess[str]:
    line, env = command(place, *args)
    if is_forked:
        return run_forked(line[3:], env=env, cwd=place, input=stdin, capture_output=True, text=True)
    return subprocess.run(line, env=env, cwd=place, input=stdin, capture_output=True, text=True, timeout=60, check=False)


def run(place: Path, *args: str) -> subprocess.CompletedProcess[str]:
    """The same without the second that a process takes to start, where it is not about streams or signals."""
    line, env = command(place, *args)
    out, err = io.TextIOWrapper(io.BytesIO()), io.TextIOWrapper(io.BytesIO())
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name in os.environ.keys() - env.keys():
            patch.delenv(name)
        for name, value in env.items():
            patch.setenv(name, value)
        patch.setattr(tempfile, "tempdir", env["TMPDIR"])
        patch.chdir(place)
        with pytest.raises(SystemExit) as end:
            main(line[3:])
    for stream in (out, err):
        stream.flush()
        stream.seek(0)
    return subprocess.CompletedProcess(line, int(str(end.value.code)), out.read(), err.read())


def test_a_file_is_searched(place: Path):
    done = process(place, "why did step 3000 fail", "build.log", "--max-tokens", "300", is_forked=False)
    assert done.returncode == 0
    assert "ERROR step 3000 failed: no space left on device" in done.stdout
    assert done.stderr == ""
    assert list((place / "temp").iterdir()) == []


def test_standard_input_is_searched(place: Path):
    done = process(place, "why did step 3000 fail", stdin=LOG)
    assert "no space left on device" in done.stdout


def test_json_gives_the_position_of_every_excerpt(place: Path):
    found = json.loads(run(place, "why did step 3000 fail", "build.log", "--json").stdout)
    assert found["model"] == "builtin/lexical"
    assert found["source_size_bytes"] == len(LOG)
    for excerpt in found["excerpts"]:
        assert LOG[excerpt["start_byte"] : excerpt["end_byte"]] == excerpt["text"]


def test_no_match_is_reported_with_exit_code_1(place: Path):
    done = run(place, "zebra crossing regulations", "build.log")
    words = "No match in build.log. Try words that appear in it, or ask a model with --model."
    assert (done.returncode, done.stdout, done.stderr) == (1, "", f"overspill: {words}\n")
    done = process(place, "zebra crossing regulations", stdin="")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "overspill: Standard input is empty.\n")


class Nowhere(BaseHTTPRequestHandler):
    """A model that finds nothing."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        said = "NO RELEVANT DATA FOUND\nOnly steps."
        choice = {"index": 0, "message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
        data = json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.mark.slow
def test_a_model_that_finds_nothing_gives_no_answer(place: Path):
    with ThreadingHTTPServer(("127.0.0.1", 0), Nowhere) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        served = f"providers.lab.baseUrl=http://127.0.0.1:{server.server_address[1]}/v1"
        done = run(place, "who paid", "build.log", "--model", "lab/m", "--set", served, "--mode", "full-chunked")
        server.shutdown()
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("overspill: lab/m found no answer in build.log. Searched: ")
    assert done.stderr.endswith(" What is there: Only steps.\n")


def test_truncate_shows_both_ends(place: Path):
    done = run(place, "anything", "build.log", "--mode", "truncate", "--max-tokens", "100")
    assert done.stdout.startswith("INFO step 0 done\n")
    assert "lines / " in done.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("why", "none.log"), "overspill: error: none.log cannot be read: No such file or directory.\n"),
        (
            (" ", "build.log"),
            "overspill: error: What to extract is missing: say in words what you need from the stored output.\n",
        ),
    ],
)
def test_a_mistake_is_one_line(place: Path, args: tuple[str, ...], message: str):
    done = run(place, *args)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


@pytest.mark.parametrize("args", [("why", "build.log", "--mode", "magic"), ("why", "build.log", "--max-tokens", "0"), ()])
def test_a_mistyped_option_shows_the_usage(place: Path, args: tuple[str, ...]):
    done = run(place, *args)
    assert done.returncode == 2
    assert done.stderr.startswith("overspill: error: ")
    assert "\n\nUsage: overspill extract [OPTIONS] WHAT [FILES]...\n" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("gpt4", "'gpt4' is not a model. Name it provider/model, like anthropic/claude-sonnet-4-5."),
        (
            "opnai/gpt-4o",
            "No model provider is called 'opnai'. Did you mean 'openai'? "
            "Known: anthropic, deepseek, google, groq, mistral, ollama, openai, openrouter, xai. "
            "For any other server, configure an endpoint called 'opnai' of the kind openai-compatible with its base URL.",
        ),
    ],
)
def test_a_mistyped_model_is_a_mistake(place: Path, model: str, words: str):
    done = run(place, "why did step 3000 fail", "build.log", "--model", "builtin/lexical", "--model", model)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"overspill: error: {words}\n")


NO_KEY = "No API key for 'openai': set OPENAI_API_KEY, or give the endpoint 'openai' a key. The built-in engine answered instead."


@pytest.mark.parametrize(
    "option", ["--model=openai/gpt-4o", "--set=toolOutput.models=openai/gpt-4o", "--set=extractionModel=openai/gpt-4o"]
)
@pytest.mark.slow
def test_the_engine_answers_for_a_model_without_a_key_and_says_why(place: Path, option: str):
    done = run(place, "why did step 3000 fail", "build.log", option)
    assert (done.returncode, done.stderr) == (0, f"overspill: warning: {NO_KEY}\n")
    assert "no space left on device" in done.stdout
    found = json.loads(run(place, "why did step 3000 fail", "build.log", option, "--json").stdout)
    assert (found["model"], found["warnings"]) == ("builtin/lexical", [NO_KEY])


def test_the_engine_is_named_only_if_it_answered(place: Path):
    done = run(place, "anything", "build.log", "--model", "openai/gpt-4o", "--mode", "truncate", "--max-tokens", "100")
    assert (done.returncode, done.stderr) == (0, "")
    done = run(place, "anything", "build.log", "--model", "openai/gpt-4o", "--set", "extractionFallback=truncate")
    assert done.stderr.startswith(
        "overspill: warning: full-chunked extraction failed: The document could not be read. No API key for 'openai'"
    )


ENDINGS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]


@pytest.mark.parametrize(("ending", "code"), ENDINGS)
@pytest.mark.slow
def test_ctrl_c_and_a_termination_leave_nothing_behind(place: Path, ending: signal.Signals, code: int):
    line, env = command(place, "why")
    with subprocess.Popen(
        line, env=env, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin
        process.stdin.write(b"x" * (4 << 20))  # more than a pipe holds: it is being read
        process.stdin.flush()
        process.send_signal(ending)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == code
    assert b"Traceback" not in errors
    assert list((place / "temp").iterdir()) == []


def is_as_large(file: Path, size: int) -> bool:
    try:
        return file.stat().st_size == size
    except FileNotFoundError:  # a file for a moment
        return False


@pytest.mark.parametrize(("ending", "code"), ENDINGS)
@pytest.mark.slow
def test_neither_waits_for_a_running_search(place: Path, ending: signal.Signals, code: int):
    (place / "large.log").write_text(LOG * 600)  # 35 MB: seconds of work
    temp = place / "temp"
    line, env = command(place, "why", "large.log")
    with subprocess.Popen(line, env=env, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        whole = (place / "large.log").stat().st_size
        anyio.run(until, lambda: any(is_as_large(file, whole) for file in list_paths(temp)))
        process.send_signal(ending)
        anyio.run(until, lambda: not any(temp.iterdir()))
        process.send_signal(ending)  # somebody who cannot wait
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (code, b"")


@pytest.mark.slow
def test_a_termination_also_ends_what_a_script_started_in_the_background(place: Path):
    """There, Ctrl-C is ignored."""
    line, env = command(place, "why")
    shell = ["sh", "-c", 'trap "" INT; exec "$@"', "sh", *line]
    with subprocess.Popen(shell, env=env, cwd=place, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdin
        process.stdin.write(b"x" * (4 << 20))
        process.stdin.flush()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (143, b"")
    assert list((place / "temp").iterdir()) == []


@pytest.mark.slow
def test_one_ctrl_d_ends_typed_input(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(place))
    code, seen = on_a_terminal("extract", "hello", "--color", "never", answer=b"hello world\n\x04", asked=b"end with Ctrl-D.")
    assert code == 0
    assert "[L1]\r\nhello world\r\n(matched 1 record, all shown)\r\n" in seen
    assert "None" not in seen  # of chunks, before anybody knows how many there are


def test_ctrl_c_ends_the_wait_for_typed_input(place: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.setenv("TMPDIR", str(place / "temp"))
    code, seen = on_a_terminal("extract", "hello", answer=signal.SIGINT, asked=b"end with Ctrl-D.")
    assert (code, "Traceback" in seen) == (130, False)
    assert list((place / "temp").iterdir()) == []


def test_an_answer_says_that_only_part_of_the_input_was_searched(place: Path):
    done = run(place, "no space left", "build.log", "--set", "maxRunBytes=20000")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        "overspill: warning: Only the first 20,000 bytes of this output are stored: "
        "The quota of 20,000 bytes for this run is used up: "
        f"{(place / 'build.log').stat().st_size - 20_000:,} bytes could not be stored. "
        "What was stored before is still there; close sessions or delete outputs to make room.\n"
        "overspill: No match in the part of build.log that was searched. "
        "Try words that appear in it, or ask a model with --model.\n"
    )


def test_an_answer_that_does_not_fit_is_reported(place: Path):
    done = run(place, "why did step 3000 fail", "build.log", "--max-tokens", "1")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "overspill: build.log has an answer that does not fit into 1 tokens. Raise --max-tokens.\n"


def test_settings_name_the_endpoint_and_the_key_of_a_model():
    settings = Settings(providers={"local": {"baseUrl": "http://127.0.0.1:8080/v1", "apiKeyEnv": "LOCAL_KEY", "timeout": 5}})
    found = endpoints(settings, {"LOCAL_KEY": "secret", "OPENAI_API_KEY": "other"})
    local = found["local"]
    assert (local.kind, local.base_url, local.api_key, local.timeout) == (
        "openai-compatible", "http://127.0.0.1:8080/v1", "secret", 5.0,
    )  # fmt: skip
    assert found["openai"].api_key == "other"


def test_a_missing_key_is_named():
    with pytest.raises(SettingsError) as caught:
        endpoints(Settings(providers={"local": {"apiKeyEnv": "LOCAL_KEY"}}), {})
    assert str(caught.value) == "providers.local.apiKeyEnv names LOCAL_KEY, and that environment variable is not set."
