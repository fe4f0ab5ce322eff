"""What the text in a column means: numbers, times, or quantities with units."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from functools import cache
from itertools import accumulate
from typing import Literal, TypeAlias

from msgspec import Struct

from overspill.text.regex import Pattern, regex

Meaning: TypeAlias = Literal["number", "boolean", "date", "time", "bytes", "seconds", "cores", "percent", "text"]
NO_VALUE = frozenset(("", "-", "--", "<none>", "<unknown>", "<nil>", "n/a", "na", "none", "null", "nan", "unknown", "?"))
"""What programs print for a missing value, in lower case. Among other text, each may be a value, such as the country `NA`."""
MIN_FITTING_SHARE = 0.9
"""The share of a column's values that must be numbers or times to read it that way. Others, such as "Total", are reported."""
_MAX_CHARS = 64
"""Longer text is neither a number nor a time."""
_CPU = regex(r"(?i)cpu|cores")
_MILLI = regex("[0-9]+m")

_UTC = "(Z| ?UTC|[+]00:?00)"
_OFFSET = "(Z| ?UTC|\\s?[+-][0-9]{2}(:?[0-9]{2})?)"
_ISO = "[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}(:[0-9]{2}([.,][0-9]{1,9})?)?"
_FLOAT = "-?(0|[1-9][0-9]*)?[.][0-9]{1,14}|-?(0|[1-9][0-9]*)([.][0-9]{1,14})?[eE][-+]?[0-9]{1,2}|-?(0|[1-9][0-9]{0,14})"
_GROUPED = "([0-9]{1,3}(,[0-9]{3})+|[0-9]+)([.][0-9]*)?"
_ACCESS_TIME = "[0-9]{2}/[A-Z][a-z]{2}/[0-9]{4}:[0-9]{2}:[0-9]{2}:[0-9]{2} [+-][0-9]{4}"
_FRACTIONS = {"ms": 1e-3, "us": 1e-6, "µs": 1e-6, "ns": 1e-9}
SECONDS: dict[str, float] = {"y": 31536000, "w": 604800, "d": 86400, "h": 3600, "m": 60, "s": 1, **_FRACTIONS}
_ZONE = regex("(?:Z| ?UTC|\\s?[+-][0-9:]{2,5})$")
_PART = regex("(?<![0-9.])([0-9]++(?:[.][0-9]++)?)\\s?(ms|us|µs|ns|[ywdhms])")
_SIZE = regex("(-?[0-9]+(?:[.][0-9]+)?)\\s?([a-zA-Z]*)")
BYTES = {
    f"{letter}{ending}": float(base**power)
    for power, letter in enumerate("kmgtpe", 1)
    for ending, base in (("", 1024), ("b", 1000), ("i", 1024), ("ib", 1024))
}
"""A single letter is a binary unit, as in `df -h`, `ls -h` and `du -h`."""


def _read_time(text: str) -> float:
    """Seconds since 1970. Without an offset, it counts as UTC."""
    offset = found[0] if (found := _ZONE.search(text, len("2024-01-05 10:00"))) else ""
    stamp = text.removesuffix(offset).replace(",", ".").replace(" ", "T")[:26]
    stamp += "+00:00" if offset.strip() in ("", "Z", "UTC") else offset.strip()
    moment = datetime.fromisoformat(stamp)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _read_size(text: str) -> float:
    found = _SIZE.match(text)
    return float(found[1]) * BYTES.get(found[2].lower(), 1.0) if found else 0.0


def _read_day(text: str) -> float:
    return float(datetime.fromisoformat(text).toordinal())


def _drop(marks: str) -> Callable[[str], float]:
    table = str.maketrans("", "", marks)
    return lambda text: float(text.translate(table))


class Reading(Struct, frozen=True):
    """A way to read text as values. `pattern` matches text that can be read in full, with syntax that RE2 and Python share."""

    name: str
    meaning: Meaning
    pattern: str
    measure: Callable[[str], float]
    """Returns the number by which to compare and add up values."""
    replaces: bool = False
    """Whether the value can replace its text without loss."""
    is_cpu: bool = False
    """Whether it applies only to columns about processors. Elsewhere, `12m` means minutes."""

    def fits(self, text: str) -> bool:
        return self.try_measure(text) is not None

    def try_measure(self, text: str) -> float | None:
        """Read a text as a measure; None if that fails."""
        if len(text) > _MAX_CHARS or not compile_reading(self.pattern).match(text):
            return None
        try:
            return self.measure(text)
        except (ValueError, OverflowError):  # such as the 31st of February
            return None


@cache
def compile_reading(pattern: str) -> Pattern[str]:
    return regex(rf"(?a)\A(?:{pattern})\Z")


