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
        ("az://container/a?sas=sv%3D2024%26sr%3Dc", "az://container/a?sas=***"),
        ("az://container?sv=2024&sr=c&st=x", "az://container?sv=***&sr=***&st=***"),
        ("az:container?sas=x", "az:container?sas=***"),
        ("gs://bucket?service_account={x}", "gs://bucket?service_account=***"),
        ("s3://bucket#sas=x", "s3://bucket#***"),
        ("s3://KEY:word@bucket/a", "s3://***@bucket/a"),
        ("s3://KEY@bucket/a", "s3://***@bucket/a"),
        ("s3:KEY:word@bucket", "s3:***@bucket"),
        ("postgresql://host/db?passfile=x&options=y&tenant=z", "postgresql://host/db?passfile=***&options=***&tenant=z"),
        ("postgresql://host/db?sslmode=a;password=b", "postgresql://host/db?sslmode=***"),
        ("postgresql://host/db?password=a&b", "postgresql://host/db?password=***&***"),
        ("postgresql://host:5432/db?password=w@rd", "postgresql://host:***?***"),
        ("postgresql://host/db?password=w@rd", "postgresql://host/db?***"),
        ("postgresql://me:a@b/db?password=w@rd", "postgresql://me:***?***"),
        ("postgresql://me:w?rd@host/db?sslmode=require", "postgresql://me:***@host/db?sslmode=require"),
        ("postgresql://me:w#rd@host/db", "postgresql://me:***@host/db"),
        ("docket+redis://me:w@rd@host:1/0?name=jobs", "docket+redis://me:***@host:1/0?name=jobs"),
        ("file:///home/me", "file:///home/me"),
        ("file:///home/me@x", "file:///home/me@x"),
        ("s3://bucket/me@x/a", "s3://bucket/me@x/a"),
        ("az://container/a?sas=w@rd", "az://container/a?***"),
        ("memory:", "memory:"),
        ("a folder with: a colon", "a folder with: a colon"),
        ("", ""),
    ],
)
def test_a_password_is_hidden_and_nothing_else(url: str, shown: str):
    assert mask_password(url) == shown
