"""Search, quotes, kinds and live updates, asked over HTTP."""

from __future__ import annotations

import gzip
import http.client
import json
import re
from pathlib import Path
from threading import Barrier, Event
from typing import Any
from urllib.parse import quote

import anyio
import pytest
from viewers import Client, fill, output_path, running_viewer

from overspill.errors import BadRequest
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.files.store import FileStore
from overspill.types import Kept
from overspill.view.searches import MAX_HITS, Searches

pytestmark = pytest.mark.usefixtures("forked_workers")

LOG = "".join(f"2026-01-01 10:00:{number % 60:02} INFO request {number} ok\n" for number in range(4000))
LOG += "2026-01-01 10:01:00 ERROR payment 77 failed: card expired\n"


def search(root: Path, kept: Kept, way: str, words: str, **headers: str) -> Any:
    with running_viewer(root) as viewer:
        client = Client(viewer).enter()
        query = f"way={way}&words={quote(words)}"
        return client.get(f"{output_path(kept)}/search?{query}", **headers)


@pytest.mark.parametrize("words", ["payment 77", "PAYMENT [0-9]+", "card expired$"])
def test_a_pattern_finds_its_line_and_links_to_the_exact_bytes(tmp_path: Path, words: str):
    kept = fill(tmp_path, log=LOG)[0]
    answer = search(tmp_path, kept, "grep", words)
    if words.startswith("PAYMENT"):  # capitals mean capitals
        assert "0 hits" in answer.words
        return
    (start, end) = re.findall(r"bytes=(\d+)-(\d+)", answer.text)[0]
    expected = words.removesuffix("$")
    assert LOG.encode()[int(start) : int(end) + 1].decode() == expected
    assert "Line 4,001" in answer.words
    assert f"<mark>{expected}</mark>" in answer.text


def test_hits_are_highlighted_in_place(tmp_path: Path):
    kept = fill(tmp_path, log=LOG)[0]
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        page = client.get(f"{output_path(kept)}/window?lines=2&find=request+%5B0-9%5D%2B").text
        assert page.count("<mark>request") >= 300
        later = re.search(r'class="later" href="[^"]*"', page)
        assert later
        assert "find=request" in later[0]


def test_hits_are_bounded_and_the_page_says_so(tmp_path: Path):
    kept = fill(tmp_path, log=LOG)[0]
    answer = search(tmp_path, kept, "grep", "info")
    assert answer.text.count("<li>") == MAX_HITS
    assert "There are more" in answer.words


def test_a_question_is_answered_by_the_engine_with_places(tmp_path: Path):
    kept = fill(tmp_path, log=LOG)[0]
    answer = search(tmp_path, kept, "ask", "which payment failed?")
    assert "payment 77 failed: card expired" in answer.words
    start, end = map(int, re.findall(r"bytes=(\d+)-(\d+)", answer.text)[-1])
    assert "card expired" in LOG.encode()[start : end + 1].decode()


def test_json_is_asked_with_pointers_and_jmespath(tmp_path: Path):
    kept = fill(tmp_path, data=json.dumps({"items": [{"id": number, "name": f"n{number}"} for number in range(2000)]}))[0]
    assert "n7" in search(tmp_path, kept, "query", "/items/7/name").words
    assert "1999" in search(tmp_path, kept, "query", "max(items[].id)").words


def test_tables_are_asked_with_sql(tmp_path: Path):
    kept = fill(tmp_path, data="id,state\n" + "".join(f"{number},{'ok' if number % 3 else 'bad'}\n" for number in range(3000)))[0]
    answer = search(tmp_path, kept, "sql", "SELECT state, count(*) AS n FROM output GROUP BY 1 ORDER BY 1")
    assert re.search(r"state n bad 1000 ok 2000", answer.words)


@pytest.mark.parametrize(
    ("way", "words", "told"),
    [
        ("grep", "(", "cannot be used"),
        ("grep", "", "Type what to look for"),
        ("query", "items[", "cannot be used"),
        pytest.param("sql", "DROP TABLE output", "", marks=pytest.mark.slow),
        pytest.param("sql", "SELECT * FROM read_text('/etc/passwd')", "", marks=pytest.mark.slow),
        ("shell", "ls", "way must be one of"),
        ("ask", "x" * 3000, "The limit is 2,000"),
    ],
)
def test_a_question_that_cannot_be_answered_gets_a_clear_answer(tmp_path: Path, way: str, words: str, told: str):
    kept = fill(tmp_path, data="id,state\n" + "1,ok\n" * 5000)[0]
    answer = search(tmp_path, kept, way, words)
    assert answer.status == 400
    assert told in answer.words
    assert "root:" not in answer.words
    part = search(tmp_path, kept, way, words, HX_Request="true")
    assert "Traceback" not in part.text


@pytest.mark.slow
def test_questions_are_bounded_in_number():
    release, all_started = Event(), Barrier(3)

    def wait() -> str:
        all_started.wait(30)
        assert release.wait(60)
        return "done"

    async def run() -> None:
        searches = Searches()
        results: list[str] = []

        async def ask() -> None:
            results.append(await searches.run(wait))

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            group.start_soon(ask)
            await anyio.to_thread.run_sync(all_started.wait, 30)
            with pytest.raises(BadRequest, match="still being answered"):
                await searches.run(lambda: "not reached")
            release.set()
        assert results == ["done", "done"]
        searches.close()

    anyio.run(run)


