"""A server lists tools, prompts and resources that no client could read: those are left out and named, all others stay."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from upstream import SERVERS, up
from wire import Process, Served, config, proxied

from overspill.mcp.client.config import ServerConfig

FINE = {"name": "fine", "description": "Works.", "inputSchema": {"type": "object"}, "x-own": [1]}
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


def nested(levels: int) -> str:
    return '{"properties":' * levels + "{}" + "}" * levels


def tool(**fields: Any) -> str:
    return json.dumps({"name": "bad", "inputSchema": {"type": "object"}} | fields)


BAD_TOOLS = {
    "null": ("null", "number 1 (not an object)"),
    "a string": ('"bad"', "number 1 (not an object)"),
    "empty": ("{}", "number 1 (no name)"),
    "name null": (tool(name=None), "number 1 (no name)"),
    "name a list": (tool(name=["bad"]), "number 1 (no name)"),
    "name empty": (tool(name=""), "number 1 (no name)"),
    "name long": (tool(name="b" * 10_000), f"'{'b' * 99}…' (a name of more than 256 characters)"),
    "name with half a character": (tool(name="b\ud800"), "'b\\ud800' (not valid Unicode)"),
    "name with lines": (tool(name="bad\n\x1b[31mred", title=7), "'bad \\x1b[31mred' (bad title)"),
    "schema null": (tool(inputSchema=None), "'bad' (bad inputSchema)"),
    "schema a list": (tool(inputSchema=[]), "'bad' (bad inputSchema)"),
    "schema of a string": (tool(inputSchema={"type": "string"}), "'bad' (bad inputSchema)"),
    "schema with odd properties": (tool(inputSchema={"type": "object", "properties": 7}), "'bad' (bad inputSchema)"),
    "schema with odd requirements": (tool(inputSchema={"type": "object", "required": [7]}), "'bad' (bad inputSchema)"),
    "schema nested": (f'{{"name":"bad","inputSchema":{nested(300)}}}', "'bad' (nested more than 100 levels deep)"),
    "schema nested in lists": (
        f'{{"name":"bad","inputSchema":{{"enum":{"[" * 190 + "]" * 190}}}}}',
        "'bad' (nested more than 100 levels deep)",
    ),
    "output schema nested": (
        f'{{"name":"bad","inputSchema":{{}},"outputSchema":{nested(300)}}}',
        "'bad' (nested more than 100 levels deep)",
    ),
    "output schema a number": (tool(outputSchema=7), "'bad' (bad outputSchema)"),
    "huge": (tool(description="SECRET " * 200_000), "'bad' (more than 1,048,576 bytes)"),
    "description a number": (tool(description=7), "'bad' (bad description)"),
    "description with half a character": (tool(description="half \ud83d"), "'bad' (not valid Unicode)"),
    "annotations odd": (tool(annotations={"readOnlyHint": "SECRET"}), "'bad' (bad annotations)"),
    "name twice": (tool(name="first") + "," + tool(name="first", title="again"), "'first' (another one has this name)"),
}
BAD_LISTS = {"null": "null", "a string": '"tools"', "an object": json.dumps(FINE), "missing": None}


class Lists:
    """A server that lists what it is told to."""

    def __init__(self, folder: Path, era: str, name: str) -> None:
        self.name = name
        self._command = [sys.executable, str(SERVERS / "lists.py"), era, str(folder / f"{name}.txt")]
        self._file = folder / f"{name}.txt"

    def set(self, **pages: list[str]) -> ServerConfig:
        """Each list by its method, `/` as `_`; each page as JSON."""
        lines = [f"{method.replace('_', '/')} {page}" for method, each in pages.items() for page in each]
        self._file.write_text("".join(f"{line}\n" for line in lines))
        return config(self._command, self.name)

    @contextmanager
    def over_http(self, *how: str) -> Iterator[ServerConfig]:
        process = subprocess.Popen([*self._command, "http", *how], stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout is not None
            yield ServerConfig(self.name, url=f"http://127.0.0.1:{process.stdout.readline().strip()}/mcp")
        finally:
            process.kill()
            process.communicate()


def tools(*entries: str) -> list[str]:
    return [f'{{"tools":[{",".join(entries)}]}}']


@pytest.mark.slow
@ERAS
def test_a_malformed_tool_is_left_out_and_named_once_and_all_others_stay(tmp_path: Path, era: str):
    servers = [Lists(tmp_path, era, name) for name in ("hostile", "good")]
    configs = [servers[0].set(), servers[1].set(tools_list=tools(json.dumps(FINE)))]
    with Served(configs, tmp_path / "store", modern=era == "modern", tools_always=True) as wire:
        wire.hello()
        for kind, (bad, named) in BAD_TOOLS.items():
            servers[0].set(tools_list=tools(bad, json.dumps(FINE)))
            logged = len(wire.log)
            for _ in range(2):
                listed = [each for each in wire.result("tools/list")["tools"] if "__" in each["name"]]
                first = ["hostile__first"] if kind == "name twice" else []
                assert [each["name"] for each in listed] == [*first, "hostile__fine", "good__fine"], kind
                assert listed[-2] == {**FINE, "name": "hostile__fine"}
            assert wire.text("hostile__fine") == "called fine"
            words = "The server hostile lists tools that cannot be used, so they are left out"
            number = named.replace("number 1", "number 2") if kind == "name twice" else named
            assert wire.log[logged:] in ([f"{words}: {number}."], []), kind
            assert f"{words}: {number}." in wire.log, kind
    assert "SECRET" not in "".join(wire.log)


@ERAS
def test_the_only_server_keeps_its_other_tools_on_every_page(tmp_path: Path, era: str):
    server = Lists(tmp_path, era, "only")
    pages = [
        f'{{"tools":[{tool(name=None)},{json.dumps(FINE)},7],"nextCursor":"1","x":1}}',
        f'{{"tools":[{json.dumps(FINE)},{tool(name="second")},{{"name":"deep","inputSchema":{nested(300)}}}]}}',
    ]
    with Served([server.set(tools_list=pages)], tmp_path / "store", modern=era == "modern", tools_always=True) as wire:
        wire.hello()
        assert wire.names()[:2] == ["fine", "second"]
        assert wire.names()[:2] == ["fine", "second"]
        assert "get_tool_output" in wire.names()
    start = "The server only lists tools that cannot be used, so they are left out"
    assert wire.log == [
        f"{start}: number 1 (no name), number 3 (not an object).",
        f"{start}: 'fine' (another one has this name), 'deep' (nested more than 100 levels deep).",
    ]


@pytest.mark.parametrize("kind", BAD_LISTS)
@pytest.mark.parametrize("several", [False, True])
def test_a_list_that_is_none_hides_no_other_tools(tmp_path: Path, kind: str, several: bool):
    value = BAD_LISTS[kind]
    bad = Lists(tmp_path, "legacy", "bad").set(tools_list=["{}" if value is None else f'{{"tools":{value}}}'])
    good = Lists(tmp_path, "legacy", "good").set(tools_list=tools(json.dumps(FINE)))
    with Served([bad, good][: 1 + several], tmp_path / "store", tools_always=True) as wire:
        wire.hello()
        found = wire.names()
    assert "get_tool_output" in found
    assert ("good__fine" in found) is several
    named = "a page that is not a list of tools"
    assert wire.log == [f"The server bad lists tools that cannot be used, so they are left out: {named}."]


@pytest.mark.parametrize("several", [False, True])
@ERAS
def test_prompts_and_resources_are_kept_in_the_same_way(tmp_path: Path, era: str, several: bool):
    lists = {
        "prompts_list": '{"prompts":[{"name":null},{"name":"p","arguments":7},{"name":"p"},[]]}',
        "resources_list": '{"resources":[{"name":"r"},{"name":"r","uri":7},{"name":"r","uri":"file:///r"},null]}',
        "resources_templates_list": '{"resourceTemplates":[{"name":"t","uriTemplate":"file:///{a}"},{"name":"t"}]}',
    }
    bad = Lists(tmp_path, era, "bad").set(**{method: [page] for method, page in lists.items()})
    good = Lists(tmp_path, era, "good").set(prompts_list=['{"prompts":[{"name":"p"}]}'])
    with Served([bad, good][: 1 + several], tmp_path / "store", modern=era == "modern") as wire:
        wire.hello()
        prompts = [each["name"] for each in wire.result("prompts/list")["prompts"]]
        resources = [each["uri"] for each in wire.result("resources/list")["resources"]]
        templates = [each["uriTemplate"] for each in wire.result("resources/templates/list")["resourceTemplates"]]
    assert (prompts, resources) == (["bad__p", "good__p"] if several else ["p"], ["file:///r"])
    assert templates == ["file:///{a}"]
    start = "The server bad lists {} that cannot be used, so they are left out: {}."
    assert wire.log == [
        start.format("prompts", "number 1 (no name), 'p' (bad arguments), number 4 (not an object)"),
        start.format("resources", "'r' (bad uri), 'r' (bad uri), number 4 (not an object)"),
        start.format("resourceTemplates", "'t' (bad uriTemplate)"),
    ]


@pytest.mark.parametrize("how", [(), ("sse",)])
@ERAS
def test_a_deep_schema_of_a_server_over_http_costs_only_its_own_tool(tmp_path: Path, era: str, how: tuple[str, ...]):
    server = Lists(tmp_path, era, "web")
    deep = [f'{{"name":"deep{n}","inputSchema":{{"title":"}}}}[","properties":{nested(n)}}}}}' for n in (180, 300, 900)]
    server.set(tools_list=tools(deep[0], json.dumps(FINE), *deep[1:], tool(name="last")))
    with server.over_http(*how) as found, Served([found], tmp_path / "store", modern=era == "modern") as wire:
        wire.hello()
        assert wire.names()[:2] == ["fine", "last"]
    assert [line.count("nested more than 100 levels deep") for line in wire.log] == [3]


def test_a_list_that_cannot_be_read_at_all_is_named(tmp_path: Path):
    deep = Lists(tmp_path, "legacy", "deep").set(tools_list=tools(f'{{"name":"deep","inputSchema":{nested(100_000)}}}'))
    good = Lists(tmp_path, "legacy", "good").set(tools_list=tools(json.dumps(FINE)))
    with Served([deep, good], tmp_path / "store") as wire:
        wire.hello()
        assert wire.names()[0] == "good__fine"
        assert wire.names()[0] == "good__fine"
    assert len([line for line in wire.log if line.startswith("The server deep did not list its tools: ")]) == 1


def test_many_malformed_tools_are_counted(tmp_path: Path):
    server = Lists(tmp_path, "legacy", "many").set(tools_list=tools(*["7"] * 5000, json.dumps(FINE)))
    with Served([server], tmp_path / "store") as wire:
        wire.hello()
        assert wire.names()[0] == "fine"
    (line,) = wire.log
    assert line.endswith("number 10 (not an object), 4,990 more.")


def test_two_tools_that_would_be_called_by_the_same_name_do_not_hide_each_other(tmp_path: Path):
    shadowed = Lists(tmp_path, "legacy", "a").set(tools_list=tools(tool(name="b__c"), tool(name="d")))
    other = Lists(tmp_path, "legacy", "a__b").set(tools_list=tools(tool(name="c")))
    with Served([shadowed, other], tmp_path / "store") as wire:
        wire.hello()
        assert [name for name in wire.names() if name.startswith("a__")] == ["a__d", "a__b__c"]
        assert wire.text("a__b__c") == "called c"
    assert wire.log == ["The tool a__b__c of the server a is left out: another one has this name."]


def test_a_schema_that_does_not_say_object_gets_it(tmp_path: Path):
    entries = ['{"name":"bare"}', '{"name":"empty","inputSchema":{}}', '{"name":"half","inputSchema":{"required":["a"]}}']
    with Served([Lists(tmp_path, "legacy", "lax").set(tools_list=tools(*entries))], tmp_path / "store") as wire:
        wire.hello()
        listed = wire.result("tools/list")["tools"][:3]
    schemas = [each["inputSchema"] for each in listed]
    assert schemas == [{"type": "object"}, {"type": "object"}, {"type": "object", "required": ["a"]}]
    assert wire.log == []


def test_an_agents_server_keeps_its_other_tools(tmp_path: Path):
    server = Lists(tmp_path, "legacy", "mine").set(tools_list=tools(*(bad for bad, _ in BAD_TOOLS.values()), json.dumps(FINE)))

    async def main() -> list[str]:
        async with up(server) as running:
            return [each["name"] for each in await running.list_tools()]

    assert anyio.run(main) == ["first", "fine"]


@pytest.mark.slow
def test_standard_error_of_the_command_names_the_tool(tmp_path: Path):
    server = Lists(tmp_path, "legacy", "s")
    server.set(tools_list=tools(tool(name="bad\x1b[2J", title=7), json.dumps(FINE)))
    command = [sys.executable, str(SERVERS / "lists.py"), "legacy", str(tmp_path / "s.txt")]
    environ = {"HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path), "PATH": os.environ["PATH"]}
    with Process(proxied(command), env=environ) as wire:
        wire.hello()
        assert wire.names()[0] == "fine"
        wire.end()
        assert wire.errors.count(b"left out: 'bad\\x1b[2J' (bad title)") == 1
