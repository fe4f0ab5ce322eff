"""One resident process serves every conversation, and nobody notices."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from http.cookiejar import CookieJar
from pathlib import Path
from urllib.request import HTTPCookieProcessor, build_opener

import pytest
from hubs import ENVIRON, SMALL, HubFront, HubHome, hub_home
from slow import slow
from upstream import is_alive
from waiting import wait_until
from wire import EVERY, OVERSPILL, PATIENCE, every

LARGE = {"count": 5000}


@pytest.fixture
def home() -> Iterator[HubHome]:
    with hub_home() as found:
        yield found


def test_a_front_answers_as_a_proxy_does_and_ends_with_its_client(home: HubHome):
    with home.front_started() as client:
        assert client.hello()["serverInfo"]["name"] == "every"
        assert {"say", "get_tool_output"} <= set(client.names())
        assert client.text("lines", {"count": 1}) == SMALL
        server = int(client.text("pid"))
        assert client.end() == 0
    assert b"error" not in client.errors
    assert home.pid()
    home.overspill("hub", "stop")
    home.wait_until_gone()
    assert not is_alive(server)


def test_two_fronts_that_start_at_the_same_time_start_one_hub(home: HubHome):
    with home.front() as one, home.front() as other:
        one.hello()
        other.hello()
        found = home.status()
        assert found is not None
        assert len(found["fronts"]) == 2
    assert Path(home.place.log).read_text().count("listens at") == 1


def test_only_the_owner_can_open_the_socket(home: HubHome):
    with home.front() as client:
        client.hello()
        modes = [oct(os.stat(path).st_mode & 0o777) for path in (home.place.folder, home.place.socket, home.place.lock)]
        assert modes == ["0o700", "0o600", "0o600"]
        assert oct(os.stat(home.place.log).st_mode & 0o777) == "0o600"


def test_a_hub_has_no_variable_of_a_client_in_its_own_environment(home: HubHome):
    with home.front_started(server=[sys.executable, str(EVERY), "legacy", "every"], MY_VALUE="hunter2") as client:
        client.hello()
        assert b"hunter2" not in Path(f"/proc/{home.pid()}/environ").read_bytes()


@pytest.mark.slow
def test_a_python_without_ctypes_has_a_hub_too(home: HubHome, tmp_path: Path):
    (tmp_path / "sitecustomize.py").write_text("import sys; sys.modules['_ctypes'] = None")
    home.env["PYTHONPATH"] = f"{tmp_path}:{home.env['PYTHONPATH']}"
    with home.front_started() as client:
        client.hello()
        assert client.text("lines", {"count": 1}) == SMALL
        assert home.pid()
    assert client.errors == b""


def test_each_front_has_its_own_folder_and_environment(home: HubHome, tmp_path: Path):
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
        (folder / "server.py").write_text(ENVIRON)
        (folder / "mcp.json").write_text(
            json.dumps({"mcpServers": {"e": {"command": sys.executable, "args": ["server.py", "${WHOSE}"]}}})
        )
    fronts = [home.front(server=[sys.executable, "server.py"], cwd=folder, WHOSE=folder.name) for folder in folders]
    with fronts[0], fronts[1]:
        for front in fronts:
            front.hello()
        seen = [json.loads(front.text("where")) for front in fronts]
    assert seen == [[str(folder), folder.name, []] for folder in folders]


def test_a_config_file_is_found_from_where_the_client_is(home: HubHome, tmp_path: Path):
    (tmp_path / "server.py").write_text(ENVIRON)
    entry = {"command": sys.executable, "args": ["server.py", "${WHOSE}"]}
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": {"e": entry}}))
    command = [sys.executable, "-c", "from overspill.cli import main; main()", "proxy", "--config", "mcp.json"]
    with HubFront(command, {**home.env, "WHOSE": "mine"}, tmp_path) as client:
        client.hello()
        assert json.loads(client.text("where")) == [str(tmp_path), "mine", ["mine"]]


def test_a_mistake_comes_back_as_standard_error_and_exit_code(home: HubHome):
    with home.front("--url", "https://example.com") as client:
        assert client.process.wait(30) == 2
    assert b"Give exactly one of" in client.errors
    with home.front("--nmae", "x") as client:
        assert client.process.wait(30) == 2
    assert b"No such option '--nmae'" in client.errors


def test_a_hub_that_is_killed_in_a_call_is_replaced_and_the_client_learns_it(home: HubHome):
    with home.front("--set", "truncation.overrides.wait.asyncTimeoutSecs=600") as client:
        client.hello()
        handle = client.call("lines", LARGE)["content"][-1]["uri"]
        call = client.begin("tools/call", {"name": "wait", "arguments": {"until": "never"}})
        first = int(client.text("pid"))
        home.kill()
        assert "The Overspill hub ended while it worked on this request" in client.answer(call)["error"]["message"]
        assert int(client.text("pid")) != first
        assert client.result("resources/read", {"uri": handle})["contents"][0]["text"]


def test_a_front_that_is_killed_ends_its_session_and_its_servers(home: HubHome):
    with home.front() as stays, home.front() as client:
        stays.hello()
        client.hello()
        server = int(client.text("pid"))
        client.process.send_signal(signal.SIGKILL)
        client.process.wait()
        while is_alive(server):
            stays.call("pid")
        wait_until(lambda: len((home.status() or {"fronts": ()})["fronts"]), lambda fronts: fronts == 1)


def test_a_hub_ends_when_nobody_needs_it(home: HubHome):
    hub = subprocess.Popen(
        [sys.executable, "-c", "from overspill.cli import main; main()", "hub", "run", "--idle-minutes", "0.01"],
        env=home.env,
        stderr=subprocess.PIPE,
    )
    assert hub.stderr is not None
    assert b"listens at" in hub.stderr.readline()
    with home.front() as client:
        client.hello()
        assert client.text("lines", {"count": 1}) == SMALL
    assert hub.wait(30) == 0
    hub.stderr.close()
    assert not os.path.exists(home.place.socket)


@pytest.mark.slow
def test_a_hub_takes_no_more_clients_than_it_can_open_files_for(home: HubHome):
    limit = "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (96, 96)); from overspill.cli import main; main()"
    with ExitStack() as opened:
        hub = opened.enter_context(
            subprocess.Popen([sys.executable, "-c", limit, "hub", "run"], env=home.env, stderr=subprocess.PIPE)
        )
        opened.callback(hub.terminate)
        assert hub.stderr is not None
        assert b"listens at" in hub.stderr.readline()
        fronts = [opened.enter_context(home.elsewhere()) for _ in range(12)]
        for front in fronts:
            front.hello()
            assert front.call("lines", LARGE)["content"][-1]["type"] == "resource_link"
        assert any(b"as many as it can" in front.errors for front in fronts)


def test_restarting_the_hub_lets_calls_end_and_keeps_conversations(home: HubHome):
    with home.front() as client:
        client.hello()
        before = home.pid()
        assert home.overspill("hub", "restart").stdout == "The hub has ended. The next call starts another.\n"
        assert client.text("lines", {"count": 1}) == SMALL
        assert home.pid() != before


def test_stopping_the_hub_ends_its_fronts(home: HubHome):
    with home.front() as client:
        client.hello()
        assert home.overspill("hub", "stop").stdout == "The hub has stopped.\n"
        assert client.process.wait(30) == 1
    assert b"The hub was stopped." in client.errors
    assert home.overspill("hub", "status").stdout == "No hub is running.\n"


def test_a_proxy_works_alone_once_the_hub_is_turned_off_until_it_is_turned_on(home: HubHome):
    assert "To undo: " in home.overspill("hub", "off").stdout
    with home.front() as client:
        client.hello()
        assert home.status() is None
    assert client.errors == b""
    assert "Restart your clients." in home.overspill("hub", "on").stdout
    with home.front() as client:
        client.hello()
        found = home.status()
        assert found is not None
        assert len(found["fronts"]) == 1
        assert "hub: A hub is running: process" in home.overspill("doctor").stdout


def test_doctor_stats_and_the_viewer_say_what_a_hub_holds(home: HubHome):
    assert "Hub" not in home.overspill("stats").stdout
    with home.front("--name", "mine") as front:
        front.hello()
        server = int(front.text("pid"))
        held = rf"process {home.client}.*mine: process {server}, [0-9.]+ MB"
        assert re.search(held, home.overspill("doctor").stdout, re.DOTALL)
        stats = home.overspill("stats").stdout
        assert re.search(rf"Hub\s+process {home.pid()}, version", stats)
        assert re.search(held, stats, re.DOTALL)
        page = view_sessions(home)
        assert f"process {home.pid()}, version" in page
        assert re.search(held, page, re.DOTALL)


def view_sessions(home: HubHome) -> str:
    """The first page of `overspill view`, as a browser gets it."""
    viewer = subprocess.Popen([*OVERSPILL, "view"], env=home.env, stderr=subprocess.PIPE, text=True)
    assert viewer.stderr
    try:
        link = next(line for line in viewer.stderr if "http://" in line).split()[-1]
        browser = build_opener(HTTPCookieProcessor(CookieJar()))
        with browser.open(link, timeout=PATIENCE) as page:
            found: str = page.read().decode()
        return found
    finally:
        viewer.send_signal(signal.SIGINT)
        viewer.wait(PATIENCE)
        viewer.stderr.close()


def test_a_conversation_is_all_that_one_process_has_started(home: HubHome):
    with home.front() as one, home.front() as same, home.elsewhere() as other:
        for client in (one, same, other):
            client.hello()
        found = home.status()
        assert found is not None
        whose = [front["conversation"] for front in found["fronts"]]
        assert sorted(map(whose.count, set(whose))) == [1, 2]
        assert whose.count(home.client) == 2


@pytest.mark.parametrize("start", [HubHome.elsewhere, HubHome.front], ids=["of another conversation", "of the same process"])
def test_what_one_front_stores_is_not_read_by_another(home: HubHome, start: Callable[[HubHome], HubFront]):
    """One process may start proxies for several people."""
    with home.front() as one, start(home) as other:
        one.hello()
        other.hello()
        handle = one.call("lines", LARGE)["content"][-1]["uri"]
        assert one.result("resources/read", {"uri": handle})["contents"][0]["text"].startswith("line 1:")
        assert "error" in other.request("resources/read", {"uri": handle})


@pytest.mark.slow
def test_a_client_with_another_file_mode_mask_has_another_hub_and_commands_find_both(home: HubHome):
    with home.front() as one, home.front_with_mask("0137") as other:
        one.hello()
        other.hello()
        found = json.loads(home.overspill("hub", "status", "--json").stdout)
        assert [len(each["fronts"]) for each in found] == [1, 1]
        done = home.overspill("hub", "stop")
        assert (done.stdout, done.stderr) == ("2 hubs have stopped.\n", "")
        assert (one.process.wait(30), other.process.wait(30)) == (1, 1)


def test_a_hub_holds_nothing_open_that_its_client_has_open(home: HubHome):
    ours, theirs = os.pipe()
    os.set_inheritable(theirs, True)
    command = [*OVERSPILL, "proxy", "--", *every()]
    with HubFront(command, home.env, fork=None, pass_fds=[theirs]) as client:
        os.close(theirs)
        client.hello()
        assert home.pid()
        client.end()
        with open(ours, "rb") as pipe:
            assert pipe.read() == b""


@pytest.mark.parametrize("option", ["--quiet", "-v", "--grace=1", "--dry-run"])
def test_what_is_said_about_the_process_itself_is_done_without_a_hub(home: HubHome, option: str):
    with home.front(option) as client:
        client.hello()
        assert home.status() is None


def test_a_proxy_that_is_traced_works_without_a_hub(home: HubHome):
    code = (
        "import sys, types; sys.modules['opentelemetry.sdk.trace'] = types.ModuleType('x'); from overspill.hub.front import *; "
    )
    code += "sys.exit(serve_through_hub(['proxy'], os.environ) is None)"
    assert subprocess.run([sys.executable, "-c", code], env=home.env, timeout=60, check=False).returncode == 1
    assert home.status() is None


def test_a_front_imports_next_to_nothing():
    code = (
        "import os, sys; before = set(sys.modules); import overspill.cli, overspill.hub.front; "
        "print(*sorted(set(sys.modules) - before))"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    found = subprocess.run([sys.executable, "-S", "-c", code], env=env, capture_output=True, text=True, timeout=60, check=True)
    ours = {"overspill", "overspill.cli", "overspill.hub", "overspill.hub.frames", "overspill.hub.front", "overspill.hub.place"}
    standard = {"__future__", "_socket", "binascii", "fcntl", "importlib", "select", "warnings"}
    assert set(found.stdout.split()) - ours - standard <= {"importlib._bootstrap", "importlib._bootstrap_external"}


def test_the_first_slow_call_is_answered_after_the_race_and_read_by_a_client_that_comes_back(home: HubHome):
    with home.front("--set", "truncation.overrides.wait.asyncTimeoutSecs=0.2") as client:
        client.hello()
        said = client.text("wait", {"until": "never"})
        assert "It keeps running in the background." in said
        assert client.text("lines", LARGE).startswith("Tool output is too large")
        assert client.text("lines", LARGE).startswith("Same output as before")
    with home.front("--set", "truncation.overrides.wait.asyncTimeoutSecs=0.2") as client:
        client.hello()
        assert client.text("lines", LARGE).startswith("Tool output is too large")  # which its model has never seen
        job = said.split()[3]
        assert client.text("get_tool_output", {"id": job, "mode": "raw"}).startswith("Tool not ready.")


def test_a_client_that_comes_back_works_on_when_what_it_had_left_running_ends(home: HubHome):
    done, options = home.folder / "done", ("--set", "truncation.overrides.wait.asyncTimeoutSecs=0.2")
    with home.front(*options) as client:
        client.hello()
        said = client.text("wait", {"file": str(done), "then": "yes"})
    with home.front(*options) as client:
        client.hello()
        assert client.text("get_tool_output", {"id": said.split()[3], "mode": "raw"}).startswith("Tool not ready.")
        done.touch()
        wait_until(lambda: len((home.status() or {"fronts": ()})["fronts"]), lambda fronts: fronts == 1)
        assert client.text("lines", {"count": 1}) == SMALL


@pytest.mark.parametrize("setting", [("--store", "memory:"), ("--set", "storeDir=here"), ("--set", "retention=process")])
def test_what_must_not_outlive_its_process_or_lies_in_the_clients_folder_stays_out_of_the_hub(
    home: HubHome, setting: tuple[str, str]
):
    with home.front(*setting, cwd=home.folder) as client:
        client.hello()
        assert client.text("lines", {"count": 1}) == SMALL
        found = home.status()
        assert found is not None
        assert found["fronts"] == []
    assert b"This proxy works alone." in client.errors


NO_GREETING = {
    b"": "it closed its connection",
    b"Z\0\0\0\0": "it sent something else",
    b"H\xff\xff\xff\xff": "what it sends is too large",
    b"H\0\0\0\x04\xff\xff\xff\xff": "its greeting cannot be read",
}


@pytest.mark.parametrize("sent", [NO_GREETING, *slow({b"H\0\0": "it sent nothing whole within 10 s"})], ids=["ended", "waits"])
def test_the_log_names_a_connection_without_a_greeting(sent: dict[bytes, str], home: HubHome):
    with home.front() as front:
        front.hello()
        for greeting, why in sent.items():
            with closing(home.place.connect(PATIENCE)) as link:
                link.sendall(greeting)
                if "closed" in why:
                    link.close()
                line = f"process {os.getpid()} connected without a greeting: {why}"
                wait_until(lambda: home.overspill("hub", "logs").stdout, lambda log, line=line: line in log)
            assert front.text("lines", {"count": 1}) == SMALL
