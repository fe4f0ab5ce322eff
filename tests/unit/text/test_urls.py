"""Addresses are shown without what is secret in them."""

import pytest

from overspill.text.urls import mask_password


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:word@host:5432/db", "postgresql://me:***@host:5432/db"),
        ("postgresql://me:w@rd:x/y@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me@host/db?password=word&sslmode=require", "postgresql://me@host/db?password=***&sslmode=require"),
        ("postgresql://host/db?sslpassword=a&user=me", "postgresql://host/db?sslpassword=***&user=me"),
        ("redis://:word@host:6379/0", "redis://:***@host:6379/0"),
        ("postgresql:me:word@host/db", "postgresql:me:***@host/db"),
        ("postgresql:/me:word@host/db", "postgresql:/me:***@host/db"),
        ("postgresql://me:word", "postgresql://me:***"),
        ("postgresql://me:word/db?sslmode=require", "postgresql://me:***/db?sslmode=require"),
        ("postgresql://host:5432/db", "postgresql://host:5432/db"),
        ("postgresql://[::1]/db", "postgresql://[::1]/db"),
        ("s3://bucket/prefix", "s3://bucket/prefix"),
        ("s3://bucket/a?AWS_SECRET_ACCESS_KEY=x&region=y", "s3://bucket/a?AWS_SECRET_ACCESS_KEY=***&region=y"),
        ("file:///home/me", "file:///home/me"),
        ("memory:", "memory:"),
        ("a folder with: a colon", "a folder with: a colon"),
        ("", ""),
    ],
)
def test_a_password_is_hidden_and_nothing_else(url: str, shown: str):
    assert mask_password(url) == shown
