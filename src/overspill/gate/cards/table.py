"""The card of tables: their rows and columns, the contents of each column, and the first rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from types import NoneType
from typing import Any

from msgspec import Struct

from overspill.gate.cards.card import Card, Section, indent, name
from overspill.gate.cards.sample import OutputSample, draw
from overspill.lexical.kinds.kind import Layout
from overspill.lexical.reading import find_filler, strip_colours
from overspill.tables.bars import Barred
from overspill.tables.delimited import Delimited, has_lone_returns
from overspill.tables.json_rows import write_cell
from overspill.tables.lines import FOOTER
from overspill.tables.markup import read_page
from overspill.tables.rows import find_line_tables
from overspill.tables.table import FoundTable, Omission, Tally, describe_rows
from overspill.tables.types import Reading, keep_values, measure_values
from overspill.text.encoding import decode
from overspill.text.humanize import count_noun
from overspill.text.patterns import compile_pattern
from overspill.text.regex import regex
from overspill.wording.names import NextStep

_MAX_VALUES = 4
"""How many values to name for one column."""
_MAX_DISTINCT_SHARE = 0.5
"""With a larger share of different values, the most frequent ones say little."""
_TYPES: dict[type, str] = {bool: "boolean", int: "number", float: "number", list: "array", dict: "object"}
_MAX_CELLS = 1_200
"""How many cells to read. Larger tables are sampled."""
_MIN_READ_ROWS = 10
MAX_COLUMNS = 200
"""How many columns to describe."""
_FIRST_COLUMNS = 20
"""How many columns to describe before showing the first rows."""
MAX_EXAMPLES = 12
MAX_TABLES = 12
"""If there are more tables, the card describes the structure around them."""
MIN_TABLE_SHARE = 0.5
"""The share of the output that tables must make up for a card of tables."""
_FIRST_LINES = 16
"""Among how many of the first lines to look for the first row, if all lines seem to be rows."""
_HEAD_BYTES = 3_000
_MAX_PAGE_BYTES, _MAX_PAGE_ROW_BYTES = 12 << 10, 1_000
"""How much to read of a page that may be tables, and the longest average row in that case."""
_NO_ROW = compile_pattern(rb"\n[ \t\r+=|:-]*\n")
"""A blank line, or a line drawn between rows."""
_IDENTIFIER = regex(r"(?a)[A-Za-z_]\w{0,29}")
_PLAIN_VALUE = regex(r"(?a)[A-Za-z0-9][\w-]{0,29}")
_PLAIN_POINTER = regex(r"(?a)(?:/[A-Za-z_]\w{0,29}){0,3}")


class ReadTable(Struct, frozen=True):
    """A table of an output, with the cells that were sampled."""

    label: str
    """The table's JSON pointer inside a document."""
    rows: int
    names: Sequence[str]
    columns: Sequence[Sequence[Any]]
    """The cells of each described column; None for missing cells."""
    examples: Sequence[str]
    read: int
    """How many rows were read. Unless all were, no statement claims to be about all rows."""
    tally: Tally | None = None
    is_json: bool = False
    can_query: bool = False
    """Whether a query can select its rows."""
    omissions: Sequence[Omission] = ()


def read_text_tables(sample: OutputSample, layout: Layout) -> tuple[list[ReadTable], OutputSample]:
    """The tables that make up most of an output, and the part of it that was read."""
    if layout == "page":
        sample = sample.begin(_MAX_PAGE_BYTES)
        return _read_page(sample.data), sample
    if layout == "paragraphs" and sample.data.count(b"|") < sample.data.count(b"\n"):
        return [], sample
    windows = [_strip_colours(window.data).removesuffix(b"\n") for window in sample.windows]
    if found := _read_even_lines(windows, layout, _strip_colours(sample.excerpt)):
        return found, sample
    if layout == "rows" and b'"' in sample.data:
        windows = windows[:1]  # a later one may begin inside a cell of several lines
        sample = OutputSample(sample.windows[:1], sample.size)
    text = b"\n".join(windows) + b"\n"
    tables = list(islice(find_line_tables(text, layout), MAX_TABLES + 1))
    inside = sum(table.ends[-1] - (table.header or (table.starts[0],))[0] for table in tables if len(table))
    if inside <= MIN_TABLE_SHARE * len(text) or len(tables) > MAX_TABLES:
        return [], sample
    return [_read_table(table, text, len(table), partial(table.read, text)) for table in tables], sample


def _strip_colours(data: bytes) -> bytes:
    if b"\x1b" not in data:
        return data
    fill = find_filler(data)
    return bytes(strip_colours(data, len(data), fill)).translate(None, fill)


