"""`overspill extract` over several files and folders: the best answers first, and nothing opened that nobody named."""

from __future__ import annotations

import gzip
import json
import os
import re
from pathlib import Path

import pytest
from commands import Place, on_a_terminal

from overspill.cli.commands.extract import MAX_COPIED_BYTES as MAX
from overspill.cli.commands.extract import SearchedFile, split_files

ANSWER = "the retry limit is 7 attempts\n"


@pytest.fixture
def folder(place: Place) -> Path:
    root = Path("project")
    (root / "deep" / "er").mkdir(parents=True)
    (root / "deep" / "er" / "limits.txt").write_text("colors\n" * 50 + ANSWER + "shapes\n" * 50)
    (root / "other.txt").write_text("nothing of interest here\n" * 20)
    (root / "image.bin").write_bytes(bytes(range(256)) * 40)
    (root / "empty.txt").write_text("")
    (root / "packed.gz").write_bytes(gzip.compress(b"the retry limit was 3 attempts\n"))
    (root / ".hidden").write_text(ANSWER)
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text(ANSWER)
    return root


def test_a_folder_is_searched_and_files_are_named(place: Place, folder: Path):
    result = place.overspill("extract", "what is the retry limit", "project")
    assert result.code == 0
    assert "project/deep/er/limits.txt\n" in result.out
    assert ANSWER in result.out
    assert "the retry limit was 3 attempts" in result.out
    for name in (".hidden", ".git", "image.bin", "other.txt"):
        assert name not in result.out + result.err


def test_what_only_comes_near_is_shown_only_if_nothing_answers(place: Place):
    Path("answer.txt").write_text("RETRY_LIMIT = 7  # the retry limit is set here\n")
    Path("near.txt").write_text("The limit is documented.\n")
    asked = ("extract", "where the retry limit is set")
    both = place.overspill(*asked, "answer.txt", "near.txt")
    assert (both.code, "near.txt" in both.out + both.err) == (0, False)
    Path("nearer.txt").write_text("The limit is a number.\n")
    alone = place.overspill(*asked, "near.txt", "nearer.txt")
    assert "This comes nearest." in alone.err
    assert alone.out.count(".txt") == 1


def test_links_pipes_and_loops_in_a_folder_are_not_followed(place: Place, folder: Path):
    (place.root / "secret.txt").write_text("the retry limit is secret\n")
    (folder / "link.txt").symlink_to(place.root / "secret.txt")
    (folder / "loop").symlink_to(folder.absolute())
    os.mkfifo(folder / "pipe")
    result = place.overspill("extract", "what is the retry limit", "project")
    assert result.code == 0
    assert "secret" not in result.out
    assert result.out.count("limits.txt") == 1


def test_several_files_are_told_apart_in_json(place: Place, folder: Path):
    args = ("extract", "what is the retry limit", "project/deep/er/limits.txt", "project/other.txt", "project/packed.gz")
    found = json.loads(place.overspill(*args, "--json").out)
    assert {each["file"] for each in found} == {"project/deep/er/limits.txt", "project/packed.gz"}
    lines = place.overspill(*args, "--jsonl").out.splitlines()
    assert [json.loads(line) for line in lines] == found
    (line,) = place.overspill(*args[:3], "--jsonl").out.splitlines()
    assert json.loads(line)["file"] == "project/deep/er/limits.txt"


def test_what_does_not_fit_is_said(place: Place):
    Path("many").mkdir()
    for number in range(12):
        Path(f"many/{number}.txt").write_text(f"retry limit of part {number}: {number}\n" * 40)
    result = place.overspill("extract", "retry limit", "many", "--max-tokens", "700")
    assert result.code == 0
    assert "more files with matches did not fit: " in result.err
    assert "Raise --max-tokens." in result.err
    shown = sum(line.startswith("many/") for line in result.out.splitlines())
    assert f"{12 - shown} more files" in result.err


@pytest.mark.promise("nothing-lost")
def test_a_named_file_that_cannot_be_read_is_an_error_and_the_others_are_searched(place: Place, folder: Path):
    result = place.overspill("extract", "what is the retry limit", "project/image.bin", "project/deep/er/limits.txt")
    assert result.code == 2
    assert ANSWER in result.out
    assert "overspill: error: project/image.bin" in result.err


