"""What is found, in which encodings, and what is shown in its place."""

import base64
import html
import json
import random
import re
import string
from urllib.parse import quote, quote_plus

import pytest

from overspill.redaction.known import pick_secrets
from overspill.redaction.redactor import Redactor

VALUE = 's3cr"et/pä\n+val&ue<1>'
MARK = re.compile(r"\[redacted:([a-z0-9-]+):([a-z2-7]{8})\]")
SOURCE = random.Random(7)  # noqa: S311


def make_key() -> str:
    """An AWS access key id, never the same, so that none is in this file."""
    return "AKIA" + "".join(SOURCE.choice(string.ascii_uppercase) for _ in range(16))


def spell(value: str) -> dict[str, str]:
    data = value.encode()
    return {
        "plain": value,
        "percent": quote(value, safe=""),
        "form": quote_plus(value),
        "JSON": json.dumps(value)[1:-1],
        "JSON as UTF-8": json.dumps(value, ensure_ascii=False)[1:-1],
        "JSON in JSON": json.dumps(json.dumps(value))[3:-3],
        "every character escaped": "".join(f"\\u{ord(character):04x}" for character in value),
        "HTML": html.escape(value),
        "entities": "".join(f"&#{ord(character)};" for character in value),
        "hex": data.hex(),
        "upper hex": data.hex().upper(),
        **{f"base64 at {offset}": base64.b64encode(b"x" * offset + data + b"yz").decode() for offset in range(3)},
        **{f"URL-safe base64 at {offset}": base64.urlsafe_b64encode(b"~" * offset + data).decode() for offset in range(3)},
    }


@pytest.mark.parametrize("encoding", spell(VALUE))
def test_a_known_value_is_found_in_every_encoding(encoding: str) -> None:
    redactor = Redactor({"MY_TOKEN": VALUE}, {})
    shown = redactor.redact(f"before {spell(VALUE)[encoding]} after")
    assert MARK.findall(shown) == [("my-token", MARK.findall(redactor.redact(VALUE))[0][1])]
    assert shown.startswith("before ")
    assert shown.endswith(" after")


def test_a_long_value_of_several_lines_is_found_whole_and_lines_keep_their_numbers() -> None:
    value = "\n".join("".join(SOURCE.choices(string.ascii_letters, k=70)) for _ in range(200))
    redactor = Redactor({"KEY": value}, {})
    indented = value.replace("\n", "\r\n    ")
    for text in (value, indented, value.encode().hex(), base64.encodebytes(value.encode()).decode()):
        shown = redactor.redact(f"a\n{text}\nz")
        assert len(MARK.findall(shown)) == 1
        assert len(shown.splitlines()) == len(f"a\n{text}\nz".splitlines())
        assert not any(line in shown for line in value.splitlines())


@pytest.mark.parametrize("middle", ["\\\\001", "\\\n", '\\"', "\n   x", "\\" * 40, "\n\t\n \\\n "], ids=range(6))
def test_a_long_value_is_found_whatever_is_where_its_pieces_meet(middle: str) -> None:
    for before in range(120, 132):
        value = "".join(SOURCE.choices(string.ascii_letters, k=before)) + middle * 3 + "z"
        redactor = Redactor({"KEY": value}, {})
        for encoding in ("plain", "JSON", "JSON in JSON", "HTML", "percent", "every character escaped"):
            shown = MARK.sub("mark", redactor.redact(f"a {spell(value)[encoding]} b"))
            assert shown.split() == ["a", "mark", "b"], (before, encoding)


def test_a_value_has_the_same_mark_in_one_session_and_another_in_the_next() -> None:
    key, other = make_key(), make_key()
    one, two = Redactor({}, {}), Redactor({}, {})
    marks = MARK.findall(one.redact(f"{key} {other} {key}"))
    assert [kind for kind, _ in marks] == ["aws-access-token"] * 3
    assert marks[0] == marks[2] != marks[1]
    assert MARK.findall(two.redact(key)) != marks[:1]


