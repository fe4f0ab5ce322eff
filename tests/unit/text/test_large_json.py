import json
import tracemalloc

import pytest

from overspill.text.lenient_json import loads_last

LINE = 'the quick "brown" fox\n'
SIZE = 16 * 1024 * 1024


@pytest.mark.slow
def test_a_long_string_takes_twice_its_memory_and_not_three_times():
    lines = [json.dumps({"id": 1, "result": {"content": [{"type": "text", "text": LINE * (SIZE // len(LINE))}]}}).encode()]
    size = len(lines[0])
    tracemalloc.start()
    try:
        read = loads_last(lines)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert read["result"]["content"][0]["text"] == LINE * (SIZE // len(LINE))
    # The line itself was there before. Without it, pieces and string are less than two of it.
    assert peak < 1.9 * size
