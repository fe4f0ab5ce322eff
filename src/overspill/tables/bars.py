"""Rows with bars between cells: Markdown, `psql`, also field by field, and the boxes of MySQL, SQLite and DuckDB."""

from __future__ import annotations

from itertools import islice, zip_longest

from overspill.tables.table import FoundTable, Omission, RowFormat, Text, make_unique
from overspill.text.lines import FILLERS, iterate_lines, read_line
from overspill.text.regex import regex

MAY_BEGIN_BARRED = regex(rb"\||\+[-=]|-\[ |\xe2[\x94\x95]")
_RECORD = regex(r"-\[ RECORD \d{1,12} \][-+]*+\s*+$")
_FIELDS = regex(rb"-\[ RECORD \d{1,12} \][-+]*+[ \t\r\f\v%b]*+(?:\n|\Z)(?:[^|\n]*+\|[^\n]*+(?:\n|\Z))*+" % FILLERS)
"""A record with its fields."""
MARKDOWN_RULE = regex(r"(?<![\s|:-])\s*+\|?(?:\s*+:?-++:?\s*+\|)++")
DRAWN = b" \t\r\n+=-|:"
"""The characters of lines drawn between rows, in plain text."""
_BAR = regex(r"(?<!\\)\||[│┃║]")
_BARS = frozenset("|│┃║")
_JOINT = regex(r"[|+├┤┬┼┴┌┐└┘╞╡╤╪╧╒╕╠╣╦╬╩╔╗╭╮╰╯┏┓┣┫┳╋┻┡┩╇]")
_LINES = frozenset("-=─━═")
_DRAWN = frozenset(" \t\r\n:|+-=").union(map(chr, range(0x2500, 0x2580)))
_TOPS = frozenset("+┌┏╔╭╒")
_MERGES = frozenset("┴╧╩┻")
_TYPE = regex(r"(?:u?int|(?:big|huge)int|double|float|decimal|varchar|text|bool|date|time|blob|json|uuid|struct|map|enum).{0,99}")
"""DuckDB writes the types of columns below their names."""
_SHOWN = regex(r"(\d[\d,]{0,20}) rows\D{1,20}\((\d[\d,]{0,20}) shown\)")
_MAX_HEADER_LINES = 5


class Barred(RowFormat, frozen=True):
    """`edges` are the positions around cells, in characters, if a rule shows them. Cells may contain bars themselves."""

    edges: tuple[int, ...] = ()
    has_frame: bool = False
    """Whether the table is drawn as a box. Unlike in Markdown, bars in cells are then not escaped."""

    def split(self, row: str) -> list[str]:
        lines = [self._split_line(line) for line in row.strip("\r\n").split("\n")]
        return lines[0] if len(lines) == 1 else ["\n".join(filter(None, cells)) for cells in zip_longest(*lines, fillvalue="")]

    def continues(self, line: str) -> bool:
        """Whether a cell continues on the next line, as `psql` shows it."""
        return self.has_frame and any(line[edge - 1 : edge] in ("+", "↵") for edge in self.edges[1:])

    def _split_line(self, line: str) -> list[str]:
        cells = [] if self.has_frame else split_at_bars(line)
        *edges, last = self.edges or (0,)
        drawn = line.rstrip()
        is_framed = edges and (edges[0] < 0 or (drawn[edges[0] : edges[0] + 1] in _BARS and drawn[last:] in _BARS))
        if is_framed and len(cells) != len(self.names) and all(drawn[edge : edge + 1] in _BARS for edge in edges[1:]):
            ends = (*edges[1:], max(last, len(line)) if edges[0] < 0 else last)
            found = [line[start + 1 : end] for start, end in zip(edges, ends, strict=True)]
            if self.continues(line):
                found = [cell[:-1] if cell[-1:] in ("+", "↵") else cell for cell in found]
            return [cell.strip() for cell in found]
        return cells or split_at_bars(line)


class FieldByField(RowFormat, frozen=True):
    """A line for each field of a row, below a line with the row's number, as `psql -x` prints it."""

    def split(self, row: str) -> list[str]:
        fields = self.read_fields(row)
        return [fields.get(name, "") for name in self.names] if fields.keys() <= {*self.names} else []

    @staticmethod
    def read_fields(row: str) -> dict[str, str]:
        fields, last = dict[str, list[str]](), ""
        for line in row.splitlines()[1:]:
            name, _, cell = line.partition("|")
            last = name.strip(" +") or last
            lines = fields.setdefault(last, [])
            lines[-1:] = [before.rstrip("+ ") for before in lines[-1:]]
            lines.append(cell.strip())
        return {name: "\n".join(lines) for name, lines in fields.items()}


