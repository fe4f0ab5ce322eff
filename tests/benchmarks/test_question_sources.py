"""The sources of the sets: that they differ, and how some of them are read."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
import zipfile
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from benchmarks.questions.conversations import ask_about, ask_issue, write_chat, write_issue
from benchmarks.questions.kinds.attributes import find_values
from benchmarks.questions.kinds.lists import read_listing
from benchmarks.questions.kinds.threads import ask, without_titles
from benchmarks.questions.material import Asked, Listing, QuestionSet, Threads
from benchmarks.questions.picks import read_picks
from benchmarks.questions.sets import SETS
from benchmarks.questions.sets.drafts.databases import read_feed, run_oracle_scripts
from benchmarks.questions.sets.standards.databases import read_publishing, read_tabbed
from benchmarks.questions.sources import Git, Package, Repository, SourceMissing, Sources
from benchmarks.questions.tables import read_copies, read_csv

CHAT: dict[str, Any] = {
    "session_10": [{"dia_id": "D10:1", "speaker": "B", "date_time": "11.01.2024, 09:00:00", "clean_text": "we saw The Blob"}],
    "session_2": [{"dia_id": "D2:1", "speaker": "A", "date_time": "02.01.2024, 09:00:00", "clean_text": "hello"}],
    "qa": [{"question": "What did they see?", "answer": "the blob.", "evidence": ["D10:1"]}],
}
ISSUE: dict[str, Any] = {
    "number": 7,
    "state": "CLOSED",
    "title": " Why  a nonce?",
    "author": "a",
    "createdAt": "2020-01-02T03:04:05Z",
    "body": "You mix it in.",
    "comments": [{"author": "b", "createdAt": "2020-01-03T03:04:05Z", "body": "To be safe."}],
}


def commit_files(folder: Path, files: dict[str, bytes]) -> str:
    environment = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull}
    identity = ("-c", "user.name=a", "-c", "user.email=a@b")
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    commit = ""
    for arguments in (["init", "--quiet"], ["add", "."], [*identity, "commit", "--quiet", "-m", "Begin"], ["rev-parse", "HEAD"]):
        command = ["git", "-C", str(folder), *arguments]
        commit = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.strip()
    return commit


def names_of(chosen: QuestionSet) -> set[str]:
    threads = {chosen.threads[pick["from"]].find_source(pick["document"]).name for pick in read_picks(chosen.name, "threads")}
    databases = {database.source.name for database in chosen.databases.values()}
    listings = {listing.source.name for listing in chosen.listings.values()}
    return {*chosen.code_licences, *chosen.pages, *chosen.manuals, *threads, *databases, *listings}


def test_the_sets_share_no_source() -> None:
    for one, other in combinations(SETS.values(), 2):
        assert not names_of(one) & names_of(other)


@pytest.mark.parametrize("name", list(SETS))
def test_every_pick_names_a_source_of_its_set_and_every_source_is_picked_from(name: str) -> None:
    chosen = SETS[name]
    assert {pick["repo"] for pick in read_picks(name, "code")} == set(chosen.code_licences)
    assert {pick["repo"] for pick in read_picks(name, "attributes")} == set(chosen.pages)
    assert {pick["repo"] for pick in read_picks(name, "documentation")} == set(chosen.manuals)
    assert {pick["database"] for pick in read_picks(name, "databases")} == set(chosen.databases)
    assert {pick["list"] for pick in read_picks(name, "lists")} == set(chosen.listings)
    assert {pick["from"] for pick in read_picks(name, "threads")} == set(chosen.threads)


def test_a_chat_is_in_the_order_of_its_sessions_and_its_answer_is_as_it_was_written() -> None:
    assert write_chat(CHAT) == "[02.01.2024, 09:00:00] A: hello\n[11.01.2024, 09:00:00] B: we saw The Blob\n"
    assert ask_about(CHAT, 0) == Asked("What did they see?", ("The Blob",))


def test_the_title_of_an_issue_asks_and_is_taken_out() -> None:
    issues = [ISSUE, ISSUE | {"number": 8, "title": "Other"}]
    assert ask_issue(issues, 7).question == "Why a nonce?"
    text = without_titles("\n".join(map(write_issue, issues)), {"Why a nonce?"})
    assert text.startswith("Issue 7 (closed)\n\na, 2020-01-02T03:04:\nYou mix it in.\n\nb, 2020-01-03T03:04:\nTo be safe.\n")
    assert "Title: Other\n" in text
    with pytest.raises(SourceMissing, match=r"The archive has no issue 9"):
        ask_issue(issues, 9)


def test_a_quote_that_was_picked_goes_before_that_of_the_material(tmp_path: Path) -> None:
    threads = Threads(lambda _: Repository("a/b", "c", "MIT"), lambda *_: "", lambda *_: Asked("Why?", ("theirs",)))
    sources = Sources(tmp_path, None)
    assert ask(threads, sources, {"document": "x", "number": 1}) == Asked("Why?", ("theirs",))
    assert ask(threads, sources, {"document": "x", "number": 1, "quotes": ["ours"]}) == Asked("Why?", ("ours",))


def test_a_value_beside_its_label_in_a_way_of_its_own_is_quoted(tmp_path: Path) -> None:
    git, page = Git(tmp_path, "c"), "<span>Award</span><br>$3,940.00<p>"
    assert find_values({"label": "Award", "quotes": ["$3,940.00"]}, git, page) == ("$3,940.00",)
    assert find_values({"label": "Award", "quotes": ["$1"]}, git, page) == ()


@pytest.mark.parametrize(
    ("whole", "inside"),
    [({"1": {"name": "x"}, "2": {"name": "y"}}, ""), ({"version": 1, "all": [{"name": "x"}, {"name": "y"}]}, "all")],
)
def test_a_list_kept_as_an_object_or_in_one_loses_its_keys(tmp_path: Path, whole: dict[str, Any], inside: str) -> None:
    packed = json.dumps(whole).encode()
    with tarfile.open(tmp_path / "p-1.tgz", "w:gz") as archive:
        member = tarfile.TarInfo("package/all.json")
        member.size = len(packed)
        archive.addfile(member, io.BytesIO(packed))
    listing = Listing(Package("p", "1", "MIT"), "all.json", inside=inside)
    assert read_listing(listing, Sources(tmp_path, None)) == [{"name": "x"}, {"name": "y"}]


def test_a_timetable_is_read_from_its_archive_without_the_shapes() -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as files:
        files.writestr("stops.txt", "stop_id,stop_name\n70011,North\n")
        files.writestr("shapes.txt", "shape_id\nx\n")
    assert read_feed(packed.getvalue()) == {"stops": [{"stop_id": 70011, "stop_name": "North"}]}


def test_scripts_for_another_database_become_tables(tmp_path: Path) -> None:
    create = b"""CREATE TABLE jobs
    ( job_id  NUMBER(6)
       CONSTRAINT job_nn NOT NULL
    , title   VARCHAR2(25)
    , since   DATE
    , details BLOB
    , CONSTRAINT job_pk PRIMARY KEY (job_id)
    );
