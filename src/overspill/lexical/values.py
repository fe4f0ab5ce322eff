"""What sort of value a question asks for, in the languages of many pages, and whether a text has one."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

Value: TypeAlias = Literal["number", "time"]

_ASKS_NUMBER = re.compile(
    r"\bhow (?:many|much|long|wide|tall|heavy|old|often|far|big|large|high|deep|thick|thin|fast|small|strong|hot|cold)\b"
    r"|\b(?:number|nummer|n[uú]mero|numéro|номер|weighs?)\b"
    r"|\bwie (?:viele?|lange?|schwer|hoch|breit|groß|alt|oft|weit|dick|tief|schnell|teuer)\b"
    r"|\bcombien\b|\bcu[aá]nt[oa]s?\b|\bquant[oiae]s?\b|\bhoeveel\b|\bhur många\b|\bile\b|\bсколько\b"
    r"|号码|番号|多少|几|幾|有多|いくつ|いくら|何(?:人|個|本|冊|円|回|ページ)|번호|얼마|몇",
    re.IGNORECASE,
)
_ASKS_TIME = re.compile(
    r"\bwhen\b|\b(?:what|which) (?:day|date|year|month|time)\b"
    r"|\bwann\b|\bwelche\w{0,2} (?:tag|jahr|datum)\b|\bquand\b|\bcu[aá]ndo\b|\bquando\b|\bwanneer\b|\bkiedy\b|\bкогда\b"
    r"|何时|何時|什么时候|哪(?:年|天|一年|一天)|いつ|何(?:年|月|日)|언제",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"\d")
_TIME = re.compile(r"\b(?:1[4-9]|20)\d\d\b|\b\d{1,2}[./-]\d{1,2}[./-]\d{2,4}\b|\b\d{1,2}:\d\d\b|\d\s?[年月日년월일]")


def find_asked_value(question: str) -> Value | None:
    return "time" if _ASKS_TIME.search(question) else "number" if _ASKS_NUMBER.search(question) else None


def has_value(text: str, value: Value) -> bool:
    return (_TIME if value == "time" else _NUMBER).search(text) is not None
