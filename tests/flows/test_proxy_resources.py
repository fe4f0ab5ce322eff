"""Resources, prompts, errors and unknown answers over the limits: stored whole, shown in part, and all of it can be read."""

from __future__ import annotations

import base64
import json
import random
import string
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from upstream import script
from wire import Served, Wire

URI = "file:///notes.txt"
TEXT = "".join(f"{number:05} größer 漢字 🙂 {'x' * 20}\n" for number in range(2500))  # about 120 KB
LIMIT = 12_288
ERAS = pytest.mark.parametrize("era", ["legacy", "modern"])


class Answers:
    """What the server behind a proxy answers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.folder.mkdir()

    def set(self, method: str, **said: Any) -> None:
        (self.folder / f"{method.replace('/', '_')}.json").write_text(json.dumps(said))

    def contain(self, *entries: Any, **more: Any) -> None:
        self.set("resources/read", result={"contents": list(entries), **more})


@pytest.fixture
def answers(tmp_path: Path) -> Answers:
    return Answers(tmp_path / "answers")


@pytest.fixture
def wire(answers: Answers, tmp_path: Path) -> Iterator[Wire]:
    with opened(answers, tmp_path) as wire:
        yield wire


def opened(answers: Answers, place: Path, era: str = "legacy", client: str = "", **more: Any) -> Served:
    wire = Served([script("answers", era, str(answers.folder))], place / "store", modern=(client or era) == "modern", **more)
    wire.hello()
    return wire


def text(words: str = TEXT, uri: str = URI, **more: Any) -> dict[str, Any]:
    return {"uri": uri, "mimeType": "text/plain", "text": words, **more}


def read(wire: Wire, uri: str = URI) -> list[Any]:
    return wire.result("resources/read", {"uri": uri})["contents"]


def follow(wire: Wire, uri: str) -> list[Any]:
    """All parts from this link on, each of which has to be within the limit."""
    parts: list[Any] = []
    while uri:
        part, *more = read(wire, uri)
        assert part["uri"] == uri
        assert len(part.get("text", "").encode(errors="surrogatepass")) <= LIMIT
        parts.append(part["text"] if "text" in part else base64.b64decode(part["blob"]))
        uri = more[0]["uri"] if more else ""
    return parts


@pytest.mark.promise("nothing-lost")
@pytest.mark.parametrize(("era", "client"), [(a, b) for a in ("legacy", "modern") for b in ("legacy", "modern")])
def test_a_large_text_gets_its_beginning_and_links_to_its_parts(answers: Answers, tmp_path: Path, era: str, client: str) -> None:
    answers.contain(text(annotations={"priority": 1}), **({"resultType": "complete"} if era == "modern" else {}))
    with opened(answers, tmp_path, era, client) as wire:
        beginning, note = read(wire)
        assert beginning == {**text(TEXT[: len(beginning["text"])]), "annotations": {"priority": 1}}
        assert LIMIT - 4 < len(beginning["text"].encode()) <= LIMIT
        assert f"of {len(TEXT.encode()):,}. Read {note['uri']} for the next part, or" in note["text"]
        assert "To search all of it, call get_tool_output(" in note["text"]
        assert beginning["text"] + "".join(follow(wire, note["uri"])) == TEXT
        assert follow(wire, note["uri"]) == follow(wire, note["uri"])


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_a_client_of_every_older_version_reads_all_of_it(answers: Answers, tmp_path: Path, version: str) -> None:
    answers.contain(text())
    with Served([script("answers", "legacy", str(answers.folder))], tmp_path / "store") as wire:
        wire.version = version
        assert wire.hello()["protocolVersion"] == version
        beginning, note = read(wire)
        assert beginning["text"] + "".join(follow(wire, note["uri"])) == TEXT


@pytest.mark.promise("small-things-untouched")
@pytest.mark.parametrize(
    "result",
    [
        {"contents": [text("x" * LIMIT, _meta={"a": 1})], "_meta": {"b": [None]}, "own": 2},
        {"contents": [text("a"), {"uri": "file:///b", "blob": "A" * 100_000}, text("c")]},
        {"contents": []},
        {"contents": "odd"},
        {"contents": [None, 5, {"text": 7}]},
        {},
    ],
)
def test_a_resource_within_the_limits_is_the_same_in_every_field(answers: Answers, wire: Wire, result: Any) -> None:
    answers.set("resources/read", result=result)
    assert wire.result("resources/read", {"uri": URI}) == result


def test_a_part_of_dense_text_is_within_the_limit_of_tokens_too(answers: Answers, tmp_path: Path) -> None:
    answers.contain(text())
    with opened(answers, tmp_path, settings={"asyncTokenThreshold": 1000, "toolResponseMaxBytes": 0}) as wire:
        beginning, note = read(wire)
        assert 1000 < len(beginning["text"]) < 5000
        assert beginning["text"] + "".join(follow(wire, note["uri"])) == TEXT


def test_a_lower_limit_for_a_server_holds_for_its_parts(answers: Answers, tmp_path: Path) -> None:
    answers.contain(text())
    with opened(answers, tmp_path, settings={"servers": {"answers": {"toolResponseMaxBytes": 5000}}}) as wire:
        beginning, note = read(wire)
        parts = follow(wire, note["uri"])
        assert max(len(part.encode()) for part in parts) <= 5000
        assert beginning["text"] + "".join(parts) == TEXT


@pytest.mark.promise("nothing-lost")
def test_links_lead_to_what_was_read_even_if_the_resource_has_changed_since(answers: Answers, wire: Wire) -> None:
    answers.contain(text())
    first, link = read(wire)
    answers.contain(text("0" + TEXT + "grown\n"))
    second, later = read(wire)
    answers.contain(text("shrunk"))
    assert read(wire) == [text("shrunk")]
    assert first["text"] + "".join(follow(wire, link["uri"])) == TEXT
    assert second["text"] + "".join(follow(wire, later["uri"])) == "0" + TEXT + "grown\n"


def test_a_large_blob_becomes_a_note_and_its_bytes_can_be_read(answers: Answers, wire: Wire) -> None:
    data = bytes(range(256)) * 5000
    answers.contain({"uri": URI, "mimeType": "image/png", "blob": base64.b64encode(data).decode(), "_meta": {"a": 1}})
    (note,) = read(wire)
    assert (note["uri"], note["mimeType"], note["_meta"]) == (URI, "text/plain", {"a": 1})
    assert note["text"].startswith("image/png (1.3 MB) is stored and not shown.")
    link = next(word for word in note["text"].split() if word.startswith("overspill://"))
    assert b"".join(follow(wire, link)) == data


def test_a_blob_that_is_not_base64_is_stored_letter_by_letter(answers: Answers, wire: Wire) -> None:
    answers.contain({"uri": URI, "blob": "not base64! " * 200_000})
    (note,) = read(wire)
    link = next(word for word in note["text"].split() if word.startswith("overspill://"))
    assert "".join(follow(wire, link)) == "not base64! " * 200_000


def test_of_many_contents_the_first_come_whole_and_all_are_stored_as_json(answers: Answers, wire: Wire) -> None:
    entries = [text(f"content {number}", f"file:///{number}") for number in range(10_000)]
    answers.contain(*entries)
    *shown, note = read(wire)
    assert 100 < len(shown) < 250
    assert shown == entries[: len(shown)]
    assert note["text"].startswith(f"{len(shown)} of 10,000 contents are above.")
    rest = json.loads("[" + "".join(follow(wire, note["uri"])))
    assert [*shown, *rest] == entries


def test_of_several_large_contents_the_beginning_of_the_json_is_shown(answers: Answers, wire: Wire) -> None:
    entries = [text(TEXT, "file:///a"), {"uri": "file:///b", "blob": "AAEC"}, text("c", "file:///c")]
    answers.contain(*entries)
    beginning, note = read(wire)
    assert json.loads(beginning["text"] + "".join(follow(wire, note["uri"]))) == entries


def test_a_content_whose_other_fields_are_large_is_stored_as_json(answers: Answers, wire: Wire) -> None:
    entry = text("small", own=TEXT)
    answers.contain(entry)
    beginning, note = read(wire)
    assert json.loads(beginning["text"] + "".join(follow(wire, note["uri"]))) == [entry]


@pytest.mark.parametrize(
    "result",
    [
        {"contents": TEXT},
        {"contents": [TEXT]},
        {"contents": [{"uri": URI, "own": TEXT}]},
        {"contents": [{"text": [TEXT]}]},
        {"contents": [{"text": "small", "blob": "A" * 1_400_000}]},
        {"own": TEXT},
    ],
)
def test_an_answer_of_another_form_is_stored_and_becomes_an_error(answers: Answers, wire: Wire, result: Any) -> None:
    answers.set("resources/read", result=result)
    error = wire.request("resources/read", {"uri": URI})["error"]
    assert len(json.dumps(error)) < 1000
    assert json.loads("".join(follow(wire, error["data"]["uri"]))) == result


def test_a_text_with_half_characters_is_read_back_as_it_came(answers: Answers, wire: Wire) -> None:
    words = "a\ud800b" * 10_000
    answers.contain(text(words))
    beginning, note = read(wire)
    assert beginning["text"] + "".join(follow(wire, note["uri"])) == words


@pytest.mark.promise("nothing-lost")
def test_a_resource_that_cannot_be_stored_whole_does_not_pass(answers: Answers, tmp_path: Path) -> None:
    answers.contain(text())
    with opened(answers, tmp_path, settings={"truncation": {"maxArtifactSize": 100_000}}) as wire:
        error = wire.request("resources/read", {"uri": URI})["error"]
        assert "could not be stored whole: one output may have at most 100,000 bytes" in error["message"]
        answers.contain(text("small"))
        assert read(wire) == [text("small")]


@pytest.mark.slow
def test_fifty_megabytes_are_stored_whole(answers: Answers, wire: Wire) -> None:
    words = TEXT * 200
    answers.contain(text(words))
    beginning, note = read(wire)
    middle = len(words.encode()) // 2 // LIMIT * LIMIT
    (part, _) = read(wire, f"{note['uri'].partition('?')[0]}?from={middle}")
    assert beginning["text"] == words[: len(beginning["text"])]
    assert part["text"].strip("�") in words
    assert f"of {len(words.encode()):,}" in note["text"]


class TestLinks:
    """Forged links, those of others, and servers whose resources have such addresses."""

    @pytest.mark.promise("nobody-elses")
    def test_another_client_cannot_follow_them(self, answers: Answers, wire: Wire, tmp_path: Path) -> None:
        answers.contain(text())
        _, note = read(wire)
        answers.set("resources/read", error={"code": -32002, "message": "Resource not found"})
        with opened(answers, tmp_path / "other", settings={"storeDir": str(tmp_path / "other")}) as other:
            error = other.request("resources/read", {"uri": note["uri"]})["error"]
        assert error["code"] == -32602
        assert "No stored output has the handle" in error["message"]

    @pytest.mark.parametrize("query", ["from=x", "from=-1", "from=", "from=1e3"])
    def test_a_forged_offset_is_an_error(self, answers: Answers, wire: Wire, query: str) -> None:
        answers.contain(text())
        uri = read(wire)[1]["uri"].partition("?")[0]
        answers.set("resources/read", error={"code": -32002, "message": "Resource not found"})
        assert wire.request("resources/read", {"uri": f"{uri}?{query}"})["error"]["code"] == -32602

    def test_an_offset_past_the_end_is_empty(self, answers: Answers, wire: Wire) -> None:
        answers.contain(text())
        uri = read(wire)[1]["uri"].partition("?")[0]
        assert [part["text"] for part in read(wire, f"{uri}?from=99999999999999999999")] == [""]

    def test_an_expired_output_is_an_error_that_says_so(self, answers: Answers, wire: Wire, tmp_path: Path) -> None:
        answers.contain(text())
        uri = read(wire)[1]["uri"]
        name = uri.partition("?")[0].rpartition("/")[2]
        (stored,) = [path for path in (tmp_path / "store").rglob(f"*{name}*") if path.is_file()]
        stored.unlink()
        answers.set("resources/read", error={"code": -32002, "message": "Resource not found"})
        error = wire.request("resources/read", {"uri": uri})["error"]
        assert error["code"] == -32602
        assert "expired" in error["message"]

    @ERAS
    def test_a_server_may_have_resources_with_such_addresses(self, answers: Answers, tmp_path: Path, era: str) -> None:
        """It may be a proxy too."""
        stamps = {"resultType": "complete"} if era == "modern" else {}
        uri = "overspill://session-00000000-0000-4000-8000-000000000000/00000000-0000-4000-8000-000000000000?from=5"
        answers.contain(text("theirs", uri), **stamps)
        with opened(answers, tmp_path, era) as wire:
            assert read(wire, uri) == [text("theirs", uri)]

    def test_of_several_servers_none_is_asked_for_an_unknown_output(self, answers: Answers, tmp_path: Path) -> None:
        """Its answer could pass for what another server said."""
        answers.contain(text("forged"))
        servers = [script("answers", "legacy", str(answers.folder), name=name) for name in ("one", "two")]
        with Served(servers, tmp_path / "store") as wire:
            wire.hello()
            assert "No stored output" in wire.request("resources/read", {"uri": "overspill://out_3f7k9q"})["error"]["message"]

    def test_servers_with_the_same_uri_do_not_share_parts(self, tmp_path: Path) -> None:
        first, second = Answers(tmp_path / "first"), Answers(tmp_path / "second")
        for each, words in ((first, TEXT), (second, TEXT[::-1])):
            each.contain(text(words))
            each.set("resources/list", result={"resources": [{"uri": URI, "name": "notes"}]})
        servers = [script("answers", "legacy", str(each.folder), name=each.folder.name) for each in (first, second)]
        with Served(servers, tmp_path / "store") as wire:
            wire.hello()
            beginning, note = read(wire)
            assert beginning["text"] + "".join(follow(wire, note["uri"])) == TEXT


class TestPass:
    """Whoever reads resources for a person or a program gets them whole."""

    def test_the_inspector_is_known_to(self, answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("wire.INFO", {"name": "mcp-inspector", "version": "1"})
        answers.contain(text())
        with opened(answers, tmp_path) as wire:
            assert read(wire) == [text()]

    @pytest.mark.parametrize(
        ("settings", "count"),
        [
            ({"resources": "pass"}, 1),
            ({"clients": {"Wire": {"resources": "pass"}}}, 1),
            ({"clients": {"other": {"resources": "pass"}}}, 2),
            ({"resources": "pass", "clients": {"wire": {"resources": "gate"}}}, 2),
        ],
    )
    def test_a_user_can_choose_for_all_clients_or_for_one(
        self, answers: Answers, tmp_path: Path, settings: Any, count: int
    ) -> None:
        answers.contain(text())
        answers.set("vendor/export", result={"rows": TEXT})
        with opened(answers, tmp_path, settings=settings) as wire:
            assert len(read(wire)) == count
            assert "error" in wire.request("vendor/export", {})

    def test_a_user_can_have_resources_gated_for_a_client_that_is_known_to_read_them_whole(
        self, answers: Answers, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("wire.INFO", {"name": "mcp-inspector", "version": "1"})
        answers.contain(text())
        with opened(answers, tmp_path, settings={"resources": "gate"}) as wire:
            assert len(read(wire)) == 2

    @pytest.mark.parametrize(("uri", "extension"), [("ui://clock/app.html", "ui"), ("skill://pdf/SKILL.md", "skills")])
    def test_an_app_and_a_skill_pass_to_clients_that_declare_the_extension(
        self, answers: Answers, tmp_path: Path, uri: str, extension: str
    ) -> None:
        answers.contain(text(uri=uri))
        for known, count in (("other", 2), (extension, 1)):
            with Served([script("answers", "legacy", str(answers.folder))], tmp_path / f"store{count}") as wire:
                wire.capabilities = {"extensions": {f"io.modelcontextprotocol/{known}": {}}}
                wire.hello()
                assert len(read(wire, uri)) == count

    @pytest.mark.parametrize("rule", [{"off": True}, {"toolResponseMaxBytes": 1_000_000}])
    def test_a_rule_for_the_method_works_as_for_a_tool(self, answers: Answers, tmp_path: Path, rule: Any) -> None:
        answers.contain(text())
        with opened(answers, tmp_path, settings={"truncation": {"overrides": {"resources/read": rule}}}) as wire:
            assert read(wire) == [text()]

    def test_a_dry_run_says_what_would_be_stored(self, answers: Answers, tmp_path: Path) -> None:
        answers.contain(text())
        with opened(answers, tmp_path, dry_run=True) as wire:
            assert isinstance(wire, Served)
            assert read(wire) == [text()]
            assert "dry run: resources/read of answers would be stored" in "\n".join(wire.log)


def message(**content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def embedded(words: str, uri: str = URI) -> dict[str, Any]:
    return message(type="resource", resource=text(words, uri))


class TestPrompts:
    def test_a_large_embedded_resource_becomes_a_link(self, answers: Answers, wire: Wire) -> None:
        question = message(type="text", text="Summarise this.")
        answers.set("prompts/get", result={"description": "d", "messages": [question, embedded(TEXT), embedded("small")]})
        result = wire.result("prompts/get", {"name": "p"})
        before, linked, after = result["messages"]
        link = linked["content"]
        assert (result["description"], before, after, linked["role"]) == ("d", question, embedded("small"), "user")
        assert (link["type"], link["mimeType"], link["size"]) == ("resource_link", "text/plain", len(TEXT.encode()))
        assert link["title"] == "prompts/get: notes.txt"
        assert "".join(follow(wire, link["uri"])) == TEXT

    def test_resources_are_measured_together(self, answers: Answers, wire: Wire) -> None:
        messages = [embedded("x" * 5000) for _ in range(100)]
        answers.set("prompts/get", result={"messages": messages})
        shown = wire.result("prompts/get", {"name": "p"})["messages"]
        assert [each["content"]["type"] for each in shown] == ["resource"] * 2 + ["resource_link"] * 98

    def test_a_large_image_becomes_a_link(self, answers: Answers, wire: Wire) -> None:
        data = bytes(range(256)) * 5000
        image = message(type="image", mimeType="image/png", data=base64.b64encode(data).decode())
        answers.set("prompts/get", result={"messages": [image]})
        link = wire.result("prompts/get", {"name": "p"})["messages"][0]["content"]
        assert b"".join(follow(wire, link["uri"])) == data

    def test_a_client_that_knows_no_links_gets_a_text(self, answers: Answers, tmp_path: Path) -> None:
        answers.set("prompts/get", result={"messages": [embedded(TEXT)]})
        with Served([script("answers", "legacy", str(answers.folder))], tmp_path / "store") as wire:
            wire.version = "2025-03-26"
            wire.hello()
            content = wire.result("prompts/get", {"name": "p"})["messages"][0]["content"]
            link = next(word for word in content["text"].split() if word.startswith("overspill://")).strip(",.")
            assert (content["type"], "".join(follow(wire, link))) == ("text", TEXT)

    @pytest.mark.promise("small-things-untouched")
    @pytest.mark.parametrize(
        "messages",
        [
            [message(type="text", text=TEXT)],
            [embedded("small"), message(type="image", data="AAEC", mimeType="image/png")],
            [message(type="resource", resource={"uri": URI, "blob": "A" * 100_000})],
            [None, {"role": "user"}, message(type="resource", resource=7), {"role": "user", "content": [1]}],
        ],
    )
    def test_everything_else_passes(self, answers: Answers, wire: Wire, messages: Any) -> None:
        """A long text too: it is an instruction that a person chose, and half of it would be another one."""
        answers.set("prompts/get", result={"messages": messages})
        assert wire.result("prompts/get", {"name": "p"}) == {"messages": messages}


class TestOthers:
    def test_a_large_answer_to_an_unknown_method_is_stored_and_becomes_an_error(self, answers: Answers, wire: Wire) -> None:
        answers.set("vendor/export", result={"rows": TEXT})
        error = wire.request("vendor/export", {})["error"]
        assert error["message"].startswith("vendor/export of the server has ")
        assert json.loads("".join(follow(wire, error["data"]["uri"]))) == {"rows": TEXT}
        answers.set("vendor/export", result={"rows": [1]})
        assert wire.result("vendor/export", {}) == {"rows": [1]}

    def test_a_large_answer_where_none_is_expected_is_stored_too(self, answers: Answers, wire: Wire) -> None:
        answers.set("resources/subscribe", result={"own": TEXT})
        error = wire.request("resources/subscribe", {"uri": URI})["error"]
        assert json.loads("".join(follow(wire, error["data"]["uri"]))) == {"own": TEXT}

    @pytest.mark.parametrize("method", ["resources/read", "prompts/get", "completion/complete", "vendor/export"])
    @pytest.mark.parametrize("parts", [(TEXT, None), ("no", {"why": TEXT})])
    def test_a_large_error_is_stored(self, answers: Answers, wire: Wire, method: str, parts: tuple[str, Any]) -> None:
        words, data = parts
        answers.set(method, error={"code": -32002, "message": words, **({"data": data} if data else {})})
        error = wire.request(method, {"uri": URI})["error"]
        assert (error["code"], len(json.dumps(error)) < LIMIT) == (-32002, True)
        assert error["message"].startswith(words[:20].strip())
        assert json.loads("".join(follow(wire, error["data"]["uri"]))) == [words, data]

    def test_a_subscription_to_a_large_resource_reports_its_own_uri(self, answers: Answers, wire: Wire) -> None:
        answers.contain(text())
        answers.set("resources/subscribe", result={})
        assert wire.result("resources/subscribe", {"uri": URI}) == {}
        beginning, note = read(wire)
        update = {"method": "notifications/resources/updated", "params": {"uri": URI}}
        answers.set("ping/me", first=[update], result={})
        wire.result("ping/me", {})
        assert wire.told("notifications/resources/updated")["params"] == {"uri": URI}
        assert beginning["text"] + "".join(follow(wire, note["uri"])) == TEXT

    def test_a_large_message_of_a_channel_becomes_a_link(self, answers: Answers, wire: Wire) -> None:
        pushed = [
            {"method": "notifications/claude/channel", "params": {"content": words, "meta": {"from": "ci"}}}
            for words in (TEXT, "small")
        ]
        answers.set("ping/me", first=pushed, result={})
        wire.result("ping/me", {})
        large, small = [each["params"] for each in wire.received if each.get("method") == "notifications/claude/channel"]
        assert small == {"content": "small", "meta": {"from": "ci"}}
        assert large["meta"] == {"from": "ci"}
        assert large["content"].startswith("A message (120 KB) is stored and not shown.")
        link = next(word for word in large["content"].split() if word.startswith("overspill://"))
        assert "".join(follow(wire, link)) == TEXT

    def test_a_large_unknown_notification_is_stored_and_named_in_the_log(self, answers: Answers, tmp_path: Path) -> None:
        pushed = [{"method": "notifications/vendor", "params": {"rows": words}} for words in (TEXT, "small")]
        answers.set("ping/me", first=pushed, result={})
        with opened(answers, tmp_path) as wire:
            assert isinstance(wire, Served)
            wire.result("ping/me", {})
            assert [each["params"] for each in wire.received if "vendor" in each.get("method", "")] == [{"rows": "small"}]
            (line,) = [line for line in wire.log if "notifications/vendor" in line]
            link = next(word for word in line.split() if word.startswith("overspill://")).rstrip(".")
            assert json.loads("".join(follow(wire, link))) == {"rows": TEXT}

    def test_a_log_message_and_a_question_to_a_person_pass_at_any_size(self, answers: Answers, wire: Wire) -> None:
        said = {"method": "notifications/message", "params": {"level": "info", "data": TEXT}}
        asked: dict[str, Any] = {"id": "q", "method": "elicitation/create", "params": {"message": TEXT, "requestedSchema": {}}}
        wire.asked["elicitation/create"] = {"result": {"action": "decline"}}
        answers.set("ping/me", first=[said, asked], result={})
        wire.result("ping/me", {})
        assert wire.told("notifications/message")["params"]["data"] == TEXT
        assert wire.told("elicitation/create")["params"]["message"] == TEXT

    def test_a_large_question_of_an_unknown_kind_is_refused(self, answers: Answers, wire: Wire) -> None:
        asked = [{"id": words[:5], "method": "vendor/ask", "params": {"rows": words}} for words in (TEXT, "small")]
        wire.asked["vendor/ask"] = {"result": {}}
        answers.set("ping/me", first=asked, result={})
        wire.result("ping/me", {})
        assert wire.told("vendor/ask")["params"] == {"rows": "small"}


@pytest.mark.parametrize("place", ["off", "on"])
def test_secrets_in_resources_prompts_and_errors_are_hidden_if_you_say_so(answers: Answers, tmp_path: Path, place: str) -> None:
    key = "".join(random.Random(4).choices(string.ascii_letters + string.digits, k=30))  # noqa: S311
    answers.contain(text(f"LOGIN_TOKEN={key}"), {"uri": URI, "blob": base64.b64encode(b"a picture").decode()})
    message = {"role": "user", "content": {"type": "text", "text": f"Log in with {key} please"}}
    answers.set("prompts/get", result={"messages": [message]})
    answers.set("completion/complete", error={"code": -32000, "message": f"{'x' * 990}{key}", "data": {"tried": key}})
    server = script("answers", "legacy", str(answers.folder), env={"LOGIN_TOKEN": key})
    with Served([server], tmp_path / "store", settings={"redact": {"shown": place}}) as wire:
        wire.hello()
        resource, prompt = wire.result("resources/read", {"uri": URI}), wire.result("prompts/get", {"name": "login"})
        failed = [wire.request("completion/complete", {"ref": {"type": "ref/prompt", "name": "login"}, "argument": {}})["error"]]
        answers.set("completion/complete", error={"code": -32000, "message": f"{'x' * 990}{key}{TEXT}"})
        failed += [wire.request("completion/complete", {"ref": {"type": "ref/prompt", "name": "login"}, "argument": {}})["error"]]
    for shown in (resource, prompt, failed[0]):
        assert (key in json.dumps(shown)) == (place == "off")
        assert ("[redacted:login-token:" in json.dumps(shown)) == (place == "on")
    assert (key[:6] in json.dumps(failed[1])) == (place == "off")
    assert base64.b64decode(resource["contents"][1]["blob"]) == b"a picture"