def extract(root: Path, content: object, question: str) -> tuple[Kept, str]:
    """A kept output that was asked about. Returns it and the id of the extraction."""

    async def run() -> tuple[Kept, str]:
        store = FileStore(root)
        async with Session(Settings(retention="keep"), store=store, preload=False) as session:
            await session.call("fetch", {}, lambda: content)
            kept = session.kept()[0]
            await session.invoke("tool_output", {"handle": kept.name, "extract": question})
        store.close()
        (journal,) = root.rglob(f"session-{kept.session}/journal.jsonl")
        events = [json.loads(line) for line in journal.read_text().splitlines()]
        return kept, next(event["op"] for event in events if event["event"] == "extraction")

    return anyio.run(run)


@pytest.mark.promise("every-quote-checked")
def test_quotes_are_verified_when_somebody_looks(tmp_path: Path):
    kept, op = extract(tmp_path, LOG, "which payment failed?")
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        assert f"/citation/{kept.session}/{op}" in client.get(f"/session/{kept.session}").text
        page = client.get(f"/citation/{kept.session}/{op}")
        assert "Verified now: the output has its" in page.words
        assert "payment 77 failed: card expired" in page.words
        (file,) = tmp_path.rglob(kept.id)
        file.write_bytes(file.read_bytes().replace(b"payment 77", b"payment 99"))
        page = client.get(f"/citation/{kept.session}/{op}")
        assert "it does not hold" in page.words
        assert "not there" in page.words
        file.write_bytes(b"short")
        assert "it does not hold" in client.get(f"/citation/{kept.session}/{op}").words
        file.unlink()
        assert client.get(f"/citation/{kept.session}/{op}").status in (200, 404, 410)


def test_quotes_from_a_compressed_output_are_those_of_its_text(tmp_path: Path):
    kept, op = extract(tmp_path, gzip.compress(LOG.encode()) + b"", "which payment failed?")
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        page = client.get(f"/citation/{kept.session}/{op}").words
        assert "Decoded from gzip" in page
        assert "payment 77 failed: card expired" in page
        assert "request 0 ok" in client.get(output_path(kept)).words


def test_an_extraction_that_there_is_not_gets_a_clear_answer(tmp_path: Path):
    kept = fill(tmp_path, log=LOG)[0]
    with running_viewer(tmp_path) as viewer:
        answer = Client(viewer).enter().get(f"/citation/{kept.session}/none")
    assert (answer.status, "no such extraction" in answer.words) == (404, True)


RENDERED = {
    "json": (json.dumps({"user": {"name": "<b>Ann</b>", "tags": list(range(5000))}}), 'class="tree"', "&lt;b&gt;Ann"),
    "ndjson": ('{"id": 1, "state": "ok"}\n' * 2000, 'class="tree"', "state"),
    "csv": ("id,name,size\n" + "1,a<b & c,3\n" * 3000, "<th>id</th>", "<td>a&lt;b &amp; c</td>"),
}

PAGE = "# Title <img src=x onerror=alert(1)>\n\nSome *words* of the whole text and [a link](javascript:alert(1)) for you.\n\n"
RENDERED["page"] = (PAGE * 400, "<h1>Title &lt;img", "[a link](javascript")


@pytest.mark.parametrize("kind", RENDERED)
def test_a_kind_is_rendered_for_people_and_stays_harmless(tmp_path: Path, kind: str):
    content, form, words = RENDERED[kind]
    kept = fill(tmp_path, data=content)[0]
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        assert "?rendered" in client.get(output_path(kept)).text
        page = client.get(f"{output_path(kept)}?rendered")
    assert form in page.text
    assert words in page.text
    assert "<img src=x" not in page.text
    assert 'href="javascript' not in page.text


def test_lines_of_diffs_and_logs_are_told_apart(tmp_path: Path):
    diff = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n-old\n+new\n" * 500
    changed, log = fill(tmp_path, diff=diff, log=LOG)
    with running_viewer(tmp_path) as viewer:
        client = Client(viewer).enter()
        assert 'class="add"' in client.get(output_path(changed)).text
        assert 'class="level-error' in client.get(f"{output_path(log)}?last").text


def test_an_open_page_is_told_when_something_changes_and_never_what(tmp_path: Path):
    async def run() -> None:
        store = FileStore(tmp_path)
        async with Session(Settings(), store=store, preload=False) as session:
            with running_viewer(tmp_path) as viewer:
                client = Client(viewer).enter()
                connection = http.client.HTTPConnection("127.0.0.1", viewer.address.port, timeout=60)
                headers = {"Host": client.host, "Cookie": client.cookie}
                connection.request("GET", f"{client.root}/live?session={session.id}", headers=headers)
                answer = await anyio.to_thread.run_sync(connection.getresponse)
                assert answer.headers["content-type"].startswith("text/event-stream")
                assert await anyio.to_thread.run_sync(answer.readline) == b": watching\n"
                await session.call("secret_tool", {}, lambda: "secret " * 5000)
                lines = [await anyio.to_thread.run_sync(answer.readline) for _ in range(4)]
                assert lines[1:3] == [b"event: changed\n", b"data: \n"]
                connection.close()
        store.close()

    anyio.run(run)
