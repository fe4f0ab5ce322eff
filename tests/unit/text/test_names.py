"""The two names of a server's tool."""

import pytest

from overspill.text.names import assign_prefixes, own_name, qualify_name


@pytest.mark.parametrize(
    ("tool", "server", "offered"),
    [
        ("log", "depot", "depot__log"),
        ("read.file", "my depot", "my_depot__read_file"),
        ("log", "depot" * 20, ("depot" * 20)[:64]),
    ],
)
def test_a_model_calls_a_servers_tool_by_a_name_that_every_provider_takes(tool: str, server: str, offered: str):
    assert qualify_name(tool, server) == offered


@pytest.mark.parametrize(
    ("name", "server", "own"),
    [
        ("depot__log", "depot", "log"),
        ("log", "depot", "log"),
        ("depot__log", "", "depot__log"),
        ("depot__log", "other", "depot__log"),
        ("my_depot__log", "my depot", "log"),
        ("my depot__log", "my depot", "log"),
        ("depot__depot__log", "depot", "depot__log"),
        ("a__b__log", "a__b", "log"),
        ("depot__", "depot", "depot__"),
        ("depot_log", "depot", "depot_log"),
    ],
)
def test_a_tools_own_name_is_the_one_without_its_server(name: str, server: str, own: str):
    assert own_name(name, server) == own


def test_no_two_servers_have_one_prefix():
    assert assign_prefixes(["my server", "my.server", "time", "my_server", "ü"]) == {
        "my server": "my_server_2__",
        "my.server": "my_server_3__",
        "time": "time__",
        "my_server": "my_server__",
        "ü": "___",
    }
