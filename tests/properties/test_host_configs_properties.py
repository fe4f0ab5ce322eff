"""Whatever a client's file looks like: wrapping and unwrapping it gives it back, and changes nothing else on the way."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from overspill.errors import SettingsError
from overspill.mcp.host_configs import rewriting
from overspill.mcp.host_configs.documents import ConfigText
from overspill.text import jsonc

LAUNCH = ["/opt/with space/overspill"]

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
tokens = st.text("abcXYZ-_.", min_size=1, max_size=6)
scalars = st.one_of(st.none(), st.booleans(), st.integers(-999, 999), words)
others = st.dictionaries(st.sampled_from(["cwd", "disabled", "timeout", "envFile", "alwaysAllow"]), scalars, max_size=3)

stdio = st.builds(
    lambda type_, command, args, env, rest: {**type_, "command": command, **args, **env, **rest},
    st.sampled_from([{}, {"type": "stdio"}]),
    words,
    st.one_of(st.just({}), st.lists(words, max_size=4).map(lambda args: {"args": args})),
    st.one_of(st.just({}), st.dictionaries(names, words, max_size=2).map(lambda env: {"env": env})),
    others,
)
urls = st.one_of(st.sampled_from(["http://localhost/mcp", "https://a.example/mcp?key=1", "${BASE}/mcp"]), words)
remote = st.builds(
    lambda type_, url, headers, rest: {**type_, "url": url, **headers, **rest},
    st.sampled_from([{}, {"type": "http"}, {"type": "streamable-http"}, {"type": "sse"}]),
    urls,
    st.one_of(st.just({}), st.dictionaries(tokens, words, max_size=3).map(lambda headers: {"headers": headers})),
    others,
)
entries = st.one_of(stdio, remote, scalars)
shuffled = entries.flatmap(
    lambda entry: st.permutations(list(entry.items())).map(dict) if isinstance(entry, dict) else st.just(entry)
)
files = st.builds(
    lambda key, servers, before, after: {**before, key: servers, **after},
    st.sampled_from(["mcpServers", "servers"]),
    st.dictionaries(names, shuffled, max_size=4),
    st.dictionaries(st.sampled_from(["inputs", "$schema"]), scalars),
    st.dictionaries(st.sampled_from(["preferences"]), st.lists(scalars, max_size=2)),
)
gaps = st.sampled_from(["", "", " ", "\n  ", "\r\n\t", "\n\n", ' // note, "x" [\n', "/* , } */", "\n  /* a\n b */ "])


@st.composite
def texts(draw: st.DrawFn) -> str:
    """A file written by somebody with a taste for comments, spaces and trailing commas."""
    ascii_only = draw(st.booleans())

    def written(value: Any) -> str:
        if isinstance(value, dict):
            members = [f"{written(key)}{draw(gaps)}:{draw(gaps)}{written(each)}" for key, each in value.items()]
            return "{" + listed(members) + "}"
        if isinstance(value, list):
            return "[" + listed([written(each) for each in value]) + "]"
        return json.dumps(value, ensure_ascii=ascii_only)

    def listed(parts: list[str]) -> str:
        trailing = "," if parts and draw(st.booleans()) else ""
        return ",".join(f"{draw(gaps)}{part}{draw(gaps)}" for part in parts) + trailing + draw(gaps)

    bom = draw(st.sampled_from(["", "\ufeff"]))
    return bom + draw(gaps) + written(draw(files)) + draw(gaps)


@given(texts())
def test_wrapping_and_unwrapping_gives_the_same_bytes(text: str):
    done = rewriting.wrap(ConfigText(text, "f"), LAUNCH)
    assert rewriting.unwrap(ConfigText(done.text, "f"), [text]).text == text


@given(texts())
def test_without_an_earlier_text_only_empty_arguments_may_be_new(text: str):
    done = rewriting.wrap(ConfigText(text, "f"), LAUNCH)
    back = [
        server.entry.value
        for server in rewriting.list_servers(ConfigText(rewriting.unwrap(ConfigText(done.text, "f")).text, "f"))
    ]
    before = [server.entry.value for server in rewriting.list_servers(ConfigText(text, "f"))]
    assert [_without_empty(entry) for entry in back] == [_without_empty(entry) for entry in before]


@given(texts())
def test_wrapping_twice_is_wrapping_once(text: str):
    done = rewriting.wrap(ConfigText(text, "f"), LAUNCH).text
    assert rewriting.wrap(ConfigText(done, "f"), LAUNCH).text == done
    jsonc.scan(done, "f")


@given(texts())
def test_wrapping_changes_nothing_beside_the_entries(text: str):
    done = rewriting.wrap(ConfigText(text, "f"), LAUNCH)
    before, after = (jsonc.scan(each, "f") for each in (text, done.text))
    outside = [(key.raw, child.raw) for key, child in zip(before.keys, before.children, strict=True)]
    kept = [(key.raw, child.raw) for key, child in zip(after.keys, after.children, strict=True)]
    tables = {'"mcpServers"', '"servers"'}
    assert [pair for pair in kept if pair[0] not in tables] == [pair for pair in outside if pair[0] not in tables]
    for server, wrapped in zip(
        rewriting.list_servers(ConfigText(text, "f")), rewriting.list_servers(ConfigText(done.text, "f")), strict=True
    ):
        if isinstance(server.entry.value, dict) and "command" in server.entry.value:
            ours = {"command", "args"}
            assert _but(wrapped.entry.value, ours) == _but(server.entry.value, ours)


@given(st.text('{}[]",:/*\\u0041truefalsn1.e- \n', max_size=40))
def test_any_text_is_read_or_refused(text: str):
    try:
        found = jsonc.scan(text, "f").value
    except SettingsError:
        return
    json.dumps(found)


@given(st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(words, inner), max_leaves=10))
def test_json_is_read_as_json(value: object):
    assert jsonc.scan(json.dumps(value), "f").value == value


def _without_empty(entry: Any) -> Any:
    return {key: value for key, value in entry.items() if (key, value) != ("args", [])} if isinstance(entry, dict) else entry


def _but(entry: dict[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key not in keys}