def split_at_bars(row: str) -> list[str]:
    row = row.strip()
    cells = _BAR.split(row[1:] if row[:1] in _BARS else row)
    if len(cells) > 1 and not cells[-1].strip() and row[-1:] in _BARS:
        cells.pop()
    return [cell.strip().replace("\\|", "|") for cell in cells]


def is_rule(line: str) -> bool:
    """Whether a line is a rule between rows, with marks where columns meet."""
    return _RECORD.match(line) is not None or (
        _DRAWN.issuperset(line) and not _LINES.isdisjoint(line) and _JOINT.search(line) is not None
    )


def read_barred(text: Text, start: int, end: int) -> tuple[FoundTable, int] | None:
    """The table whose header, or the line above it, is at `start`, and where it ends. None if no table starts there."""
    lines = iterate_lines(text, start, end)
    if text[start : start + 3] == b"-[ " and (found := _read_field_by_field(text, start, end)):
        return found, found.ends[-1]
    head = [(read_line(text, *span), span) for span in islice(lines, _MAX_HEADER_LINES + 2)]
    rules = [number for number, (line, _) in enumerate(head) if is_rule(line)]
    has_top = rules[:1] == [0] and head[0][0].lstrip()[:1] in _TOPS
    first = 1 if has_top else 0
    rule = next((number for number in rules if number > first), 0)
    if not rule or (rule > 1 and not has_top):
        return None
    names = [split_at_bars(line) for line, _ in head[first:rule]]
    drawn = head[rule][0].rstrip()
    if sum(map(bool, _JOINT.split(drawn.strip()))) != len(names[0]) or len({len(cells) for cells in names}) > 1:
        return None
    if len(names) == 2 and all(map(_TYPE.fullmatch, names[1])):
        names.pop()
    joined = make_unique(" ".join(filter(None, parts)) for parts in zip(*names, strict=True))
    edges = [found.start() for found in _JOINT.finditer(drawn)]
    if not edges:  # the line above a record of `psql -x`
        return None
    if _JOINT.sub("", drawn[: edges[0] + 1]).strip():  # nothing is drawn around it
        edges = [-1, *edges, len(drawn)]
    rows = Barred(tuple(joined), tuple(edges), "|" not in drawn)
    found = FoundTable(rows, (head[first][1][0], head[rule - 1][1][1]))
    return found, _read_rows(text, head[rule][1][1], end, found)


def _read_field_by_field(text: Text, start: int, end: int) -> FoundTable | None:
    """Reads rows up to one whose fields cannot be columns beside those of the rows above it."""
    found, names, taken = FoundTable(FieldByField()), dict[str, None](), set[str]()
    while record := _FIELDS.match(text, start, end):
        added = [name for name in FieldByField.read_fields(read_line(text, *record.span())) if name not in names]
        keys = {name.lower() for name in added}
        if make_unique(added) != added or not taken.isdisjoint(keys) or not (names or added):
            break
        names |= dict.fromkeys(added)
        taken |= keys
        found.starts.append(start)
        found.ends.append(start := record.end())
    found.format = FieldByField(tuple(names))
    return found if len(found) else None


def _read_rows(text: Text, start: int, end: int, found: FoundTable) -> int:
    """Reads rows up to a line without bars. With rules between rows, a line that begins with an empty cell continues a row."""
    rows, goes_on, below_rule, rules = found.format, False, True, 0
    for span in iterate_lines(text, start, end):
        line = read_line(text, *span)
        if is_rule(line):
            rules, below_rule, start = rules + 1, True, span[1]
            if not _MERGES.isdisjoint(line):
                break
            continue
        if _BAR.search(line) is None:
            break
        if "·" in line and {"·"} <= {*rows.split(line)} <= {"·", ""}:
            continue  # a placeholder for rows that the output does not show
        if goes_on or (rules and not below_rule and not rows.split(line)[0]):
            found.ends[-1] = span[1]
        else:
            found.starts.append(span[0])
            found.ends.append(span[1])
        below_rule, start = False, span[1]
        goes_on = isinstance(rows, Barred) and rows.continues(line.rstrip("\r\n"))
    # DuckDB prints the number of rows, and shows only the first and the last ones.
    for span in islice(iterate_lines(text, start, end), 3):
        if shown := _SHOWN.search(read_line(text, *span)):
            count, listed = (int(number.replace(",", "")) for number in shown.groups())
            found.omissions = (Omission(count - listed, "that the output does not show"),)
    return start
