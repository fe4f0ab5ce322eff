"""A server whose schemas want to read our files, reach others, or keep us busy for ever; the proxy as a user starts it."""

from __future__ import annotations

import json
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.wire import PATIENCE, Process, proxied

SERVER = Path(__file__).parents[1] / "servers" / "schemas.py"
SECRET = "the content of a file of yours"  # noqa: S105
PATTERN = {"properties": {"it": {"pattern": "^(a+)+$"}}}
DOUBLING = {
    "properties": {"it": {"$ref": "#/$defs/0"}},
    "$defs": {str(n): {"allOf": [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(60)} | {"60": {}},
}


def serving(schema: Any, home: Path) -> Process:
    command = proxied([sys.executable, str(SERVER), json.dumps(schema)], "--set", "toolResponseMaxBytes=1000")
    return Process(command, env={"HOME": str(home), "XDG_STATE_HOME": str(home), "XDG_CONFIG_HOME": str(home)})


def greeted(wire: Process) -> str:
    """A reference to 35 letters that almost match."""
    wire.hello()
    wire.names()
    text = wire.text("give", {"text": "a" * 35 + "!\n" + "more\n" * 1000})
    found = re.search(r'(?:handle = "|handle |stored as )([^".\s]+)', text)
    assert found, text
    return f"{{{{output:{found[1]}#L1-1}}}}"


@pytest.mark.slow
def test_a_file_that_a_schema_names_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "secret.json"
    file.write_text(json.dumps({"const": SECRET}))
    with serving({"properties": {"it": {"$ref": file.as_uri()}}}, tmp_path) as wire:
        assert wire.text("take", {"it": greeted(wire)}) == "taken"
        assert SECRET not in json.dumps(wire.received)


@pytest.mark.slow
def test_a_pattern_that_others_need_ages_for_is_matched_in_no_time(tmp_path: Path) -> None:
    with serving(PATTERN, tmp_path) as wire:
        assert wire.text("take", {"it": greeted(wire)}) == (
            "With the references filled in, the arguments do not suit the tool take: "
            '$.it breaks the rule {"pattern":"^(a+)+$"}. It was not called.'
        )


@pytest.mark.slow
def test_what_takes_too_long_to_check_is_left_to_the_server(tmp_path: Path) -> None:
    with serving(DOUBLING, tmp_path) as wire:
        assert wire.text("take", {"it": greeted(wire)}) == "taken"


@pytest.mark.slow
@pytest.mark.parametrize("schema", [PATTERN, DOUBLING])
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_proxy_while_it_checks(tmp_path: Path, schema: Any, ending: signal.Signals) -> None:
    with serving(schema, tmp_path) as wire:
        wire.begin("tools/call", {"name": "take", "arguments": {"it": greeted(wire)}})
        assert wire.result("ping") == {}
        wire.process.send_signal(ending)
        assert wire.process.wait(PATIENCE) == 0
