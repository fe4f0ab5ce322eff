"""What the pages show, asked over HTTP."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import anyio
import pytest
from viewers import Client, fill, output_path, running_viewer

from overspill.reading.positions import View
from overspill.redaction.policy import Redaction
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.files.store import FileStore
from overspill.store.readers import BytesReader
from overspill.types import Kept
from overspill.view.windows import WINDOW_BYTES, WINDOW_LINES, find_before, make_window


def describe_tree(root: Path) -> dict[str, tuple[int, int, str]]:
    """Everything that a write could change."""
    return {
        str(path): (found.st_mtime_ns, found.st_mode, "" if path.is_dir() else hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(root.rglob("*"))
        for found in [path.lstat()]
    }


def test_sessions_are_listed_with_their_figures_newest_first(tmp_path: Path):
    fill(tmp_path, name="older", tool="search", one="x" * 20_000)
    fill(tmp_path, name="newer", tool="logs", small="fits")
    with running_viewer(tmp_path) as viewer:
        page = Client(viewer).enter().get()
    assert page.words.index("newer") < page.words.index("older")
    assert "2 sessions of 2, 1 stored output in all" in page.words


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("q=older", ["older"]),
        ("q=LOGS", ["newer"]),
        ("q=r", ["newer", "older"]),
        ("q=none", []),
        ("state=live", []),
        ("state=ended", ["newer", "older"]),
    ],
)
def test_sessions_can_be_searched_and_filtered(tmp_path: Path, query: str, found: list[str]):
    fill(tmp_path, name="older", tool="search", one="x" * 20_000)
    fill(tmp_path, name="newer", tool="logs", small="fits")
    with running_viewer(tmp_path) as viewer:
        page = Client(viewer).enter().get(f"/?{query}")
    assert re.findall(r">(older|newer)</a>", page.text) == found


def test_a_live_session_is_shown_with_the_jobs_that_run(tmp_path: Path):
    async def run() -> None:
        store = FileStore(tmp_path)
        async with Session(Settings(), store=store, preload=False) as session:
            release = anyio.Event()
            await session.start("slow_report", {}, release.wait)
            with running_viewer(tmp_path) as viewer:
                client = Client(viewer).enter()
                page = await anyio.to_thread.run_sync(client.get, "/")
                assert "1 running" in page.words
                page = await anyio.to_thread.run_sync(client.get, f"/session/{session.id}")
                assert "running slow_report" in page.words
                release.set()
                await session.stop()
                page = await anyio.to_thread.run_sync(client.get, f"/session/{session.id}")
                assert "ready slow_report" in page.words
        store.close()

    anyio.run(run)


def test_a_session_shows_its_calls_failures_and_outputs(tmp_path: Path):
    async def run() -> Kept:
        store = FileStore(tmp_path)
        async with Session(Settings(retention="keep"), store=store, preload=False) as session:

            def fail() -> str:
                raise RuntimeError("no such table")

            await session.call("list_tables", {}, lambda: "users")
            await session.call("describe", {}, fail)
            await session.call("dump", {}, lambda: "row\n" * 9000, server="db")
            kept = session.kept()[0]
            await session.invoke("tool_output", {"handle": kept.name, "extract": "row"})
        store.close()
        return kept

    kept = anyio.run(run)
    with running_viewer(tmp_path) as viewer:
        words = Client(viewer).enter().get(f"/session/{kept.session}").words
    assert re.search(r"tool list_tables .* tool describe failed .* tool dump", words)
    assert "extraction tool_output" in words
    assert f"{kept.name} " in words
    assert "36 KB" in words


@pytest.mark.promise("everything-reachable")
@pytest.mark.parametrize(
    "content",
    [
        "".join(f"line {number} größe\n" for number in range(20_000)),
        "ä" * 300_000,
        "a\r\nb\rc\n" * 20_000,
        "x" * 200_000 + "\n" + "y" * 200_000,
    ],
    ids=["lines", "one line", "every line end", "long lines"],
)
@pytest.mark.slow
def test_windows_show_every_byte_once_from_the_beginning_and_from_the_end(content: str):
    data = content.encode()
    reader = BytesReader(data)
    view, at, seen = View(reader), 0, []
    while at is not None:
        window = make_window(reader, view, at)
        assert window.start == at
        assert window.end - window.start <= WINDOW_BYTES + 4
        assert len(window.lines) <= WINDOW_LINES
        seen += window.lines
        at = window.after
    assert "".join(line.text for line in seen) == re.sub("[\r\n]", "", content)
    numbered: dict[int, str] = {}
    for line in seen:
        numbered[line.number] = numbered.get(line.number, "") + line.text
    lines = re.split("\r\n|\n|\r", content.removesuffix("\n"))
    assert numbered == dict(enumerate(lines, 1))
    end, start = len(data), find_before(reader, view.bytes)
    while start is not None:
        window = make_window(reader, view, start)
        assert window.end >= end
        end, start = start, window.before
    assert end == 0


def test_an_output_is_read_in_windows_over_http(tmp_path: Path):
    kept = fill(tmp_path, big="".join(f"line {number}\n" for number in range(100_000)))[0]
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        first = client.get(output_path(kept))
        assert "line 0" in first.text
        assert f"line {WINDOW_LINES}\n" not in first.text
        later = re.search(r'class="later" href="[^"]*from=(\d+)"', first.text)
        assert later
        assert f">line {WINDOW_LINES}<" in client.get(f"{output_path(kept)}/window?from={later[1]}").text
        last = client.get(f"{output_path(kept)}?last").text
        assert ">line 99999<" in last
        assert 'href="#L100000"' in last
        assert ">line 70000<" in client.get(f"{output_path(kept)}/window?lines=70001-70003").text


@pytest.mark.parametrize(
    ("query", "marked"),
    [
        ("lines=3-4", ["line 2", "line 3"]),
        ("bytes=7-10", ["line"]),
        ("bytes=0-0", ["l"]),
        ("lines=99999999", []),
        ("bytes=99999999", []),
        ("bytes=5-8", ["0", "li"]),
    ],
)
def test_a_span_is_highlighted_in_place(tmp_path: Path, query: str, marked: list[str]):
    kept = fill(tmp_path, big="".join(f"line {number}\n" for number in range(10_000)))[0]
    with running_viewer(tmp_path) as viewer:
        answer = Client(viewer).enter().get(f"{output_path(kept)}/window?{query}")
    assert (answer.status, re.findall("<mark>(.*?)</mark>", answer.text)) == (200, marked)


@pytest.mark.parametrize("query", ["lines=x", "bytes=5-1", "from=-1", "from=99999999999999999999", "lines=1-2-3", "hex&from=1e3"])
def test_a_place_that_is_none_gets_a_clear_answer(tmp_path: Path, query: str):
    kept = fill(tmp_path, big="x" * 20_000)[0]
    with running_viewer(tmp_path) as viewer:
        answer = Client(viewer).enter().get(f"{output_path(kept)}?{query}")
    assert answer.status == 400
    assert "This cannot be shown" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/session/x",
        "/session/01a1e316-8c90-74dc-866b-52fa440a2304",
        "/output/a/b",
        "/nothing",
        "/output/../../etc/passwd",
        "/?state=x",
    ],
)
def test_what_there_is_not_gets_a_clear_answer(tmp_path: Path, path: str):
    with running_viewer(tmp_path) as viewer:
        answer = Client(viewer).enter().get(path)
    assert answer.status in (400, 404)
    assert "Traceback" not in answer.text


def test_an_output_of_one_session_is_not_found_under_another(tmp_path: Path):
    one, other = fill(tmp_path, a="x" * 20_000)[0], fill(tmp_path, b="y" * 20_000)[0]
    with running_viewer(tmp_path) as viewer:
        assert Client(viewer).enter().get(f"/output/{one.session}/{other.id}").status == 404


@pytest.mark.promise("nothing-lost")
def test_a_download_is_the_exact_bytes_and_is_never_shown(tmp_path: Path):
    content = os.urandom(100_000)
    kept = fill(tmp_path, page=b"<html><script>alert(1)</script>" + content)[0]
    with running_viewer(tmp_path) as viewer:
        answer = Client(viewer).enter().get(f"{output_path(kept)}/raw")
    assert answer.body == b"<html><script>alert(1)</script>" + content
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment;")
    assert answer.headers["content-security-policy"].startswith("sandbox;")


PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01" + bytes(20_000)


def test_only_images_that_cannot_hold_a_program_are_shown(tmp_path: Path):
    image, drawing = fill(
        tmp_path, a=PNG, b="<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>" + " " * 20_000
    )
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        shown = client.get(f"{output_path(image)}/image")
        assert (shown.status, shown.headers["content-type"], shown.body) == (200, "image/png", PNG)
        assert "<img" in client.get(output_path(image)).text
        assert client.get(f"{output_path(drawing)}/image").status == 400
        page = client.get(output_path(drawing)).text
        assert "<img" not in page
        assert "&lt;script&gt;alert(1)" in page


def test_what_is_not_text_is_shown_as_bytes(tmp_path: Path):
    kept = fill(tmp_path, a=bytes(range(256)) * 100)[0]
    with running_viewer(tmp_path) as viewer:
        page = Client(viewer).enter().get(f"{output_path(kept)}?hex").text
    assert "000000000020  20 21 22 23" in page
    assert "0123456789:;&lt;=&gt;?" in page


def test_a_damaged_output_is_shown_as_damaged(tmp_path: Path):
    kept = fill(tmp_path, big="line\n" * 10_000)[0]
    (file,) = tmp_path.rglob(kept.id)
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        assert "damaged" not in client.get(output_path(kept)).text
        with file.open("r+b") as damaged:
            damaged.truncate(100)
        page = client.get(output_path(kept)).words
    assert "This output is damaged: it has 100 bytes; 50,000 were stored" in page


def test_savings_count_each_output_once_and_say_how(tmp_path: Path):
    kept = fill(tmp_path, tool="dump", server="db", a="one two three\n" * 5000)[0]
    fill(tmp_path, tool="small", a="fits")
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        tools = client.get("/savings").words
        servers = client.get("/savings?by=server").words
        days = client.get("/savings?by=day").words
        plot = client.get("/savings.json").text
    assert re.search(rf"dump 1 1 {kept.size.tokens:,} ", tools)
    assert "each later request would have sent it again" in tools
    assert re.search(r"What was kept out would have cost \$0\.\d{4} What was shown instead −\$0\.\d{4}", tools)
    assert re.search(rf"db 1 1 {kept.size.tokens:,} ", servers)
    assert re.search(r"20\d\d-\d\d-\d\d 2 1 ", days)
    assert '"keptOut":[' in plot


@pytest.mark.promise("nobody-elses")
def test_looking_changes_nothing_in_the_store(tmp_path: Path):
    kept = fill(tmp_path, big="line\n" * 10_000)[0]
    before = describe_tree(tmp_path)
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        for path in (
            "/",
            f"/session/{kept.session}",
            output_path(kept),
            f"{output_path(kept)}/window?lines=5",
            f"{output_path(kept)}/raw",
            "/savings",
        ):
            assert client.get(path).status == 200
    assert describe_tree(tmp_path) == before


def test_what_a_session_adds_is_there_at_the_next_look_and_a_removed_one_is_gone(tmp_path: Path):
    fill(tmp_path, name="kept", a="x" * 20_000)
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        assert "1 stored output in all" in client.get().words
        kept = fill(tmp_path, name="kept", b="y" * 20_000)[-1]
        assert "2 stored outputs in all" in client.get().words
        store = FileStore(tmp_path)
        store.remove_shelf(kept.session)
        store.close()
        assert "Nothing is stored yet" in client.get().words
        assert client.get(f"/session/{kept.session}").status == 404


def test_a_torn_or_foreign_journal_hides_no_other_session(tmp_path: Path):
    fill(tmp_path, name="sound", a="x" * 20_000)
    kept = fill(tmp_path, name="harmed", b="y" * 20_000)[0]
    (file,) = tmp_path.rglob(f"session-{kept.session}/journal.jsonl")
    lines = [
        b'{"event":"kept","t":1,"kept":{"session":"../..","id":"../../etc/passwd","tool":"t","reason":"size_cap","size":{"bytes":1,"chars":1,"lines":1,"tokens":1},"sha256":"","created_ms":1}}',
        b'{"event":"extraction","t":1,"op":"x","id":"not an id","tool":"t","mode":"auto"}',
        b'{"event":"job","t":1,"id":"no","tool":"t","state":"ready","seconds":1e300}',
        b'{"event":"call","t":99999999999999999999999,"tool":"t"}',
        b'{"event":"call","t":-5,"tool":"t","latency":-99999999999,"id":"<b>"}',
        b"\xff\xfe not json",
    ]
    with file.open("ab") as journal:
        journal.write(b"\n".join(lines) + b'\n{"torn')
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        page = client.get()
        assert {"sound", "harmed"} <= set(page.words.split())
        session = client.get(f"/session/{kept.session}")
        assert session.status == 200
        assert "missing from the journal" in session.words
        assert client.get("/savings?by=day").status == 200


def test_secrets_are_hidden_until_the_original_is_asked_for(tmp_path: Path):
    secret, lines = "blue-heron-4711-xyz", "".join(f"line {number}\n" for number in range(3_000))
    (kept,) = fill(tmp_path, one=f"the token is {secret}\n{lines}")
    hidden, original = output_path(kept), output_path(kept).replace("/output/", "/original/")
    redaction = Redaction(Settings(redact={"shown": "on"}), {"SERVICE_TOKEN": secret})
    with running_viewer(tmp_path, redaction=redaction) as viewer:
        client = Client(viewer).enter()
        for part in ("", "/window?from=0", "/search?words=token", "/raw", "?hex"):
            assert secret not in client.get(hidden + part).text, part
            assert "heron" not in client.get(hidden + part).text, part
        assert f'href="{client.root}{original}"' in client.get(hidden).text
        assert "[redacted:service-token:" in client.get(hidden).text
        for part in ("", "/window?from=0", "/search?words=token", "/raw"):
            assert secret in client.get(original + part).text, part
        assert f"{client.root}{original}/window" in client.get(original).text  # what follows is the original, too
        assert client.get(original.replace("/original/", "/other/")).status == 404
    with running_viewer(tmp_path) as viewer:
        assert secret in Client(viewer).enter().get(hidden).text
