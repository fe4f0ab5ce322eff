"""`open_store`: from a path or URL to a store."""

from __future__ import annotations

import gc
import importlib
import inspect
import pkgutil
import tempfile
from pathlib import Path

import pytest
from every_store import MAKERS

import overspill.store
from overspill import handles
from overspill.errors import SettingsError
from overspill.session.session import Session
from overspill.settings import Settings
from overspill.store.away import WaitingStore
from overspill.store.files.store import FileStore
from overspill.store.memory import MemoryStore
from overspill.store.objects.store import ObjectStore
from overspill.store.open import STORES, is_on_server, open_store, take_tenant
from overspill.store.postgres.store import PostgresStore
from overspill.store.protocols import Store
from overspill.store.shared.store import SharedStore

EXAMPLES = {
    "file": "file:///var/outputs",
    "memory": "memory:",
    "postgresql": "postgresql://me@localhost/outputs",
    "postgres": "postgres://me@localhost/outputs",
    "s3": "s3://bucket/prefix",
    "gs": "gs://bucket/prefix",
    "az": "az://container/prefix",
}


def store_classes() -> set[type]:
    """Everything in the package that can do what a store can do, and does it itself."""
    names = [module.name for module in pkgutil.walk_packages(overspill.store.__path__, "overspill.store.")]
    classes = {
        each
        for name in names
        for each in vars(importlib.import_module(name)).values()
        if inspect.isclass(each) and each.__module__ == name and hasattr(each, "open_shelf")
    }
    return classes - {Store, SharedStore, WaitingStore}


def test_every_kind_of_store_is_registered_and_has_an_example(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "me")
    assert set(EXAMPLES) == set(STORES)
    assert (
        {type(open_store(url)) for url in EXAMPLES.values()}
        == store_classes()
        == {FileStore, MemoryStore, ObjectStore, PostgresStore}
    )


def test_a_file_url_may_name_a_folder_with_brackets(tmp_path: Path):
    store = open_store(f"file://{tmp_path}/a[b]%5Bc")
    assert isinstance(store, FileStore)
    assert store.root == tmp_path / "a[b][c"


@pytest.mark.parametrize("spelling", ["{}", "file://{}", "file:{}", "FILE://{}", "file://localhost{}"])
def test_a_path_and_a_file_url_name_the_same_store(tmp_path: Path, spelling: str):
    assert open_store(spelling.format(tmp_path)) is open_store(str(tmp_path))
    assert open_store(str(tmp_path)).url == tmp_path.as_uri()


def test_a_file_url_may_be_percent_encoded(tmp_path: Path):
    folder = tmp_path / "my outputs #1"
    store = open_store(folder.as_uri())
    store.open_shelf(handles.new(), retention="keep").close()
    assert folder.is_dir()


def test_a_relative_path_is_below_the_working_directory_and_no_path_means_the_temporary_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    assert open_store("outputs").url == open_store("./outputs").url == (tmp_path / "outputs").as_uri()
    assert open_store("./s3:bucket").url == (tmp_path / "s3:bucket").as_uri()
    assert open_store(None).url == Path(tempfile.gettempdir()).as_uri()


@pytest.mark.parametrize("url", ["ftp://bucket/prefix", "FTP:bucket", "redis://127.0.0.1"])
def test_an_unknown_kind_of_store_is_refused_with_the_known_ones(url: str):
    kind = url.partition(":")[0].lower()
    with pytest.raises(SettingsError) as refused:
        open_store(url)
    assert str(refused.value) == (
        f"{url!r} names a store of the kind '{kind}', which Overspill does not know. Use a path or one of: file:, memory:, "
        f"postgresql:, postgres:, s3:, gs:, az:. "
        f"If you mean a folder of that name, write ./{url}."
    )


@pytest.mark.parametrize("url", ["file://server/share", "file:outputs", "file:///a?b", "file:///a#b", "file:"])
def test_a_file_url_that_is_not_an_absolute_path_here_is_refused(url: str):
    with pytest.raises(SettingsError, match="Write file:/// and an absolute path"):
        open_store(url)


def test_a_memory_url_takes_no_path():
    with pytest.raises(SettingsError, match="Write memory: and nothing after it"):
        open_store("memory://shared")


@pytest.mark.slow
def test_a_process_that_opens_many_stores_remembers_only_the_last_and_those_in_use():
    kinds = (FileStore, PostgresStore, ObjectStore)
    used = [open_store(url.format("used")) for url in ("/nowhere/{}", "postgresql://me:secret@localhost/{}", "s3://bucket/{}")]
    gc.collect()
    before = sum(isinstance(each, kinds) for each in gc.get_objects())
    for number in range(200):
        open_store(f"/nowhere/{number}")
        open_store(f"postgresql://me:secret{number}@localhost/outputs")
        open_store(f"s3://bucket/{number}")
    gc.collect()
    assert sum(isinstance(each, kinds) for each in gc.get_objects()) <= before + 200
    assert open_store("/nowhere/used") is used[0]
    assert open_store("postgresql://me:secret@localhost/used") is used[1]
    assert open_store("s3://bucket/used") is used[2]


@pytest.mark.anyio
async def test_a_session_stores_its_outputs_at_the_url(tmp_path: Path):
    async with Session(Settings(store_dir="memory:"), name="in memory") as session:
        kept = await session.keep("remembered")
    async with Session(Settings(store_dir="memory:"), name="in memory") as session:
        assert session.open(kept.handle).text() == "remembered"
    open_store("memory:").remove_shelf(kept.session)
    with pytest.raises(SettingsError, match="'ftp'"):
        Session(Settings(store_dir="ftp://bucket"))


@pytest.mark.parametrize(
    ("url", "place", "tenant"),
    [
        ("postgresql://u@h/d", "postgresql://u@h/d", ""),
        ("postgresql://u@h/d?tenant=alice", "postgresql://u@h/d", "alice"),
        ("postgresql://u@h/d?sslmode=require&tenant=a%2Fb", "postgresql://u@h/d?sslmode=require", "a/b"),
        ("postgresql://u@h/d?tenant=&sslmode=require", "postgresql://u@h/d?sslmode=require", ""),
    ],
)
def test_a_tenant_is_part_of_a_databases_url(url: str, place: str, tenant: str):
    assert take_tenant(url) == (place, tenant)


SCHEMES_OF = {
    "file": {"file"},
    "memory": {"memory"},
    "postgresql": {"postgresql", "postgres"},
    "s3": {"s3", "gs"},
    "azure": {"az"},
}
"""By the kind of store that the tests of every store use."""


def test_every_scheme_is_tested_as_a_store_and_known_to_be_away_or_not():
    """A scheme that is only registered fails here: name it above, beside a kind of `every_store.MAKERS`."""
    assert set().union(*SCHEMES_OF.values()) == STORES.keys()
    assert SCHEMES_OF.keys() == MAKERS.keys()
    assert {scheme for scheme in STORES if is_on_server(f"{scheme}:x")} == STORES.keys() - {"file", "memory"}


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="this system does not list the open files of a process")
def test_a_process_with_many_stores_does_not_run_out_of_files(tmp_path: Path):
    for number in range(80):
        open_store(str(tmp_path / str(number))).open_shelf(handles.new(), retention="keep").close()
    gc.collect()
    files = [str(each.resolve()) for each in Path("/proc/self/fd").iterdir()]
    assert not [each for each in files if each.startswith(f"{tmp_path}/0/")]
    assert [each for each in files if each.startswith(f"{tmp_path}/79/")]  # one of the last is still known, and its quota