def _read_even_lines(windows: Sequence[bytes], layout: Layout, text: bytes) -> list[ReadTable]:
    """The table in lines that, judging by this part of them, are only a header and the rows below it. Empty unless certain."""
    lines = b"\n".join(windows).split(b"\n")
    has_others = any(_NO_ROW.search(window) or has_lone_returns(window, 0, len(window)) for window in windows)
    has_quotes = any(b'"' in window for window in windows)
    if len(lines) < 2 * _FIRST_LINES or has_others or (has_quotes and any(line.count(b'"') % 2 for line in lines)):
        return []
    if layout != "rows":  # as much as shows its kind, where the same tables were found
        text = text[: text.rfind(b"\n", 0, _HEAD_BYTES) + 1]
    text = text.removesuffix(b"\n") + b"\n"
    table, *others = [*find_line_tables(text, layout), None]
    if table is None or others != [None] or not len(table) or isinstance(table.format, Barred):
        return []
    first, below = text.count(b"\n", 0, table.starts[0]), text.count(b"\n", table.ends[-1])
    rows = lines[first : len(lines) - below]
    is_delimited = isinstance(table.format, Delimited)
    header = text[slice(*table.header)].strip().split(b"\n" if is_delimited else None) if table.header else []
    is_repeated = header and sum(window.count(header[-1 if is_delimited else 0]) for window in windows) > 1
    if is_repeated or first >= _FIRST_LINES or text.count(b"\n") - first - below != len(table) or FOOTER.match(lines[-1]):
        return []
    read = _read_table(table, text, len(rows), lambda number: decode(rows[number]).rstrip("\r"))
    return [] if read.tally and (read.tally.uneven or read.tally.unread) and not is_delimited else [read]


def _read_table(table: FoundTable, text: bytes, count: int, read: Callable[[int], str]) -> ReadTable:
    """`read` returns one of its rows by number."""
    names, split = table.format.names, table.format.split
    rows = [split(read(number)) for number in draw_rows(count, len(names))]
    last = [split(read(count - 1))] if len(rows) < count else []
    columns = [[row[number] if number < len(row) else None for row in rows] for number in range(min(len(names), MAX_COLUMNS))]
    return ReadTable(
        "",
        count,
        list(names),
        columns,
        [" ".join(read(number).split("\n")) for number in range(min(count, MAX_EXAMPLES))],
        len(rows),
        Tally(len(names), (*rows, *last)),
        omissions=table.omissions,
    )


def _read_page(page: bytes) -> list[ReadTable]:
    """The tables of a page that is mostly tables."""
    if page.count(b"<tr") * _MAX_PAGE_ROW_BYTES <= len(page):
        return []
    tables = dict[int, tuple[FoundTable, list[dict[str, Any]]]]()
    for table, row in read_page(page):
        tables.setdefault(id(table), (table, []))[1].append(row.cells or {})
    if page.rfind(b"</tr") - page.find(b"<tr") <= MIN_TABLE_SHARE * len(page) or len(tables) > MAX_TABLES:
        return []
    return [
        ReadTable(
            "",
            len(rows),
            table.format.names,
            [[row.get(name) for row in rows] for name in table.format.names[:MAX_COLUMNS]],
            [" | ".join(cell or "" for cell in row.values()) for row in rows[:MAX_EXAMPLES]],
            len(rows),
            Tally(len(table.format.names), (list(row.values()) for row in rows)),
        )
        for table, rows in tables.values()
    ]


