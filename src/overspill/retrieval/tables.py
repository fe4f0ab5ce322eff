"""SQL over the outputs of a session: which outputs a statement names, and what it answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import accumulate

import anyio.to_thread
from msgspec import Struct, field

from overspill.errors import BadRequest, HandleError
from overspill.gate.collect import CollectedResult
from overspill.gate.gate import Gate
from overspill.reading import Bound
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.outputs import StoredOutputs
from overspill.retrieval.pages import FOOTER_BYTES, Page, make_page, shrink
from overspill.retrieval.views import describe_gaps
from overspill.sql.answers import SqlAnswer, read_answer, spell_cell
from overspill.sql.library import QueryResult, Source, SqlLibrary
from overspill.text.regex import regex
from overspill.types import Kept, Lineage, LineageSource, ToolCall
from overspill.wording import retrieval as wording

_NAMES = regex(r"(?i)\bout_[0-9a-z]{6,12}(?![0-9a-z])")
_ASKED = "output"
"""The name, in a statement, of the output that it queries."""
_MAX_RECORDED_CHARS = 10_000


class SqlReply(Struct, frozen=True):
    """An answer, and the output that has all its rows if they do not fit."""

    answer: SqlAnswer
    stored: StoredOutput
    kept: Kept | None = None

    @property
    def whole(self) -> Page:
        return make_page(self.stored, self.answer.text, self._notes(len(self.answer.rows)))

    def page(self, bound: Bound) -> Page:
        if bound.holds((whole := self.whole).text):
            return whole
        room = shrink(bound, FOOTER_BYTES + len("\n".join(self._notes(0)[:-1]).encode()))
        lines = _take(self.answer.lines, room)
        if lines:
            return make_page(self.stored, "\n".join(lines), self._notes(len(lines) - 1))
        names = _take([spell_cell(name) for name in self.answer.columns], room)
        named = wording.sql_columns(len(self.answer.columns), len(names))
        return make_page(self.stored, "\t".join(names), [named, *self._notes(0)])

    def _notes(self, shown: int) -> list[str]:
        notes = [note if note.startswith("[") else f"[{note}]" for note in self.answer.notes]
        stored = len(self.answer.rows)
        return [*notes, wording.sql_rows(self.answer.total, shown, stored, self.kept.name if self.kept else "")]


class OutputTables(Struct, eq=False):
    """The tables of outputs: loaded once for each output, and queried together."""

    gate: Gate
    outputs: StoredOutputs
    _library: SqlLibrary = field(default_factory=SqlLibrary)

    def close(self) -> None:
        self._library.close()

    async def ask(self, statement: str) -> SqlAnswer:
        """The answer to a statement that calls outputs by their names."""
        found = anyio.to_thread.run_sync(lambda: self._query(statement, self.find_named(statement)), abandon_on_cancel=True)
        return (await found)[1]

    async def reply(self, stored: StoredOutput, statement: str | None, bound: Bound) -> SqlReply:
        """The answer to a statement about one output, which may name others. Rows that do not fit are stored."""
        if not statement:
            raise BadRequest(wording.SQL_REQUIRED)
        outputs = {**await anyio.to_thread.run_sync(self.find_named, statement), _ASKED: stored}
        settings = self.gate.settings
        try:
            with anyio.fail_after(settings.async_timeout_secs + settings.sql_timeout_secs):
                # Loading continues in its thread, so that the tables are ready when the model asks again.
                found, answer = await anyio.to_thread.run_sync(self._query, statement, outputs, abandon_on_cancel=True)
        except TimeoutError:
            raise BadRequest(wording.STILL_LOADING) from None
        kept = None
        if answer.rows and not bound.holds(SqlReply(answer, stored).whole.text):
            sources = tuple(LineageSource(name, each.kept.handle, each.kept.sha256) for name, each in outputs.items())
            statement = self.gate.redaction.redact(statement, "sql", "")  # before it is cut
            query, more = statement[:_MAX_RECORDED_CHARS], len(statement) - _MAX_RECORDED_CHARS
            lineage = Lineage(query if more <= 0 else f"{query}… ({more:,} more characters)", sources)
            kept = await self.keep(ToolCall("", "sql", {"query": lineage.query}), found.lines, lineage)
        return SqlReply(answer, stored, kept)

    def _query(self, statement: str, outputs: Mapping[str, StoredOutput]) -> tuple[QueryResult, SqlAnswer]:
        texts = {name: output.decoded() for name, output in outputs.items()}
        keys = {name: texts[name].key or output.kept.id for name, output in outputs.items()}
        sources = {name: Source(keys[name], texts[name].reader, label=name) for name in outputs}
        found = self._library.query(statement, sources, self.gate.settings.sql_timeout_secs)
        if (asked := found.loaded.get(_ASKED)) is not None and not asked.tables:
            raise BadRequest(wording.no_table(asked.kind))
        gaps = [gap for name, output in outputs.items() for gap in describe_gaps(output.kept, texts[name])]
        return found, read_answer(found, gaps)

    def find_named(self, statement: str) -> dict[str, StoredOutput]:
        """The outputs that a statement names. Blocks."""
        found: dict[str, StoredOutput] = {}
        for name in sorted({name.lower() for name in _NAMES.findall(statement)}):
            try:
                found[name] = self.outputs.recent(name)
            except HandleError:  # not an output: if it was meant as a table, the answer says that it does not exist
                continue
        return found

    async def keep(self, call: ToolCall, data: str | bytes, lineage: Lineage) -> Kept:
        """Store data that was made from stored outputs."""
        collected = CollectedResult(partial(self.gate.new_spool, self.gate.settings.for_tool(call.name)))
        collected.lineage = lineage
        try:
            await collected.take(data)
            return await self.gate.keep(call, collected, "requested")
        except BaseException:
            collected.discard()
            raise


def _take(parts: list[str], room: Bound) -> list[str]:
    """As many of the first parts as fit, with a separator between them."""
    sizes = accumulate(len(part.encode("utf-8", "replace")) + 1 for part in parts)
    return parts[: sum(size <= room.least_bytes for size in sizes)]
