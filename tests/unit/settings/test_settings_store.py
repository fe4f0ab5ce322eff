"""The key `store`: who may set it, and that its password is never shown."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from forked import run as run_forked

from overspill.errors import SettingsError
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.settings.load import load
from overspill.settings.opening import open_configured_store
from overspill.store.memory import MemoryStore

URL = "postgresql://me:s3cr3t@db.example.com/outputs"


def test_it_wins_over_the_folder(tmp_path: Path):
    settings = Settings(store="memory:", storeDir=str(tmp_path))
    assert isinstance(open_configured_store(settings), MemoryStore)


async def test_a_session_takes_a_url():
    async with Session(store="memory:") as session:
        kept = await session.keep("something", "note")
        assert session.open(kept.handle).text() == "something"


def test_a_file_in_the_working_directory_may_not_set_it(tmp_path: Path):
    (tmp_path / ".overspill.yaml").write_text(f"store: {URL}\n")
    with pytest.raises(SettingsError, match=r"store may not be set in \.overspill\.yaml") as refused:
        load(cwd=tmp_path)
    assert "s3cr3t" not in str(refused.value)


def test_its_password_is_not_in_what_settings_show():
    assert "s3cr3t" not in repr(Settings(store=URL))
    assert Settings(store=URL).store == URL
    with pytest.raises(SettingsError) as refused:
        load(cli={"store": URL, "retention": URL})
    assert "s3cr3t" not in str(refused.value)


@pytest.mark.parametrize("keys", [{"store": [URL]}, {"jobs": {"url": URL}}, {"storeDir": [URL, URL]}])
def test_its_password_is_not_in_the_refusal_of_a_list_or_a_mapping(keys: dict[str, object]):
    with pytest.raises(SettingsError) as refused:
        load(cli=keys)
    assert "s3cr3t" not in str(refused.value)


def test_a_url_given_as_a_folder_is_shown_without_its_password():
    assert "s3cr3t" not in repr(Settings(store_dir=URL))


@pytest.mark.parametrize(
    "command", [("config", "--set", URL), ("config", "--set", f"{URL}?a=["), ("config", "--set", f"retention={URL}"), ("doctor",)]
)
def test_no_command_shows_what_is_secret_in_a_store(tmp_path: Path, command: tuple[str, ...]):
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OVERSPILL_STORE": "az://container/a?sas=s3cr3t@s3cr3t"}
    done = run_forked(command, env=environ, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode != 0
    assert "s3cr3t" not in done.stdout + done.stderr


def test_a_variable_and_an_option_set_it_and_config_shows_it_without_the_password(tmp_path: Path):
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "OVERSPILL_STORE": URL}

    def shown(*options: str) -> dict[str, str]:
        done = run_forked(["config", "--json", *options], env=environ, capture_output=True, text=True, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["store"]

    source = "environment (OVERSPILL_STORE)"
    assert shown() == {"value": "postgresql://me:***@db.example.com/outputs", "from": source}
    assert shown("--store", "memory:") == {"value": "memory:", "from": "command line"}
    del environ["OVERSPILL_STORE"]
    assert shown("--set", "store='memory:'") == {"value": "memory:", "from": "command line"}
    assert shown() == {"value": None, "from": "default"}
