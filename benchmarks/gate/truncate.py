"""Times every strategy on 100 KB, and the unstructured ones on 10 MB.

    python benchmarks/gate/truncate.py

Milliseconds depend on the machine; the ratio is to `str.splitlines` or `json.loads` on the same text in the same run.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from time import perf_counter

from overspill.truncate import STRATEGIES, truncate

LIMITS = (2_000, 8_000, 50_000)


def best_ms(work: Callable[[], object], rounds: int = 15) -> float:
    def once() -> float:
        start = perf_counter()
        work()
        return perf_counter() - start

    return min(once() for _ in range(rounds)) * 1000


def filled(line: Callable[[int], str], size: int) -> list[str]:
    lines: list[str] = []
    for number in count():
        if size <= 0:
            return lines
        lines.append(line(number))
        size -= len(lines[-1]) + 1
    return lines


def log(size: int) -> str:
    return "\n".join(filled(lambda n: f"2026-01-01T00:00:00Z INFO worker-{n % 7} request {n} served in {n % 97} ms", size))


def records(size: int) -> list[str]:
    return filled(
        lambda n: json.dumps({"id": n, "path": f"/a/{n}", "size": n / 7, "tags": ["x", "y"], "meta": {"ok": True}}), size
    )


def wide(size: int) -> str:
    return json.dumps({f"key{n}": {f"k{m}": "word " * 20 for m in range(20)} for n in range(size // 2_400)}, indent=2)


def xml(size: int) -> str:
    return "<r>\n" + "\n".join(filled(lambda n: f'  <item id="{n}"><name>n{n}</name><size>{n}</size></item>', size)) + "\n</r>"


def report(name: str, text: str, strategy: str, base: float) -> None:
    times = [best_ms(lambda limit=limit: truncate(text, limit, strategy)) for limit in LIMITS]
    shown = "  ".join(f"{ms:8.3f} ms {ms / base:7.2f}x" for ms in times)
    print(f"{name:<28}{len(text):>11,}  {truncate(text, LIMITS[0], strategy).strategy:<10}{shown}")


def main() -> None:
    print(f"{'':<28}{'chars':>11}  {'used':<10}" + "  ".join(f"{f'limit {limit:,}':>20}" for limit in LIMITS))
    for size in (100_000, 10_000_000):
        text = log(size)
        for strategy in STRATEGIES:
            report(strategy, text, strategy, best_ms(text.splitlines, 3))
    one_line = "x" * 100_000
    report("head_tail, one line", one_line, "head_tail", best_ms(one_line.splitlines))
    array = f"[{','.join(records(100_000))}]"
    long_string = json.dumps({"content": log(100_000)})
    shapes = {"array": array, "indented": json.dumps(json.loads(array), indent=2), "wide": wide(100_000), "string": long_string}
    for name, text in shapes.items():
        report(f"element, JSON {name}", text, "element", best_ms(lambda text=text: json.loads(text)))
    lines = records(100_000)
    report("element, JSON lines", "\n".join(lines), "element", best_ms(lambda: [json.loads(line) for line in lines]))
    report("element, XML", xml(100_000), "element", best_ms(xml(100_000).splitlines))


if __name__ == "__main__":
    main()