def test_nothing_found_in_many_files_ends_with_1(place: Place, folder: Path):
    result = place.overspill("extract", "zebra crossing", "project", "project/other.txt")
    assert (result.code, result.out) == (1, "")
    assert "No match in " in result.err
    assert place.overspill("extract", "zebra crossing", "project", "-q") == (1, "", "")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("x", "nowhere", "project"), "nowhere cannot be read: No such file or directory."),
        (("x", "project", "-"), "Standard input cannot be searched together with files. Leave out `-`."),
    ],
)
def test_a_mistake_is_one_line(place: Place, folder: Path, args: tuple[str, ...], message: str):
    assert place.overspill("extract", *args) == (2, "", f"overspill: error: {message}\n")


def test_hits_are_highlighted_on_a_terminal_and_nowhere_else(place: Place, folder: Path):
    file = "project/deep/er/limits.txt"
    code, seen = on_a_terminal("extract", "what is the retry limit", file)
    assert (code, "the \x1b[1;31mretry\x1b[0m \x1b[1;31mlimit\x1b[0m is 7" in seen) == (0, True)
    assert "\x1b[1;31m" not in on_a_terminal("extract", "what is the retry limit", file, "--color", "never")[1]
    assert "\x1b" not in place.overspill("extract", "what is the retry limit", file).out
    assert "\x1b[1;31mretry" in place.overspill("extract", "what is the retry limit", file, "--color", "always").out


def test_colors_of_others_cannot_control_a_terminal_and_reach_a_pipe_unchanged(place: Place):
    Path("log.txt").write_text("plain\n" * 30 + "retry \x1b]0;owned\x07 limit\n" + "plain\n" * 30)
    assert "\x1b]0;" not in place.overspill("extract", "retry limit", "log.txt", "--color", "always").out
    assert "\x1b]0;" not in on_a_terminal("extract", "retry limit", "log.txt")[1]


@pytest.mark.slow
def test_progress_has_an_end_if_the_size_is_known(place: Place):
    Path("large.log").write_text("all is well\n" * 900_000 + "retry limit\n")
    code, seen = on_a_terminal("extract", "retry limit", "large.log")
    assert (code, "of 10.8 MB" in seen) == (0, True)
    assert "of 10.8 MB" not in on_a_terminal("extract", "retry limit", "large.log", "-q")[1]


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize("watched", [False, True])
def test_a_file_that_does_not_exist_is_an_error_and_the_others_are_searched(place: Place, folder: Path, watched: bool):
    args = ("extract", "what is the retry limit", "project/gone.txt", "project/deep/er/limits.txt")
    code, *shown = on_a_terminal(*args) if watched else place.overspill(*args)
    assert code == 2
    assert ANSWER.strip() in shown[0].replace("\x1b[1;31m", "").replace("\x1b[0m", "")
    assert "project/gone.txt cannot be read: No such file or directory." in "".join(shown)


def test_small_files_are_searched_in_one_session_which_leaves_nothing_behind(place: Place):
    Path("many").mkdir()
    for number in range(5):
        Path(f"many/{number}.txt").write_text(f"the retry limit of part {number} is {number}\n")
    Path("many/same.txt").write_text("the retry limit of part 3 is 3\n")
    told = place.overspill("extract", "retry limit of part", "many", "-v", "--set", f"storeDir={place.root / 'here'}")
    sessions = re.findall(r"extracted from (session-[\w-]+)/", told.err)
    assert len(sessions) == 6
    assert len(set(sessions)) == 1
    assert told.out.count("many/") == 6  # also of two files with the same content
    assert not list((place.root / "here").rglob("session-*"))


@pytest.mark.parametrize(
    ("sizes", "batches"),
    [
        ([], []),
        ([1, 2, 3], [[1, 2, 3]]),
        ([MAX, 1], [[MAX], [1]]),
        ([MAX // 2, MAX // 2, 1], [[MAX // 2, MAX // 2], [1]]),
        ([5 * MAX, 5 * MAX], [[5 * MAX], [5 * MAX]]),
        ([1, 5 * MAX, 1], [[1], [5 * MAX], [1]]),
    ],
)
def test_copies_of_large_files_are_removed_before_the_next(sizes: list[int], batches: list[list[int]]):
    files = [SearchedFile(Path(str(number)), size, is_named=False) for number, size in enumerate(sizes)]
    assert [[file.size for file in batch] for batch in split_files(files)] == batches
