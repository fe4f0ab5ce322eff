"""Is a known value ever shown? Run: python benchmarks/redaction/hidden.py [--cases 10000]

Each case puts one value, in one of the encodings that docs/secrets.md lists, somewhere in an output, keeps that output with
`redact: {shown: on}` and reads it in every way there is. No six characters of what was put there may be in any answer.
"""

from __future__ import annotations

import argparse
import base64
import html
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable
from string import ascii_letters, digits
from typing import Any, NamedTuple
from urllib.parse import quote, quote_plus

import anyio
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from overspill import Session, Settings
from overspill.sql.library import is_installed

PLACE = "on"
WINDOW = 6
PAGE_BYTES = 600
SEARCHED_WHOLE_BYTES = 1 << 20
MARGIN_BYTES = 128 << 10
WORDS = "the quick brown fox jumps over the lazy dog again and again, "
ENCODINGS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "percent": lambda value: quote(value, safe=""),
    "form": quote_plus,
    "JSON": lambda value: json.dumps(value)[1:-1],
    "JSON as UTF-8": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "JSON in JSON": lambda value: json.dumps(json.dumps(value))[3:-3],
    "JSON three times": lambda value: json.dumps(json.dumps(json.dumps(value)))[7:-7],
    "HTML": html.escape,
    "entities": lambda value: "".join(f"&#{ord(each)};" for each in value),
    "hexadecimal entities": lambda value: "".join(f"&#x{ord(each):X};" for each in value),
    "hex": lambda value: value.encode().hex(),
    "upper hex": lambda value: value.encode().hex().upper(),
    **{f"base64 at {at}": lambda value, at=at: base64.b64encode(b"~" * at + value.encode()).decode() for at in range(3)},
    "base64 inside": lambda value: base64.b64encode(b"~~~~" + value.encode() + b"~~~").decode(),
    "URL-safe base64": lambda value: base64.urlsafe_b64encode(b"~" + value.encode()).decode().rstrip("="),
    "base64 in lines": lambda value: base64.encodebytes(value.encode()).decode(),
}
SHAPES = ("log", "one line", "JSON", "JSON in a string", "table", "binary", "stream")
OTHERS = str.maketrans(ascii_letters + digits, ascii_letters[13:] + ascii_letters[:13] + digits[5:] + digits[:5])
"""Makes another value of the same form."""
CHARACTERS = st.sampled_from("abcXYZ019 \n\t\"'\\/<>&%+=-_.:;,#{}é日😀\x7f")


class Case(NamedTuple):
    value: str
    encoding: str
    shape: str
    before: int
    """Bytes in front of it."""
    after: int
    cut: int
    """Where a stream breaks it, and from where parts are read."""
    asks_sql: bool

    @property
    def written(self) -> str:
        return ENCODINGS[self.encoding](self.value)


def is_telling(value: str) -> bool:
    return len(value.strip()) >= 8 and len(set(value.strip())) > 2 and value.strip() not in WORDS


values = (
    st.text(CHARACTERS, min_size=8, max_size=60)
    | st.text(st.sampled_from("ab1"), min_size=8, max_size=40)
    | st.text(st.characters(codec="utf-8", exclude_categories=("Cc",)), min_size=8, max_size=30)
    | st.builds(str.__mul__, st.text(CHARACTERS, min_size=9, max_size=50), st.integers(2, 8))
).filter(is_telling)
borders = st.sampled_from([0, PAGE_BYTES, 4 * PAGE_BYTES, 4096, 65_536])
far_borders = st.sampled_from([MARGIN_BYTES, SEARCHED_WHOLE_BYTES])
cases = st.builds(
    Case,
    value=values.map(str.strip),
    encoding=st.sampled_from(sorted(ENCODINGS)),
    shape=st.sampled_from(SHAPES),
    before=st.integers(0, 40)
    .flatmap(lambda number: far_borders if number == 23 else borders)  # large texts take three times as long
    .flatmap(lambda border: st.integers(max(0, border - 80), border + 10)),
    after=st.sampled_from([0, 1, 30, 3000, 20_000]),
    cut=st.integers(0, 70),
    asks_sql=st.integers(0, 99).map(lambda number: is_installed() and number == 57),
)


