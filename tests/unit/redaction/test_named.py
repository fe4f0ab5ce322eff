"""Values that are found by their names."""

import random
import re
import string
from collections.abc import Callable
from functools import partial

import pytest
from linear import is_linear

from overspill.redaction.redactor import Redactor

SOURCE = random.Random(11)  # noqa: S311
MARK = re.compile(r"\[redacted:(?:password|secret):[a-z2-7]{8}\]")


def make_value(characters: str = string.ascii_letters + string.digits, count: int = 24) -> str:
    return "".join(SOURCE.choices(characters, k=count))


@pytest.mark.parametrize(
    "text",
    [
        "DB_PASSWORD={}",
        'export API_TOKEN="{}"',
        "clientSecret: {}",
        "  db_password       = '{}'",
        '{{"name": "SMTP_PASSWORD", "value": "{}"}}',
        "- name: SMTP_PASSWORD\n  value: {}\n",
        '"admin_password": {{"sensitive": true, "type": "string", "value": "{}"}}',
        '<add key="SmtpPassword" value="{}" />',
        "<password>{}</password>",
        "define( 'AUTH_KEY', '{}' );",
        '{{\\"user\\":\\"m\\",\\"password\\":\\"{}\\"}}',
        "login ci password {}\n",
        "ARM_CLIENT_SECRET              {}\r\n",
        "run --token {} --now",
        "ALTER USER m PASSWORD '{}';",
        "grant_type=password&password={}&scope=a",
        "AccountName=a;AccountKey={};EndpointSuffix=b",
        "X-Api-Key: {}",
        "cookie: theme=dark; sessionid={}; a=b",
        "Secret Access Key: {}",
        "connect(user='m', password=b'{}', port=5432)",
    ],
)
def test_a_random_value_is_found_by_its_name_and_nothing_else_is_hidden(text: str) -> None:
    for value in (make_value() for _ in range(20)):
        assert MARK.sub("M", Redactor({}, {}).redact(text.format(value))) == text.format("M")


@pytest.mark.parametrize("value", ["Summer2024!", "correct-horse7", "Passw0rd2024", "hunter2-x"])
def test_a_password_that_people_choose_is_found_where_it_is_assigned(value: str) -> None:
    for text in ("password: {}\n", "PASSWORD='{}'", '"password": "{}"', "--password {} run"):
        assert MARK.sub("M", Redactor({}, {}).redact(text.format(value))) == text.format("M")
    prose = f"the password {value} was changed"
    assert Redactor({}, {}).redact(prose) == prose


@pytest.mark.parametrize(
    "text",
    [
        '"token_count": 123456, "max_tokens": 4096',
        "secret_name: shop-db-credentials-v2",
        '{{"nextPageToken": "{}"}}',
        "partition_key={} sort_key={}",
        "publishable_key: pk_{}",
        "csrf_token={}",
        "password = os.environ['DB_PASSWORD2']",
        "token: ${{{{ secrets.TOKEN2 }}}}",
        "api_key=YOUR_API_KEY_123",
        "password: ********",
        "TOKEN=$TOKEN2",
        "password: vault:secret/data/shop2#password",
        "--- PASS: TestAnalyticsRequest-2 (0.03s)",
        "PWD=/home/user2/work",
        "gpg: using RSA key {}",
        "cache key: Linux-npm-{}",
        "arn:aws:secretsmanager:eu-west-1:1234:secret:shop/db-aB3dE9",
        "token = ref1[index2] if key2 else parse2(key3)",
        "sessionid={}",
        '"keywords": ["password", "token2022", "api-key-auth2"]',
    ],
)
def test_names_and_values_that_are_no_secrets_stay(text: str) -> None:
    for _ in range(20):
        shown = text.format(*(make_value("0123456789ABCDEF", 40) for _ in range(text.count("{}"))))
        assert Redactor({}, {}).redact(shown) == shown


@pytest.mark.parametrize(
    "piece", ["token=", "password value: ", 'key": {', "secret\t\t\t\t\t\t", "auth\\\\\\\\\\\\", "api_key=a8f3k2z9q "]
)
def test_text_made_of_names_takes_time_in_proportion(piece: str) -> None:
    redactor = Redactor({}, {})

    def work(size: int) -> Callable[[], object]:
        return partial(redactor.find, (piece * (size // len(piece))).encode())

    assert is_linear(work, 10_000, quick=0.02, hopeless=20)
