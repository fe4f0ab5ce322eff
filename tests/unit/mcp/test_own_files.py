import resource
from pathlib import Path

import pytest

from overspill.mcp.client import own_files


def test_a_file_that_does_not_fit_on_the_disk_leaves_nothing_behind_and_the_old_one_as_it_was(tmp_path: Path):
    file = tmp_path / "known.json"
    own_files.write(file, b"old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        own_files.write(file, b"x" * 2000)
        with pytest.raises(OSError, match="too large"):
            file.with_name("other").write_bytes(b"x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert file.read_bytes() == b"old"
    assert sorted(each.name for each in tmp_path.iterdir()) == ["known.json", "other"]