def draw_rows(count: int, columns: int, most_cells: int = _MAX_CELLS) -> Sequence[int]:
    return range(count) if count * columns <= most_cells else draw(0, count, max(_MIN_READ_ROWS, _MAX_CELLS // columns))


def make_table_card(tables: Sequence[ReadTable], read: OutputSample) -> Card | None:
    """Describes the largest table first. Returns None without tables."""
    by_size = sorted(tables, key=lambda table: -table.rows)
    sections = [section for table in by_size for section in _describe_table(table, is_whole=read.is_whole)]
    return Card(sections, read, steps=_suggest(by_size[0])) if tables else None


def _describe_table(table: ReadTable, *, is_whole: bool) -> Iterator[Section]:
    is_all = is_whole and table.read == table.rows
    least, least_columns = "" if is_whole else "at least ", "at least " if table.is_json and not is_all else ""
    title = f"{name(table.label)}: " if table.label else ""
    title += f"{least}{count_noun(table.rows, 'row')}, {least_columns}{count_noun(len(table.names), 'column')}"
    if not is_all:
        title += f", as seen in {table.read:,} of " + (f"the {table.rows:,} rows" if is_whole else "the rows")
    if table.read < table.rows:
        title += ", drawn at random"
    among = "" if is_all else "among these "
    title += "".join(f"; {among}{said}" for said in describe_rows((), table.tally, name))
    title += "".join(f"; {said}" for said in describe_rows(table.omissions, None))
    columns = [
        f"- {_describe_column(column, cells, is_all=is_all, is_json=table.is_json)}"
        for column, cells in zip(table.names, table.columns, strict=False)
    ]
    yield Section(title, columns, len(table.names), _FIRST_COLUMNS)
    yield Section("first rows", [indent(row) for row in table.examples], table.rows if is_whole else 0, 2)


def _suggest(table: ReadTable) -> list[NextStep]:
    """Suggests a filter on a column with few values. Only plain names go into a call, because they come from the output."""
    path = table.label.lstrip("/").replace("/", ".")
    for column, cells in zip(table.names, table.columns, strict=False):
        counts = Counter(cells) if {*map(type, cells)} <= {str, int, NoneType} else Counter[Any]()
        del counts[None], counts[""]
        if not 1 < len(counts) <= _MAX_DISTINCT_SHARE * len(cells) or not _IDENTIFIER.fullmatch(column):
            continue
        value = counts.most_common(_MAX_VALUES)[-1][0]
        if not _PLAIN_VALUE.fullmatch(str(value)):
            continue
        if table.can_query and _PLAIN_POINTER.fullmatch(table.label):
            spelt = f"'{value}'" if isinstance(value, str) else f"`{value}`"
            return [NextStep("query", f"{path}[?{column}=={spelt}]")]
        if not table.can_query and isinstance(value, str) and not value[0].isdigit():
            return [NextStep("grep", value)]
    return []


def _describe_column(column: str, cells: Sequence[Any], *, is_all: bool, is_json: bool = False) -> str:
    """`status text, ok 1,200, failed 30, 2 others; 3% missing`, or, if there are more cells, `status text, ok 96%, failed 2%,
    2 others seen; 3% missing`."""
    others = [cell for cell in cells if cell is not None and not isinstance(cell, str)]
    texts = [cell for cell in cells if isinstance(cell, str)] if others else filter(None, cells)
    counts = Counter(map(str.strip, texts))
    del counts[""]
    reading, measured = (None, dict[str, float]()) if others else measure_values(counts, column)
    if reading and reading.meaning != "boolean":
        counts = keep_values(counts)
    missing = len(cells) - counts.total() - len(others)
    kinds = {*(_TYPES[type(cell)] for cell in others), *(["text"] if counts or not others else [])}
    kind = kinds.pop() if len(kinds) == 1 else "mixed"
    if missing == len(cells):
        return f"{name(column)} empty" if is_all else f"{name(column)} empty wherever seen"
    if kind in ("array", "object"):
        least, most = min(map(len, others)), max(map(len, others))
        described = f"{kind} of {least:,}" + (f" to {most:,}" if least < most else "")
    elif kind == "number" and min(others) < max(others):
        described = f"{kind} {write_cell(min(others))} to {write_cell(max(others))}"
    elif reading and reading.meaning != "boolean" and len(counts) > 1:
        described = _describe_read(counts, reading, measured, is_json=is_json)
    else:
        meaning = _name_meaning(reading) if reading and not is_json else kind
        described = _describe_values(counts + Counter(map(write_cell, others)), 0 if is_all else len(cells), meaning)
    words = f"{name(column)} {described}" + ("" if is_all else " seen")
    return f"{words}; {_percent(missing, len(cells))} missing" if missing else words


def _name_meaning(reading: Reading) -> str:
    return "duration" if reading.meaning == "seconds" else reading.meaning


def _percent(part: int, whole: int) -> str:
    share = 100 * part / whole
    return f"{share:.0f}%" if 1 <= share <= 99 else "under 1%" if share < 1 else "over 99%"


def _describe_read(counts: Counter[str], reading: Reading, measured: dict[str, float], *, is_json: bool) -> str:
    """`number 1 to 900, but "Total" once`."""
    kind = "text, numbers" if is_json and reading.meaning == "number" else _name_meaning(reading)
    words = f"{kind} {name(min(measured, key=measured.__getitem__))} to {name(max(measured, key=measured.__getitem__))}"
    misfits = Counter({text: times for text, times in counts.items() if text not in measured})
    for text, times in misfits.most_common(1):
        words += f", but {name(text)} {'once' if times == 1 else f'{times:,} times'}"
        words += f" and {count_noun(misfits.total() - times, 'other')}" if misfits.total() > times else ""
    return words


def _describe_values(counts: Counter[str], seen: int, kind: str) -> str:
    """`seen`: the number of rows read; 0 if all were read."""
    if len(counts) == 1:
        return f"{kind}, {'only' if seen else 'always'} {name(next(iter(counts)))}"
    if len(counts) > _MAX_DISTINCT_SHARE * counts.total():
        return f"{kind}, all different" if not seen and len(counts) == counts.total() else f"{kind}, {len(counts):,} different"
    named = [f"{name(value)} {_percent(n, seen) if seen else f'{n:,}'}" for value, n in counts.most_common(_MAX_VALUES)]
    others = len(counts) - len(named)
    return f"{kind}, {', '.join(named)}" + (f", {count_noun(others, 'other')}" if others else "")