READINGS: tuple[Reading, ...] = (
    Reading(
        "cores",
        "cores",
        "[0-9]+m|[0-9]+([.][0-9]+)?",
        lambda text: float(text.rstrip("m")) / (1000 if text.endswith("m") else 1),
        is_cpu=True,
    ),
    Reading("integer", "number", " *-?(0|[1-9][0-9]{0,17})", float, replaces=True),
    Reading("float", "number", _FLOAT, float, replaces=True),
    Reading("flag", "boolean", "[tT]rue|[fF]alse|TRUE|FALSE", lambda text: float(text.lower() == "true"), replaces=True),
    Reading("letter", "boolean", "[tf]", lambda text: float(text == "t")),
    Reading("date", "date", "[0-9]{4}-[0-9]{2}-[0-9]{2}", _read_day, replaces=True),
    Reading("day first", "date", "[0-9]{2}[.][0-9]{2}[.][0-9]{4}", lambda text: _read_day("-".join(text.split(".")[::-1]))),
    Reading("time", "time", f"{_ISO}{_UTC}?", _read_time, replaces=True),
    Reading("offset time", "time", f"{_ISO}{_OFFSET}?", _read_time),
    Reading("access time", "time", _ACCESS_TIME, lambda text: datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z").timestamp()),
    Reading("bytes", "bytes", "0|-?[0-9]+([.][0-9]+)?\\s?([kKmMgGtTpPeE]i?[bB]?|[bB]ytes?|[bB])", _read_size),
    Reading(
        "duration",
        "seconds",
        "([0-9]+([.][0-9]+)?\\s?(d|h|m|s|ms|us|µs|ns|w|y)\\s?){1,8}",
        lambda text: sum(float(many) * SECONDS[unit] for many, unit in _PART.findall(text)),
    ),
    Reading(
        "thousands",
        "number",
        "[-+]?[1-9][0-9]{0,2}(,[0-9]{3}){1,4}([.][0-9]+)?|[-+]?(0|[1-9][0-9]{0,14})([.][0-9]+)?",
        _drop(",+"),
    ),
    Reading(
        "decimal comma",
        "number",
        "[-+]?(0|[1-9][0-9]{0,2}([.][0-9]{3}){1,4}|[1-9][0-9]{0,14})(,[0-9]+)?",
        lambda text: float(text.replace(".", "").replace(",", ".")),
    ),
    Reading("noted", "number", "(0|[1-9][0-9]{0,14})( [(][^()]{1,40}[)])?", lambda text: float(text.partition(" ")[0])),
    Reading("percent", "percent", f"[-+]?({_GROUPED}|[.][0-9]+)\\s?%", _drop("%, +")),
    Reading(
        "decimal comma percent", "percent", "[-+]?[0-9]+(,[0-9]+)?\\s?%", lambda text: float(text.rstrip("% ").replace(",", "."))
    ),
    Reading("money", "number", f"-?[$€£¥]\\s?-?{_GROUPED}", _drop("$€£¥, ")),
)
"""All ways to read a column. The first one that fits is used."""
_READABLE = compile_reading("|".join(dict.fromkeys(each.pattern for each in READINGS)))


def is_value(text: str) -> bool:
    return text.lower() not in NO_VALUE if len(text) < 10 else True


def keep_values(counts: Counter[str]) -> Counter[str]:
    """Leaves out what programs print for a missing value."""
    if NO_VALUE.isdisjoint(map(str.lower, counts)):
        return counts
    return Counter({text: times for text, times in counts.items() if is_value(text)})


def find_reading(texts: Iterable[str], column: str = "") -> Reading | None:
    """How to read a column of text as values: a way that fits all of its texts or, failing that, nearly all."""
    return measure_values(Counter(iter(texts)), column)[0]


def measure_values(counts: Counter[str], column: str = "") -> tuple[Reading | None, dict[str, float]]:
    """How to read a column, and the measures of the values that can be read. `counts` has how often each value occurs."""
    values = keep_values(counts)
    most_misses = int((1 - MIN_FITTING_SHARE) * sum(values.values()))
    is_cpu = _CPU.search(column) is not None and any(map(_MILLI.fullmatch, values))
    likely = [each for each in READINGS if is_cpu or not each.is_cpu]
    unlike = accumulate(times for text, times in values.items() if not _READABLE.match(text))
    for most in (0, most_misses) if values else ():
        if most and any(many > most for many in unlike):
            break
        for reading in likely:
            measured, misses = dict[str, float](), 0
            for value, times in values.items():
                measure = reading.try_measure(value)
                if measure is not None:
                    measured[value] = measure
                elif (misses := misses + times) > most:  # the first values of most columns show this
                    break
            else:
                return reading, measured
    return None, {}
