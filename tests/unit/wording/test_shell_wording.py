"""What a model reads that calls Overspill from a shell."""

import shlex

from msgspec.structs import replace

from overspill.types import Kept, Size
from overspill.wording import presets, replies, shell
from overspill.wording.names import NextStep, next_calls

SESSION = "01a1dd7b-0000-7000-8000-000000000001"
FILE = "01a1dd7b-13a4-7c37-a821-1e5e402e61f9"
NAME = "out_sfrw20"
KEPT = Kept(SESSION, FILE, "make", "size_cap", Size(45678, 45000, 1234, 8900), "", 0, source="make")
AT_A_SHELL = ("overspill get",)


def test_the_message_names_commands():
    assert replies.stored_message(KEPT, AT_A_SHELL) == (
        f"Tool output is too large (45678 bytes, 1234 lines, 8900 tokens), stored as {NAME}.\n"
        f"Read it with overspill get {NAME} --grep words or overspill get {NAME} --ask 'what you need'."
    )


def test_every_next_step_is_one_command_whatever_the_output_chose():
    steps = [
        NextStep("grep", "it's|$(id)"),
        NextStep("query", "/a;b"),
        NextStep("lines", "1-9"),
    ]
    said = next_calls(NAME, steps, AT_A_SHELL)
    first, *more = said.removeprefix("Next: ").split(", or with ")
    assert shlex.split(first) == ["overspill", "get", NAME, "--ask", "<your question> (<other words for it>)"]
    assert [shlex.split(each) for each in more] == [["--grep", "it's|$(id)"], ["--query", "/a;b"], ["--lines", "1-9"]]


def test_other_messages_name_commands_too():
    assert f"To see it again, call overspill get {NAME}." in presets.OVERSPILL.repeated_output(KEPT, "make", AT_A_SHELL)
    binary = replace(KEPT, media="binary")
    shown = presets.OVERSPILL.binary_message(binary, "Gzip data", AT_A_SHELL, has_text=True)
    assert f"Search the text in it with overspill get {NAME} --ask 'what to extract'." in shown
    assert f"Read its bytes with overspill get {NAME} --bytes 0-999." in shown
    incomplete = presets.OVERSPILL.incomplete_output(KEPT, 99_999, "the disk is full.", AT_A_SHELL)
    assert f"Read what was saved with overspill get {NAME} --lines 1-100." in incomplete


def test_a_command_in_the_background():
    assert shell.still_running("art_1", 20) == (
        "Still running after 20 s, and continuing in the background. What it prints is kept, standard error included.\n"
        "Wait for it with overspill get art_1 --wait 60, or read what it has printed so far with overspill get art_1."
    )
    assert shell.so_far(12.3, 5) == "[Still running, for 12 s. This is what it has printed so far.]"
    assert shell.so_far(12.3, 0) == "[Still running, for 12 s. It has printed nothing so far.]"
    assert shell.interrupted(5) == ("[Interrupted before the command ended. This is what had been stored by then.]")
    assert shell.interrupted(0) == "[Interrupted before the command ended. Nothing had been stored by then.]"
    assert (shell.ended(3), shell.ended(-9)) == (
        "[The command ended with exit code 3.]",
        "[Signal 9 ended the command.]",
    )


def test_the_skill_is_a_few_lines_and_its_header_names_it():
    assert len(shell.SKILL.splitlines()) < 25
    assert shell.SKILL_HEADER.startswith("---\nname: overspill\ndescription: ")
