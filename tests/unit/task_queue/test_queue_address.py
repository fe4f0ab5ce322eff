"""Which queues may be used: on this machine any, elsewhere only with a password and TLS."""

import pytest

from overspill.errors import SettingsError
from overspill.task_queue.address import parse_address


@pytest.mark.parametrize(
    ("url", "plain", "name"),
    [
        ("docket+redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0", "overspill"),
        ("docket+redis://localhost/2?name=jobs", "redis://localhost/2", "jobs"),
        ("docket+redis://[::1]:7000", "redis://[::1]:7000", "overspill"),
        ("docket+rediss://u:p@queue.example.com:6380/0", "rediss://u:p@queue.example.com:6380/0", "overspill"),
        ("docket+redis://10.0.0.5/0?insecure=true", "redis://10.0.0.5/0", "overspill"),
        (
            "docket+rediss://:p@q.example.com/0?ssl_ca_certs=/ca.pem",
            "rediss://:p@q.example.com/0?ssl_ca_certs=%2Fca.pem",
            "overspill",
        ),
    ],
)
def test_an_address_that_may_be_used(url: str, plain: str, name: str):
    address = parse_address(url)
    assert (address.url, address.name) == (plain, name)


@pytest.mark.parametrize(
    "url",
    [
        "docket+redis://queue.example.com/0",
        "docket+redis://u:s3cret@queue.example.com/0",  # no TLS
        "docket+rediss://queue.example.com/0",  # no password
        "docket+rediss://u@queue.example.com/0",
        "docket+redis://127.0.0.1.example.com/0",
        "docket+redis://localhost@queue.example.com/0",
        "docket+redis://10.0.0.5/0?insecure=false",
        "docket+redis://[::ffff:10.0.0.5]/0",
    ],
)
def test_a_queue_on_another_machine_needs_a_password_and_tls(url: str):
    with pytest.raises(SettingsError, match="no password or no TLS") as refused:
        parse_address(url)
    assert "s3cret" not in str(refused.value)
    assert parse_address(url, insecure=True).url.startswith("redis")


@pytest.mark.parametrize(
    "url",
    [
        "",
        "redis://127.0.0.1/0",
        "docket+memory://",
        "docket+redis:",
        "celery://x",
        "docket+redis://:pw",
        "docket+redis://[me:pw@x",
        "docket+redis://me:1/pw@x",
    ],
)
def test_what_is_not_an_address_is_refused_without_showing_a_password(url: str):
    with pytest.raises(SettingsError) as refused:
        parse_address(url)
    assert "pw" not in str(refused.value)


def test_a_port_that_is_none_is_refused():
    with pytest.raises(SettingsError, match="port"):
        parse_address("docket+redis://127.0.0.1:99999/0")