def fill(count: int, line: str = WORDS) -> str:
    return (line * (count // len(line) + 1))[:count]


def write_output(case: Case) -> Any:
    """What the tool returns: at least large enough to be kept."""
    before, after = fill(case.before), fill(case.after + 4 * PAGE_BYTES)
    text = f"{before}[{case.written}]{after}"
    if case.shape == "log":
        return f"{before}\nconnecting with {case.written} now\n" + fill(len(after), f"{WORDS}\n")
    if case.shape == "JSON":
        return {"items": [before], "auth": {"key": case.written}, "rest": after}
    if case.shape == "JSON in a string":
        return json.dumps({"body": json.dumps({"first": before, "key": case.written}), "rest": after})
    if case.shape == "table":
        cell = case.written.replace('"', '""')
        return "id,token\n" + "1,none\n" * (case.before // 7) + f'2,"{cell}"\n' + "3,none\n" * 600
    if case.shape == "binary":
        return b"\x00\xff\x01" * (case.before // 3) + case.written.encode() + b"\xfe\x00" * (case.after + 2000)
    return text


def list_readings(case: Case, name: str) -> list[tuple[str, dict[str, Any]]]:
    """Tools and arguments."""
    place = max(0, case.before + case.cut - 20)
    slices = [
        {"start": place, "length": 40},
        {"start": case.before + case.cut, "length": 7},
        {"lines": f"1-{case.cut + 1}"},
        {"lines": f"{case.before // 7 + 2}-{case.before // 7 + 3}"},
        {"anchor": "connecting with", "window": 60},
        {"anchor": case.written[:12], "window": 60},
    ]
    patterns = [r"connecting|\[|token", r".{10}", case.written[: WINDOW - 1].replace("\\", "\\\\")[:5] or "a", "key"]
    queries = ["auth", "/auth/key", "auth.key", "body", "reverse(auth.key)", "*.key"]
    readings = [("get_tool_output", {"id": name, "mode": "slice", "slice": each}) for each in slices]
    readings += [("get_tool_output", {"id": name, "mode": "grep", "pattern": each, "context": 1}) for each in patterns]
    if "JSON" in case.shape:
        readings += [("get_tool_output", {"id": name, "mode": "query", "query": each}) for each in queries]
    readings += [("get_tool_output", {"id": name, "mode": "raw"})]
    readings += [("get_tool_output", {"id": name, "mode": "extract", "query": f"connecting with {case.written[:5]}"})]
    readings += [("get_artifact", {"artifact_id": name, "bytes": f"{place}-{place + each}"}) for each in (0, 9, 200)]
    readings += [("get_artifact", {"artifact_id": name}), ("get_artifact", {"artifact_id": name, "from": place})]
    if case.asks_sql and case.shape == "table":
        query = "SELECT *, reverse(token), substr(token, 2, 9) FROM output WHERE id = 2"
        readings += [("get_tool_output", {"id": name, "mode": "sql", "query": query})]
    return readings


async def read_everything(case: Case) -> dict[str, str]:
    """All answers, by what was asked."""
    output = write_output(case)

    async def stream() -> AsyncIterator[str]:
        at = case.before + case.cut
        yield output[:at]
        yield output[at:]

    own = Settings(redact={"shown": PLACE}, toolResponseMaxBytes=1_000, answerMaxBytes=PAGE_BYTES)
    async with Session(own, secrets={"SERVICE_TOKEN": case.value}) as session:
        if case.shape == "binary":
            kept = await session.keep(output, "blob")
            answers = {"reply": ""}
        else:
            reply = await session.call("t", {}, stream if case.shape == "stream" else lambda: output, intent="connecting with")
            answers, kept = {"reply": f"{reply.text}{reply.content}{reply.value}"}, reply.kept
        assert kept is not None
        for tool, arguments in list_readings(case, kept.name):
            answers[f"{tool} {arguments}"] = (await session.invoke(tool, arguments)).text
        with session.open(kept.name) as stored:
            answers["bytes"] = stored.bytes().decode("utf-8", "replace")
            if case.shape != "binary":
                answers["text"] = stored.text() + str(stored.lines())
    if case.shape == "binary":  # shown as base64
        answers |= {f"{way}, decoded": decode_lines(text) for way, text in answers.items()}
    return answers


def decode_lines(text: str) -> str:
    decoded = list[str]()
    for line in text.splitlines():
        try:
            decoded.append(base64.b64decode(line, validate=True).decode("utf-8", "replace"))
        except ValueError:
            continue
    return "\n".join(decoded)


def list_windows(case: Case) -> set[str]:
    """What no answer may have in it. A base64 text has bytes around the value in it, in its first and last characters."""
    written = {case.value, case.written, json.dumps(case.written)[1:-1]}
    if case.encoding.startswith(("base64", "URL-safe")):
        written = {"".join(case.written.split())[6:-9], case.value}
    windows = {text[at : at + WINDOW] for text in written for at in range(len(text) - WINDOW + 1)}
    own = {*(fill(200)[at : at + WINDOW] for at in range(190))}
    return {each for each in windows if each not in own and len(set(each)) > 1}


async def find_shown(case: Case) -> list[tuple[str, str]]:
    """Ways of asking that show some of it, with what they show."""
    windows = list_windows(case)
    answers = {way: text.replace(WORDS, " ").replace("none\n", " ") for way, text in (await read_everything(case)).items()}
    # A reply may quote the pattern that was asked for, which the asker knew.
    shown = [
        (way, each) for way, text in answers.items() for each in windows if each in text and each not in way + json.dumps(way)
    ]
    if not shown:
        return []
    # A value may have words in it that are also ours, such as "string" in a card: they are there with any other value, too.
    own = "\n".join((await read_everything(case._replace(value=case.value.translate(OTHERS)))).values())
    return [(way, each) for way, each in shown if each not in own or each.translate(OTHERS) == each]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000)
    count = parser.parse_args().cases
    counted: Counter[str] = Counter()
    start = time.process_time()

    @settings(
        max_examples=count, deadline=None, database=None, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow]
    )
    @given(cases)
    def check(case: Case) -> None:
        counted.update((case.encoding, case.shape, "SQL") if case.asks_sql else (case.encoding, case.shape))
        counted["shown"] += bool(shown := anyio.run(find_shown, case))
        if shown:
            print(f"SHOWN {case._replace(value=case.value[:80])!r}: {shown[:2]}", flush=True)

    check()
    shown = counted.pop("shown")
    total = sum(counted[shape] for shape in SHAPES)
    print(f"{total:,} cases, {shown:,} with something shown, {time.process_time() - start:.0f} s of processor time")
    print(", ".join(f"{name}: {number:,}" for name, number in sorted(counted.items())))
    raise SystemExit(shown > 0)


if __name__ == "__main__":
    main()
