"""Tables in shapes that are hard to read, the same each time, with how many rows a careful person counts."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from random import Random
from typing import NamedTuple, TypeAlias


class HostileTable(NamedTuple):
    text: bytes
    rows: int
    also: int | None = None
    """Another count that is right if it is explained."""
    must_be_explained: bool = False


_Rows: TypeAlias = list[list[str]]
_WORDS = ("alpha", "x", "New York", "São Paulo", "東京", "O'Neil", "n/a", "", "-", "0", "true", "3.14", "1e5", "2026-02-30")
_RESERVED = ("select", "from", "order", "table", "null", "true", "values", "rowid", "count(*)", "1", "*", "--", ";drop", "end")
_ODD = (
    *('say "hi"', "a.b", "it's", "two\nlines", "crlf\r\nname", "tab\tname", "[x]", "{z}", "a,b", "a;b", "a|b", " lead", "trail "),
    *("名", "😀", "a\u0301", "\u200bzero", "x" * 300),
)
_NASTY = (
    *('a "b" c', "one\ntwo", "one\r\ntwo\r\n\r\nfour", '"', '""', '",\n"', "a,b;c|d\te", "\n", " x ", "'", "\\", '\\"'),
    "end\\",
)
_VALUES = (None, True, False, 0, -1, 2**70, 1.5, 1e300, "", "text", "12", "a\nb", 'q"q', "\u2028", "😀", "null")
_BOXES = (("+++", "+++", "+++", "|", "-"), ("┌┬┐", "├┼┤", "└┴┘", "│", "─"), ("╔╦╗", "╠╬╣", "╚╩╝", "║", "═"))


def _word(r: Random) -> str:
    return r.choice(_WORDS) if r.random() < 0.5 else f"v{r.randint(0, 10 ** r.randint(1, 6))}"


def _size(r: Random, most: int = 300) -> int:
    return r.choice([3, 4, 5, 7, 10, 12]) if r.random() < 0.4 else r.randint(3, most)


def _names(r: Random, columns: int) -> list[str]:
    return [f"{r.choice(['id', 'name', 'qty', 'total', 'city', 'when'])}{number}" for number in range(columns)]


def _grid(r: Random, rows: int, columns: int, cell: Callable[[Random], str] = _word) -> _Rows:
    """The first cell is never empty, so no row looks like a blank line."""
    return [[f"r{number}", *(cell(r) for _ in range(columns - 1))] for number in range(rows)]


def _separate(rows: _Rows, separator: str = ",", end: str = "\n", *, quotes_all: bool = False) -> str:
    written = io.StringIO(newline="")
    quoting = csv.QUOTE_ALL if quotes_all else csv.QUOTE_MINIMAL
    csv.writer(written, delimiter=separator, lineterminator=end, quoting=quoting).writerows(rows)
    return written.getvalue()


def _start(r: Random, least: int = 2, most: int = 6, separators: str = ",\t;|") -> tuple[int, int, str, list[str]]:
    columns = r.randint(least, most)
    return _size(r), columns, r.choice(separators), _names(r, columns)


def ragged(r: Random) -> HostileTable:
    rows, columns, separator, names = _start(r, 3, 8)
    cells = _grid(r, rows, columns)
    for row in cells:
        if (drawn := r.random()) < 0.15:
            del row[r.randint(1, columns - 1) :]
        elif drawn < 0.3:
            row.extend(_word(r) or "z" for _ in range(r.randint(1, 4)))
    return HostileTable(_separate([names, *cells], separator).encode(), rows)


def total_row(r: Random) -> HostileTable:
    rows, columns, separator, names = _start(r, 3, 7, ",;\t")
    cells = _grid(r, rows, columns, lambda q: str(q.randint(0, 999)))
    total = ["Total", *[""] * (columns - 2), str(sum(int(row[-1]) for row in cells))]
    return HostileTable(_separate([names, *cells, total], separator).encode(), rows + 1, rows)


def quoted(r: Random) -> HostileTable:
    rows, columns, separator, names = _start(r)
    cells = _grid(r, rows, columns, lambda q: q.choice(_NASTY) if q.random() < 0.5 else _word(q))
    written = _separate([names, *cells], separator, r.choice(["\n", "\r\n"]), quotes_all=r.random() < 0.5)
    return HostileTable(written.encode(), rows)


def mixed_ends(r: Random) -> HostileTable:
    rows, columns, separator, names = _start(r)
    ends = r.choice([["\n", "\r\n"], ["\r"], ["\n", "\r\n", "\r"]])
    written = "".join(_separate([row], separator, r.choice(ends)) for row in [names, *_grid(r, rows, columns)])
    return HostileTable((written if r.random() < 0.5 else written.rstrip("\r\n")).encode(), rows)


def repeated_names(r: Random) -> HostileTable:
    rows, columns, separator, _ = _start(r, 3, 12, ",\t;")
    known = r.choice([["a", "b"], ["a", "A"], ["x", "x_1", "x_2"], ["", "a"], ["a", "a ", " a"], ["column1", ""]])
    names = ["id", *(r.choice(known) for _ in range(columns - 1))]
    return HostileTable(_separate([names, *_grid(r, rows, columns)], separator).encode(), rows)


def reserved_names(r: Random) -> HostileTable:
    rows, names = _size(r, 60), [*r.sample(_RESERVED, r.randint(3, 12)), *r.sample(_ODD, r.randint(1, 8))]
    r.shuffle(names)
    return HostileTable(_separate([names, *_grid(r, rows, len(names))]).encode(), rows)


def blank_lines(r: Random) -> HostileTable:
    rows, columns, separator, names = _start(r)
    lines = [_separate([row], separator) for row in [names, *_grid(r, rows, columns)]]
    ends = [r.choice(["\n", "\n\n", "  \n"]) if r.random() < 0.2 else "" for _ in lines]
    return HostileTable(("\n" * r.randint(0, 3) + "".join(map(str.__add__, lines, ends))).encode(), rows)


def empty_cells(r: Random) -> HostileTable:
    rows, columns, separator, names = _start(r, 3, 8, ",;\t")
    cells = [["" if r.random() < 0.7 else _word(r) for _ in range(columns)] for _ in range(rows)]
    return HostileTable(_separate([names, *cells], separator).encode(), rows)


def _value(r: Random, depth: int = 0) -> object:
    drawn = r.random()
    if depth < 2 and drawn < 0.12:
        return {f"k{number}": _value(r, depth + 1) for number in range(r.randint(0, 3))}
    if depth < 2 and drawn < 0.2:
        return [_value(r, depth + 1) for _ in range(r.randint(0, 3))]
    return r.choice(_VALUES)


def _objects(r: Random, rows: int, share: float) -> list[dict[str, object]]:
    names = _names(r, r.randint(2, 7))
    return [{name: _value(r) for name in names if name == names[0] or r.random() < share} for _ in range(rows)]


def json_odd_names(r: Random) -> HostileTable:
    names = ["id", *r.sample(_RESERVED, 4), *r.sample(_ODD, 4), "nul\0key", "", "ID", "i d"]
    rows = [{name: r.randint(0, 99) for name in names} for _ in range(_size(r, 60))]
    return HostileTable(json.dumps(rows).encode(), len(rows))


def json_lines(r: Random) -> HostileTable:
    rows, ends = _objects(r, _size(r), 0.6), r.choice([["\n"], ["\r\n"], ["\n", "\r\n"], ["\n", "\n\n"]])
    return HostileTable("".join(json.dumps(row) + r.choice(ends) for row in rows).encode(), len(rows))


def json_by_key(r: Random) -> HostileTable:
    start = r.choice(["user.", "2026-01-", "/srv/a b/", "é"])
    rows = {f"{start}{number}": {"v": _value(r, 2), "n": number} for number in range(_size(r))}
    return HostileTable(json.dumps(rows if r.random() < 0.5 else {"status": "ok", "data": rows}).encode(), len(rows))


def json_lists_by_key(r: Random) -> HostileTable:
    files = {f"src/m{n}.py": [{"line": n, "rule": _word(r)}] * r.randint(0, 6) for n in range(r.randint(3, 40))}
    files["src/last.py"] = [{"line": 1, "rule": "E1"}] * 3
    return HostileTable(json.dumps(files).encode(), sum(map(len, files.values())))


def json_inside(r: Random) -> HostileTable:
    rows = [{"id": number, "name": _word(r), "ok": r.random() < 0.5} for number in range(_size(r))]
    written = json.dumps(rows)
    ways = [json.dumps({"content": [{"type": "text", "text": written}]}), json.dumps(written), str(rows)]
    ways += [f"Here you are [really]:\n\n```json\n{written}\n```\nDone.\n", f"Found {len(rows)} rows:\n{written}"]
    ways += [json.dumps({"total": 7, "next": None, "results": rows}), json.dumps({"data": {"page": {"edges": rows}}})]
    return HostileTable(r.choice(ways).encode(), len(rows))


def json_of_lists(r: Random) -> HostileTable:
    rows, columns, _, names = _start(r)
    cells = [[f"r{number}", *r.choices([None, 1, "x", 2.5], k=columns - 1)] for number in range(rows)]
    if r.random() < 0.5:
        return HostileTable(json.dumps({"columns": names, "data": cells}).encode(), rows)
    return HostileTable(json.dumps([names, *cells]).encode(), rows, rows + 1)


def json_lines_broken(r: Random) -> HostileTable:
    lines = [json.dumps({"id": number, "v": _value(r)}) for number in range(_size(r, 200))]
    rows, broken = len(lines), r.choices(['{"id": 5, "v":', "-- log rotated --", "{'id': 1"], k=r.randint(1, 3))
    for line in broken:
        lines.insert(r.randint(1, len(lines)), line)
    return HostileTable("\n".join(lines).encode(), rows, must_be_explained=True)


def repeated_header(r: Random) -> HostileTable:
    rows, columns, separator, names = _start(r, 3)
    cells = _grid(r, rows, columns)
    return HostileTable(_separate([names, *cells[: rows // 2], names, *cells[rows // 2 :]], separator).encode(), rows, rows + 1)


def stray_quotes(r: Random) -> HostileTable:
    rows, columns, _, names = _start(r, 3)
    cells = _grid(r, rows, columns, lambda q: q.choice(['5" disk', 'a "b" c', "x", 'he said "no"', "7"]))
    return HostileTable("".join(",".join(row) + "\n" for row in [names, *cells]).encode(), rows)


def markdown(r: Random) -> HostileTable:
    rows, columns, _, names = _start(r)
    odd = ["a \\| b", "`x \\| y`", "**b**", "<br>", "\\", "", "-", "---", ":-:"]
    cells = _grid(r, rows, columns, lambda q: q.choice(odd) if q.random() < 0.3 else _word(q))
    rule = r.choices(["---", ":--", "--:", ":-:", "-"], k=columns)
    lines = "".join(f"| {' | '.join(row)} |\n" for row in [names, rule, *cells])
    return HostileTable((r.choice(["", "# Title | with bar\n\n"]) + lines + r.choice(["", "\nThe end.\n"])).encode(), rows)


def aligned(r: Random) -> HostileTable:
    rows, columns, has_rule, has_holes = _size(r), r.randint(3, 7), r.random() < 0.3, r.random() < 0.4
    names = [f"{r.choice(['NAME', 'SIZE', 'STATUS', 'AGE'])}{number}" for number in range(columns)]
    known = ["ok", "Running now", "12", "3d4h", "<none>", "a-very-long-value", "x", *[""] * (2 * has_holes)]
    cells = [["r", *["full"] * (columns - 1)], *_grid(r, rows - 1, columns, lambda q: q.choice(known))]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    cells = [names, *[["-" * width for width in widths]] * has_rule, *cells]
    sides = ["<", *r.choices("<<<>", k=columns - 1)]
    form = "   ".join(f"{{:{side}{width}}}" for side, width in zip(sides, widths, strict=True))
    lines = "".join(form.format(*row).rstrip() + "\n" for row in cells)
    return HostileTable((lines + r.choice(["", f"\n({rows} rows)\n"])).encode(), rows)


def box(r: Random) -> HostileTable:
    rows, columns, _, names = _start(r)
    cells = _grid(r, rows, columns, lambda q: q.choice(["NULL", "12", "-3.50", "a b", "a|b", "", "+---+", "x"]))
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    *edges, bar, dash = r.choice(_BOXES)
    top, rule, bottom = (edge[0] + edge[1].join(dash * (width + 2) for width in widths) + edge[2] for edge in edges)
    form = bar + bar.join(f" {{:{width}}} " for width in widths) + bar
    lines = [top, form.format(*names), rule, *(form.format(*row) for row in cells), bottom]
    return HostileTable("\n".join([*lines, r.choice(["", f"{rows} rows in set (0.00 sec)\n"])]).encode(), rows)


def html(r: Random) -> HostileTable:
    rows, columns, names = _size(r, 80), r.randint(3, 6), _names(r, 6)
    lines, spans = ["".join(f"<th>{name}</th>" for name in names[:columns])], 0
    for number in range(rows):
        first = "" if spans else f'<td rowspan="{(spans := min(r.choice([1, 1, 2, 3]), rows - number))}">g{number}</td>'
        spans -= 1
        wide = f'<td colspan="2">{r.choice(["a &amp; b", "<b>1</b>", "", "x<br>y", "2,5"])}</td>'
        lines.append(first + wide + "".join(f"<td>{r.choice(['a &lt; b', '7', 'é'])}</td>" for _ in range(columns - 3)))
    return HostileTable(f"<html><body><table><tr>{'</tr><tr>'.join(lines)}</tr></table></body></html>".encode(), rows)


KINDS: dict[str, Callable[[Random], HostileTable]] = {
    make.__name__: make
    for make in (
        *(ragged, total_row, quoted, mixed_ends, repeated_names, reserved_names, blank_lines, empty_cells),
        *(json_odd_names, json_lines, json_lines_broken, json_by_key, json_lists_by_key, json_inside, json_of_lists),
        *(repeated_header, stray_quotes, markdown, aligned, box, html),
    )
}