def test_what_was_redacted_once_stays_as_it_is() -> None:
    redactor = Redactor({"MY_TOKEN": VALUE}, {})
    password = "".join(SOURCE.choices(string.ascii_letters, k=14))
    commands = (
        f"mysql -u root -p{password} shop\nredis-cli -a {password}\ndocker login -u ci -p {password}\nDB_PASSWORD='{password}'"
    )
    shown = redactor.redact(f"API_KEY={make_key()} token: {VALUE}\n{commands}")
    assert password not in shown
    assert redactor.redact(shown) == shown


def test_numbers_in_json_become_strings_and_it_stays_json() -> None:
    redactor = Redactor({"PIN": "1234567890"}, {})
    value = {"a": 1234567890, "b": "x: 1234567890, y", "c": [-1234567890.5, 7], "1234567890": None}
    shown = json.loads(redactor.redact(json.dumps(value)))
    mark = MARK.search(redactor.redact("1234567890 "))
    assert mark is not None
    assert shown == {"a": mark[0], "b": f"x: {mark[0]}, y", "c": [mark[0], 7], mark[0]: None}


def test_a_private_key_without_its_end_is_hidden() -> None:
    body = base64.b64encode(SOURCE.randbytes(300)).decode()
    shown = Redactor({}, {}).redact(f"x\n-----BEGIN RSA PRIVATE KEY-----\n{body}\n{body}")
    assert body[:40] not in shown
    assert MARK.findall(shown)[0][0] == "private-key"


def test_your_own_patterns_are_found() -> None:
    assert MARK.findall(Redactor({}, {"ticket": r"TCK-\d{6}"}).redact("see TCK-123456"))[0][0] == "ticket"


def test_names_decide_which_values_are_known() -> None:
    named = {
        "GITHUB_TOKEN": "a-value-1",
        "DB_PASSWORD": "a-value-2",
        "AWS_SECRET_ACCESS_KEY": "a-value-3",
        "Authorization": "Bearer a-value-4",
        "X-Api-Key": "a-value-5",
        "SSH_AUTH_SOCK": "/run/ssh-x/agent.1",
        "KEYBOARD": "a-value-6",
        "PATH": "/usr/bin:/bin",
        "API_KEY": "short",
        "POSTGRES_PASSWORD": "postgres",
        "TOKEN_FILE": "/run/secrets/token",
    }
    assert set(pick_secrets(named)) == {"GITHUB_TOKEN", "DB_PASSWORD", "AWS_SECRET_ACCESS_KEY", "Authorization", "X-Api-Key"}


def test_clean_text_stays_the_same_object() -> None:
    text = "nothing to see here, key = value\n" * 10
    assert Redactor({"MY_TOKEN": VALUE}, {}).redact(text) is text


def test_values_that_overlap_are_hidden_whole() -> None:
    redactor = Redactor({"A_TOKEN": "user:pass-word", "B_TOKEN": "pass-word@host", "C_TOKEN": "zzzzzzzzz!"}, {})
    assert MARK.sub("M", redactor.redact("[user:pass-word@host]")) == "[M]"
    assert MARK.sub("M", redactor.redact("[zzzzzzzzzzzzz!]")) == "[zzzzM]"


def test_values_are_found_in_csv_and_in_base64_that_json_quotes_twice() -> None:
    redactor = Redactor({"A_TOKEN": VALUE}, {})
    lines = base64.encodebytes(VALUE.encode() * 9).decode()
    assert MARK.sub("M", redactor.redact('"' + VALUE.replace('"', '""') + '"')) == '"M\n"'  # its line keeps its number
    shown = redactor.redact(json.dumps(json.dumps(lines)))
    assert not any(piece in shown for piece in (lines[10:30], lines[100:120]))


def test_a_name_before_a_value_does_not_hide_the_keyword_in_it() -> None:
    key = "github_pat_" + "".join(SOURCE.choices(string.ascii_letters, k=82))
    for text in (key, f"GH_TOKEN={key}", f'{{"token": "{key}"}}'):
        assert [kind for kind, _ in MARK.findall(Redactor({}, {}).redact(text))] == ["github-fine-grained-pat"]
