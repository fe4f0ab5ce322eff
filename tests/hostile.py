"""Documents that are hard to read in linear time, as long as one likes: broken, deep, wide, or of one repeated piece."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

Document = Callable[[int], str]


def run(piece: str, size: int, *, start: str = "", end: str = "") -> str:
    return start + piece * max(1, (size - len(start) - len(end)) // len(piece)) + end


def _nested(opening: str, closing: str, inner: str, size: int, *, start: str = "", closed: bool = True) -> str:
    depth = max(1, (size - len(inner)) // (len(opening) + len(closing) * closed))
    return start + opening * depth + inner + closing * depth * closed


def _numbered(line: str, size: int, *, start: str = "", end: str = "") -> str:
    """Lines that differ in their number `#`."""
    lines: list[str] = []
    left = size - len(start) - len(end)
    while left > 0:
        lines.append(line.replace("#", str(len(lines))))
        left -= len(lines[-1])
    return start + "".join(lines) + end


def _steps(size: int) -> str:
    """Each line indented under the one before."""
    depth = int((2 * size) ** 0.5)
    return "".join("\t" * level + f"if x{level}:\n" for level in range(depth))


def _wide(cell: str, separator: str, size: int) -> str:
    """Three rows of as many columns as there is room for."""
    row = separator.join(cell.replace("#", str(number)) for number in range(max(2, size // 3 // (len(cell) + 5))))
    return f"{row}\n{row}\n{row}\n{row}\n"


def _of(piece: str, *, start: str = "", end: str = "") -> Document:
    return partial(run, piece, start=start, end=end)


def _lines(line: str, *, start: str = "", end: str = "") -> Document:
    return partial(_numbered, line, start=start, end=end)


DOCUMENTS: dict[str, Document] = {
    "json": _lines('{"id": #, "name": "alpha-#", "error": null}, ', start='{"items": [', end='{"id": 0}]}'),
    "json with a string never closed": _of('\\"', start='{"note": "'),
    "json with a text never closed": _of('error \\"x\\" failed\\n', start='{"a": [1, 2], "note": "'),
    "json with a key never closed": _of("alpha ", start='{"'),
    "json with many strings never closed": _of('{"a\\', start='[{"b": "\\n"}, '),
    "json of quotation marks": _of('"', start='{"a": 1, '),
    "json inside a string": _lines('{\\"id\\": #, \\"error\\": \\"alpha\\"}, ', start='{"text": "[', end=']"}'),
    "json of many strings that are texts": _lines('"' + "alpha \\n failed " * 30 + '", ', start="[", end='""]'),
    "json of escaped letters": _of("\\u0041\\\\u00e9", start='{"text": "[\\"', end='\\"]"}'),
    "json of escaped capitals": _of("\\u0041", start='{"text": "[\\"', end=' \\\\u00e9\\"]"}'),
    "json of brackets": partial(_nested, "[", "]", "1"),
    "json of brackets never closed": partial(_nested, '{"a":[', "", "", closed=False),
    "json that only closes": _of("]}", start="[1]"),
    "json of white space": _of(" \n", start="[1", end="]"),
    "json of white space after braces": _of("\n", start='{"a": 1}'),
    "json with many keys": _lines('"alpha#": #, ', start="{", end='"z": 0}'),
    "json with many keys in rows": partial(_numbered, '{"alpha#": #, "b#": 1}, ', start="[", end="{}]"),
    "ndjson": _lines('{"id": #, "level": "error", "message": "alpha failed"}\n'),
    "ndjson with strings never closed": _lines('{"id": #, "message": "alpha\\"\n'),
    "csv": _lines("#,alpha,failed,12\n", start="id,name,state,size\n"),
    "csv with a quotation mark never closed": _lines('#,"alpha,failed,12\n', start="id,name,state,size\n"),
    "csv of quotation marks": _of('"\n""\n', start="id,name,state\n1,2,3\n1,2,3\n1,2,3\n"),
    "csv with many columns": partial(_wide, "alpha#", ","),
    "columns": _lines("alpha#   failed   12\n", start="NAME     STATE    SIZE\n"),
    "many columns": partial(_wide, "alpha#", "   "),
    "many tables": _lines("NAME   STATE   SIZE\nalpha#   failed   12\nbeta   ok   3\ngamma   ok   4\n\n"),
    "listing": _lines("-rw-r--r-- 1 alpha beta # 2026-01-01 10:00 failed #\n", start="total 12\n"),
    "listing of one name": _of("failed ", start="-rw-r--r-- 1 alpha beta 12 2026-01-01 10:00 x\n" * 9 + "-rw-r--r-- 1 a b 1 "),
    "access log": _lines('10.0.0.# - alpha [01/Jan/2026:10:00:00 +0000] "GET /failed/# HTTP/1.1" 500 12 "-" "beta"\n'),
    "access log of quotation marks": _of(
        '"', start='10.0.0.1 - - [01/Jan/2026:10:00:00 +0000] "GET / HTTP/1.1" 200 1 "-" "-"\n' * 9
    ),
    "boxes": _lines("| # | alpha | failed |\n", start="+---+-------+--------+\n| id | name | state |\n+---+-------+--------+\n"),
    "python's literals": _lines("{'id': #, 'name': 'alpha', 'error': None}, ", start="[", end="{}]"),
    "words before json": _lines('{"id": #, "name": "alpha"}, ', start="Found 500 rows:\n[", end="{}]"),
    "log": _lines("2026-01-01 10:00:00 ERROR alpha failed #\n"),
    "log of one trace": _of("    at alpha.failed(alpha.java:12)\n", start="2026-01-01 10:00:00 ERROR alpha failed\n"),
    "log in red": _of("\x1b[31mERROR alpha failed\x1b[0m\n"),
    "log in one endless colour": _of("31;", start="2026-01-01 10:00:00 ERROR \x1b[31m\n\x1b[", end="\n"),
    "log of colours never ended": _of("\x1b[31;", start="2026-01-01 10:00:00 ERROR \x1b[31m\n"),
    "log of failures": _of("no x errors failed exit code 1 FAILED\n"),
    "log of carriage returns": _of("\r", start="2026-01-01 10:00:00 ERROR alpha failed\n", end="alpha"),
    "git log": _lines("commit 0123456789abcdef\nAuthor: alpha <a@b.c>\n\n    alpha failed #\n\n"),
    "git log of one message": _of("    alpha failed\n", start="commit 0123456789abcdef\n\n"),
    "diff": _lines("@@ -#,3 +1,3 @@\n-alpha\n+failed\n", start="diff --git a/x b/x\n--- a/x\n+++ b/x\n"),
    "diff of files": _lines("diff --git a/# b/#\n--- a/#\n+++ b/#\n@@ -1 +1 @@\n-alpha\n"),
    "matches": _lines("src/alpha.py:#:    alpha failed\n"),
    "matches of one path": _of("a-1", end="!\n"),
    "code": _lines("def alpha_#():\n    return failed(#)\n\n"),
    "code that only indents": _steps,
    "code in one block": _of("    alpha = failed()\n", start="def alpha():\n"),
    "yaml": _lines("alpha#:\n  - failed: #\n"),
    "prose": _of("The alpha service has failed again, and nobody knows why it did so on that very day. "),
    "prose in lines": _of("The alpha service has failed again, and nobody knows why.\n"),
    "many headings": _of("# Alpha\n\nIt failed.\n\n## Beta\n\nIt did not.\n\n"),
    "headings without end": _of("#", start="# Alpha\n\n# Beta\n\n", end=" x\n"),
    "paragraphs in capitals": _of("ALPHA FAILED\n"),
    "capitals and tabs": _of("ALPHA FAILED\t\t\t\t"),
    "numbered headings": _of("1.1.1.1.1.1.1.1.1.1 ", end="x"),
    "markdown of rules": _of("|---|\n"),
    "records without fields": _of("-[ RECORD 1 ]-\n"),
    "records of a field without a name": _of("-[ RECORD 1 ]-\n | alpha\n"),
    "record of one field": _of(" | alpha\n", start="-[ RECORD 1 ]-\nid | 1\n"),
    "markdown table": _lines("| # | alpha | failed |\n", start="# A\n\n# B\n\n| id | name | state |\n|---|---|---|\n"),
    "markdown table with many columns": partial(_wide, "| alpha# ", "|"),
    "html": _lines("<tr><td>#</td><td>alpha</td><td>failed</td></tr>\n", start="<html><table>\n", end="</table></html>"),
    "html behind a few comments": _of("<p>alpha", start="<!-- a -->\n" * 40 + "<html>", end="failed</html>"),
    "comments and no html": _of("alpha ", start="<!-- a -->\n" * 40, end="failed"),
    "html behind comments": _of("<!-- alpha -->\n", end="<html><p>failed</p></html>"),
    "html behind comments never closed": _of("<!-- alpha -- "),
    "html of scripts never closed": _of("<script>", start="<!doctype html><p>alpha failed</p>"),
    "html of comments never closed": _of("<!--", start="<!doctype html><p>alpha failed</p>"),
    "html of tags never closed": _of("<p ", start="<!doctype html><p>alpha failed</p>"),
    "html of one tag never closed": _of("a ", start="<!doctype html><p>alpha failed</p><p "),
    "html of entities never closed": _of("&a", start="<!doctype html><p>alpha failed</p>"),
    "html of white space": _of("<p> \n \n</p>", start="<!doctype html>"),
    "html of different tags": _lines("<a href='#'>alpha</a>", start="<!doctype html>"),
    "nested html": partial(_nested, "<div>", "</div>", "alpha failed", start="<!doctype html>"),
    "xml": _lines("<item id='#'><name>alpha</name></item>\n", start="<?xml version='1.0'?>\n<root>\n", end="</root>"),
    "xml of declarations never closed": _of("<!", start="<?xml version='1.0'?><root>alpha</root>"),
    "xml of instructions never closed": _of("<?", start="<?xml version='1.0'?><root>alpha</root>"),
    "xml of comments never closed": _of("<!--", start="<?xml version='1.0'?><root>alpha</root>"),
    "xml of tags never closed": _of("<a", start="<?xml version='1.0'?><root>alpha</root>"),
    "nested xml": partial(_nested, "<alpha>", "</alpha>", "failed", start="<?xml version='1.0'?>"),
    "xml that only opens": partial(_nested, "<alpha>", "", "failed", start="<?xml version='1.0'?>", closed=False),
    "turns": _lines("[10:00] <alpha#> it failed and beta did too\n"),
    "turns that never end": _of("alpha failed ", start="[10:00] <ann> no\n[10:01] <bob> yes\n[10:02] <ann> "),
    "turns of speakers": _lines("Ann Low: the alpha failed at last, and nobody saw it\nBob Hay: beta did not fail for once\n"),
    "minutes": _lines(
        "== Alpha and beta # ==\n\nAnn Low: the alpha failed, and nobody saw it\n\nBob Hay: beta did not fail for once\n\n"
        "Ann Low: it will fail soon enough, and then we shall see\n\n=== Conclusion ===\n\nalpha and beta stay as they are\n\n"
    ),
    "messages": _lines(
        "Ann Low, 2010-01-05 02:02:\nalpha # failed\n\nBob Hay, 2010-01-05 05:37:\n> alpha # failed\nbeta did\n\n"
    ),
    "messages of long names": _of("Ann ", start="Ann Low, 2010-01-05 02:02:\nalpha failed\n\nso it did\n\n" * 4),
    "messages of headers": _lines("From: alpha\nDate: beta\nSubject: failed #\nit did\nso\nthere\n\n"),
    "messages of quotations": _of(
        "> " * 40 + "alpha\nno\n", start="Ann Low, 2010-01-05 02:02:\nalpha failed\n\nso it did\n\n" * 4
    ),
    "posts": _lines(
        "Ann Low, 2010-01-05 02:02:\n<p>alpha # failed</p><p>so it did</p>\n\nBob Hay, 2010-01-05 05:37:\n<br>beta did<br>\n\n"
    ),
    "posts of tags": _of("<p><br>", start="Ann Low, 2010-01-05 02:02:\n<p>alpha failed</p>\n\n<p>so it did</p>\n\n" * 4),
    "posts of tags never closed": _of("<p ", start="Ann Low, 2010-01-05 02:02:\n<p>alpha failed</p>\n\n<p>so it did</p>\n\n" * 4),
    "underlined headings": _lines("Alpha # of the beta\n-------------------\n\n", start="# One\n\n# Two\n\n"),
    "tables that refer to each other": _lines(
        '{"id": #, "name": "alpha #", "alpha_id": #, "alphas": [1, 2, #]}, ',
        start='{"betas": [{"id": 1, "name": "beta"}, {"id": 2, "name": "x"}, {"id": 3, "name": "y"}], "alphas": [',
        end='{"id": 0}]}',
    ),
    "rows that all refer to one": _lines(
        '{"id": #, "beta_id": 1, "also": [1, 1, 1]}, ',
        start='{"betas": [{"id": 1, "name": "beta"}, {"id": 2, "name": "x"}, {"id": 3, "name": "y"}], "alphas": [',
        end='{"id": 0}]}',
    ),
    "rows of lists never closed": _of(
        '{"also": [1, ',
        start='{"betas": [{"id": 1, "name": "beta"}, {"id": 2}, {"id": 3}], "alphas": [{"id": 1}, {"id": 2}, {"id": 3}], "x": [',
    ),
    "short lines": _of("a\n"),
    "empty lines": _of("\n", start="alpha", end="failed"),
    "one line": _of("alpha failed "),
    "one word": _of("a"),
    "spaces": _of(" ", start="alpha", end="failed"),
    "tabs": _of("\t", start="alpha", end="failed"),
    "pipes": _of("|", start="alpha\n"),
    "dashes": _of("-", start="alpha\n"),
    "digits": _of("1", start="alpha "),
    "backslashes": _of("\\", start='{"a": "'),
    "characters without spaces": _of("漢字"),
    "halves of characters": _of("\udc80"),
    "unpaired surrogates": _of("\ud800"),
    "zero bytes": _of("\x00"),
}
