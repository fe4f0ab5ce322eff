"""The text in a stored output, as far as there is any."""

from __future__ import annotations

from msgspec import Struct

from overspill.errors import NotText, OverspillError
from overspill.lexical.kinds import recognise
from overspill.lexical.kinds.kind import Kind
from overspill.reading.positions import View
from overspill.retrieval.output import StoredOutput
from overspill.retrieval.views import describe_gaps
from overspill.store.protocols import Reader

_SAMPLE_BYTES = 256 << 10


class ShownText(Struct, frozen=True):
    """The stored bytes themselves, or what was decoded from them."""

    reader: Reader
    view: View
    notes: tuple[str, ...] = ()
    is_text: bool = True
    """False if there is none: then the bytes themselves are shown."""
    is_decoded: bool = False
    """Whether positions are those of the decoded text, and not of the stored bytes."""

    @property
    def kind(self) -> Kind:
        """What the engine takes it for, by its beginning."""
        return recognise(self.reader.read(0, _SAMPLE_BYTES))


def open_text(stored: StoredOutput) -> ShownText:
    """A damaged output is shown too, as far as it is there."""
    is_text = stored.kept.media == "text"
    if stored.damage:
        return ShownText(stored.reader, stored.view, is_text=is_text)
    try:
        text = stored.decoded()
    except NotText as problem:
        return ShownText(stored.reader, stored.view, (str(problem),), is_text=False)
    except OverspillError as problem:
        return ShownText(stored.reader, stored.view, (str(problem),), is_text=is_text)
    is_decoded = text.decoding is not None and bool(text.decoding.formats)
    return ShownText(text.reader, text.positions, tuple(describe_gaps(stored.kept, text)), is_decoded=is_decoded)
