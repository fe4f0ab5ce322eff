"""Extracting at once: from text, bytes, a file or a stream, leaving nothing behind."""

import io
import subprocess
import sys
from pathlib import Path

import pytest

from overspill import Settings, extract
from overspill.errors import BadRequest
from overspill.settings.keys import PresetName

pytestmark = pytest.mark.anyio

LOG = "".join(f"INFO step {i} done\n" for i in range(300)) + "ERROR step 300 failed: no space left on device\n"


@pytest.mark.parametrize("kind", ["text", "bytes", "path", "file"])
async def test_any_source_will_do(kind: str, tmp_path: Path):
    file = tmp_path / "build.log"
    file.write_text(LOG)
    sources = {"text": LOG, "bytes": LOG.encode(), "path": file, "file": io.BytesIO(LOG.encode())}
    store = tmp_path / "store"
    found = await extract(sources[kind], "why did step 300 fail", max_tokens=200, settings=Settings(storeDir=str(store)))
    assert "no space left on device" in found.text
    for excerpt in found.excerpts:
        assert LOG[excerpt.start_char : excerpt.end_char] == excerpt.text
        assert LOG.encode()[excerpt.start_byte : excerpt.end_byte].decode() == excerpt.text
    assert found.model == "builtin/lexical"


async def test_nothing_is_left_whatever_the_retention(tmp_path: Path):
    await extract(LOG, "failures", settings=Settings(storeDir=str(tmp_path), retention="keep"))
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize("preset", ["overspill", "artifacts"])
async def test_what_one_stored_output_may_have_at_most_bounds_no_search(tmp_path: Path, preset: PresetName):
    settings = Settings(preset=preset, storeDir=str(tmp_path), truncation={"maxArtifactSize": 1_000})
    assert "no space left on device" in (await extract(LOG, "why did step 300 fail", settings=settings)).text


async def test_a_file_of_the_callers_stays_open(tmp_path: Path):
    with (tmp_path / "build.log").open("w+b") as file:
        file.write(LOG.encode())
        file.seek(0)
        await extract(file, "failures", settings=Settings(storeDir=str(tmp_path / "store")))
        assert file.tell() == len(LOG)


async def test_a_missing_file_is_a_clear_error(tmp_path: Path):
    with pytest.raises(BadRequest) as caught:
        await extract(tmp_path / "none.log", "x", settings=Settings(storeDir=str(tmp_path)))
    assert str(caught.value) == f"{tmp_path / 'none.log'} cannot be read: No such file or directory."


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs a file that opens and cannot be read")
async def test_a_file_that_opens_and_cannot_be_read_is_a_clear_error(tmp_path: Path):
    with pytest.raises(BadRequest) as caught:
        await extract(Path("/proc/self/mem"), "x", settings=Settings(storeDir=str(tmp_path)))
    assert str(caught.value) == "/proc/self/mem cannot be read: Input/output error."


async def test_an_empty_question_is_refused(tmp_path: Path):
    with pytest.raises(BadRequest, match="What to extract is missing"):
        await extract(LOG, "  ", settings=Settings(storeDir=str(tmp_path)))


async def test_an_empty_source_is_not_found(tmp_path: Path):
    found = await extract("", "anything", settings=Settings(storeDir=str(tmp_path)))
    assert (found.found, found.excerpts) == (False, ())


LOADS = """
import sys, threading
import anyio
from overspill import extract

called = []
def note(frame, event, function):
    if event == "c_call" and function.__name__ == "from_pretrained":
        called.append(function)

threading.setprofile(note)
sys.setprofile(note)
found = anyio.run(extract, sys.argv[1], sys.argv[2])
sys.setprofile(None)
print(found.found, len(called))
"""


@pytest.mark.parametrize(
    ("text", "query", "found", "loaded"),
    [
        (LOG[-1000:], "step 300", True, 0),
        (LOG[-1000:], "unicorn", False, 0),
        (LOG, "list every step", True, 1),
    ],
    ids=["a short answer", "no answer", "a long answer"],
)
@pytest.mark.slow
def test_a_vocabulary_is_loaded_only_for_an_answer_that_may_not_fit(text: str, query: str, found: bool, loaded: int):
    """It takes longer to load than everything else that is done for a short file."""
    run = subprocess.run([sys.executable, "-c", LOADS, text, query], capture_output=True, text=True, timeout=60, check=True)
    assert run.stdout == f"{found} {loaded}\n"
