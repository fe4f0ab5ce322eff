"""Drafts what a model reads below the name of a stored output: its card, and smaller cards for a context with less room."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec import Struct

from overspill.errors import OverspillError
from overspill.record.logs import logger
from overspill.settings import Settings
from overspill.text import encoding, tokens
from overspill.text.tokens import CHARS_PER_TOKEN
from overspill.types import Size
from overspill.wording import replies
from overspill.wording.names import next_calls

if TYPE_CHECKING:
    from overspill.gate.cards.sample import Read

DEFAULT_TOKENS = 400
_PARTS = (1, 2, 4, 8)
"""The divisors of the room for which to draft cards."""
_MIN_TOKENS = 12
"""A smaller card would be useless."""
_MAX_STEPS_SHARE = 0.35
"""The share of the room for suggested next calls. Calls that do not fit are left out."""


class DraftedCard(Struct, frozen=True):
    text: str
    """The card without its frame."""
    framed: str


class CardRoom:
    """How large a preview may be: in tokens, characters or both, and in bytes. It always counts in tokens."""

    def __init__(self, settings: Settings, max_bytes: int) -> None:
        self._max_chars = settings.preview_chars
        # A configured limit in characters replaces the default limit in tokens.
        default = DEFAULT_TOKENS if self._max_chars is None else None
        self._max_tokens = default if settings.preview_tokens == "auto" else settings.preview_tokens
        self._max_bytes = max_bytes
        self._model = settings.model
        most = -(-(self._max_chars or 0) // CHARS_PER_TOKEN) if self._max_tokens is None else self._max_tokens
        self.tokens = min(most, max_bytes)
        self.chars = min(max_bytes, most * CHARS_PER_TOKEN if self._max_chars is None else self._max_chars)
        """About how many characters fit. Exact if characters are limited."""
        self._counted: dict[str, int] = {}

    def count(self, text: str) -> int:
        """How much of the room some text takes, by its tightest limit. Cached, because cards share parts."""
        if text in self._counted:
            return self._counted[text]
        used = [self._scale(len(encoding.encode(text)), self._max_bytes)]
        if self._max_chars is not None:
            used.append(self._scale(len(text), self._max_chars))
        if self._max_tokens is not None:
            used.append(tokens.count(text, self._model).tokens)
        self._counted[text] = max(used)
        return self._counted[text]

    def _scale(self, part: int, whole: int) -> int:
        return -(-part * self.tokens // max(1, whole))


def draft_cards(read: Read, size: Size, id: str, offered: Collection[str], room: CardRoom) -> list[DraftedCard]:
    """Cards of several sizes, the largest first. `id`: the output's name in the reply; `offered`: the tools that can read it.

    Empty if a defect keeps the card from being made.
    """
    from overspill.gate.cards.make import make_card  # noqa: PLC0415  # reads with the engine, which takes long to import

    try:
        card = make_card(read, size)
    except OverspillError:
        raise
    except Exception as error:  # hostile text can fail in ways that nobody foresaw, and its output needs a name
        logger.error("An output has no card, because making it failed (%s). It can be read all the same.", type(error).__name__)
        return []
    drafts: list[DraftedCard] = []
    for part in _PARTS:
        limit = room.tokens // part
        spelt = (next_calls(id, card.steps[:count], offered) for count in range(len(card.steps), -1, -1))
        steps = next((each for each in spelt if room.count(each) <= _MAX_STEPS_SHARE * limit), "")
        text = card.write(limit - (room.count(steps) if steps else 0), room.count) if limit >= _MIN_TOKENS else ""
        if text and all(text != each.text for each in drafts):
            drafts.append(DraftedCard(text, "\n".join(filter(None, (replies.preview(text), steps)))))
    return drafts
