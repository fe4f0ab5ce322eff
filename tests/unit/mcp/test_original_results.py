"""A server's own result travels with the output through the gate, and comes back with the reply."""

from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

from overspill import Output, Session, Settings
from overspill.mcp.client.results import keep_short_fields, to_error_output, to_output
from overspill.settings import load

pytestmark = pytest.mark.anyio
SMALL = {"content": [{"type": "text", "text": "a few words"}], "_meta": {"trace": 1}}
LONG = "x" * 50_000
LARGE = {"content": [{"type": "text", "text": "many words " * 20_000}], "structuredContent": {"a": 1}, "_meta": {"trace": 2}}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load(cli={"storeDir": str(tmp_path)}).settings


@pytest.mark.parametrize(("result", "is_kept"), [(SMALL, False), (LARGE, True)])
async def test_the_reply_carries_the_very_result_that_the_server_sent(settings: Settings, result: dict[str, Any], is_kept: bool):
    async def tool() -> Output:
        return await to_output(result)

    async with Session(settings) as session:
        reply = await session.call("fetch", {}, tool)
    assert reply.original is result
    assert (reply.kept is not None) is is_kept


async def test_the_reply_carries_the_error_with_which_the_server_refused(settings: Settings):
    refusal = MCPError(-32602, "No such city.", {"city": "Atlantis"})

    async def tool() -> Output:
        return to_error_output(refusal)

    async with Session(settings) as session:
        reply = await session.call("forecast", {}, tool)
    assert reply.original is refusal
    assert reply.is_error
    assert reply.text == 'No such city.\n{"city":"Atlantis"}'


async def test_a_result_that_arrives_in_the_background_comes_with_no_reply(settings: Settings):
    async def tool() -> Output:
        return await to_output(SMALL)

    async with Session(settings) as session:
        reply = await session.call("fetch", {}, tool, background="now")
    assert reply.job is not None
    assert reply.original is None


@pytest.mark.parametrize("content", [7, "words", {"a": 1}, None, True])
async def test_content_that_is_no_list_passes_if_it_is_small(settings: Settings, content: Any):
    result = {"content": content}
    async with Session(settings) as session:
        reply = await session.call("fetch", {}, lambda: to_output(result))
    assert (reply.original, reply.kept) == (result, None)


@pytest.mark.parametrize(("content", "stored"), [(LONG, LONG), ({"a": LONG}, '{"a":"' + LONG + '"}')], ids=["string", "object"])
async def test_content_that_is_no_list_is_measured_like_any_other(settings: Settings, content: Any, stored: str):
    async with Session(settings) as session:
        reply = await session.call("fetch", {}, lambda: to_output({"content": content}))
        assert reply.kept is not None
        assert session.open(reply.kept.handle).text() == stored


LINK = {"type": "resource_link", "uri": "a:b", "name": "n"}
MANY: dict[str, dict[str, Any]] = {
    "links": {"content": [{**LINK, "uri": f"file:///folder/{number}"} for number in range(2000)]},
    "a description": {"content": [{**LINK, "description": LONG}]},
    "annotations": {"content": [{"type": "text", "text": "hi", "annotations": {"x": LONG}}]},
    "an address": {"content": [{"type": "resource", "resource": {"uri": LONG, "text": "hi"}}]},
    "a media type": {"content": [{"type": "image", "mimeType": LONG, "data": "QUJD"}]},
    "an unknown block": {"content": [{"type": "chart", "points": LONG}]},
    "no blocks": {"content": [None] * 10_000},
    "a text that is none": {"content": [{"type": "text", "text": {"a": LONG}}]},
    "empty texts": {"content": [{"type": "text", "text": ""}] * 2000},
    "an unknown field": {"content": [], "data": LONG},
}


@pytest.mark.promise("no-answer-over-budget")
@pytest.mark.parametrize("result", MANY.values(), ids=MANY)
async def test_what_is_neither_text_nor_data_is_measured_and_stored_too(settings: Settings, result: dict[str, Any]):
    async with Session(settings) as session:
        reply = await session.call("fetch", {}, lambda: to_output(result))
        assert reply.kept is not None
        assert len(str(reply.content)) < 10_000
        stored = session.open(reply.kept.handle).text()
    assert all(str(each["uri"]) in stored for each in result["content"] if each and "uri" in each)
    assert "data" not in keep_short_fields(result)


@pytest.mark.promise("small-things-untouched")
async def test_a_few_links_stay_in_their_place(settings: Settings):
    result = {"content": [{"type": "text", "text": LONG}, LINK], "x": 1, "_meta": {"widget": LONG}}
    async with Session(settings) as session:
        reply = await session.call("fetch", {}, lambda: to_output(result))
    assert reply.content[1:] == [LINK]
    assert keep_short_fields(result) == {"x": 1, "_meta": {"widget": LONG}}