"""
    populate = b"""BEGIN
  INSERT INTO jobs VALUES
      ( 1
      , 'Clerk (junior)'
      , TO_DATE('17-06-2013', 'dd-MM-yyyy')
      , UTL_RAW.CAST_TO_RAW( '{"pay": 3}' )
      );
  INSERT INTO jobs (job_id,title,details) VALUES (2,'Chief',UTL_RAW.CAST_TO_RAW( long_text ) );
END;
/
"""
    commit = commit_files(tmp_path, {"x/hr_create.sql": create, "x/hr_populate.sql": populate})
    assert run_oracle_scripts(Git(tmp_path / ".git", commit), "x/hr") == {
        "jobs": [
            {"job_id": 1, "title": "Clerk (junior)", "since": "17-06-2013", "details": '{"pay": 3}'},
            {"job_id": 2, "title": "Chief"},
        ]
    }


def test_a_script_for_sql_server_becomes_tables_with_numbered_jobs() -> None:
    script = """CREATE TABLE jobs
(
   job_id         smallint          IDENTITY(1,1)
   job_desc       varchar(50)       NOT NULL
   min_lvl        tinyint           NOT NULL,
   max_lvl        tinyint           NOT NULL
)

CREATE TABLE titles
(
   title_id       tid

         CONSTRAINT UPKCL_titleidind PRIMARY KEY CLUSTERED,
   title          varchar(80)       NOT NULL,
   price          money                 NULL
)

insert jobs values ('Editor (acting)', 10, 10)
insert jobs values ('Clerk', 10, 20)
insert titles values ('BU1', 'It''s
on', $7.99)
insert titles (title_id, title) values('BU2', 'Two')
insert logos values ('x')
"""
    assert read_publishing(script, ("jobs", "titles")) == {
        "jobs": [
            {"job_id": 1, "job_desc": "Editor (acting)", "min_lvl": 10, "max_lvl": 10},
            {"job_id": 2, "job_desc": "Clerk", "min_lvl": 10, "max_lvl": 20},
        ],
        "titles": [
            {"title_id": "BU1", "title": "It's\non", "price": 7.99},
            {"title_id": "BU2", "title": "Two", "price": None},
        ],
    }


def test_lines_without_a_heading_are_read_with_the_columns_given() -> None:
    assert read_tabbed("1\tLight\t\t{guid}\n", ["id", "Name", "Size", "rowguid"]) == [{"id": 1, "Name": "Light"}]


def test_copied_rows_and_csv_are_read_as_tables() -> None:
    assert read_copies("COPY public.a (x, y) FROM stdin;\n1\t\\N\n2\tb\n\\.\n") == {
        "a": [{"x": 1, "y": None}, {"x": 2, "y": "b"}]
    }
    assert read_csv("\ufeffx,y\n1,\n,b c\n") == [{"x": 1}, {"y": "b c"}]
