"""How many secrets are found, and how many false ones? Run: python benchmarks/redaction/found.py [--material DIR] [--clean DIR]

Forms from the issuers' documentation: those on which rules were tuned, in two halves of which one is generated anew, and 20 that
were written after the rules. Then the group `fresh`: 40 forms, and 20 that look like one, all written without knowledge of the
rules; and `places`: 82 that show secrets and 62 that show none, of which half is only scored. With --material, the cases in the
tests of a checkout (or bare repository) of smart-mcp-proxy/mcpproxy-go. With --clean, 300 files from the bare repositories in a
folder, or pieces of a folder's own files: each with something found counts as a false alarm.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import get_args

from forms import LATER_FORMS, Case, make_cases, make_fresh_cases
from places import SPLIT_SEED, Half, Place, make_places

from overspill.redaction.redactor import Redactor

TESTS = [f"internal/security/patterns/{name}_test.go" for name in ("cloud", "tokens", "keys", "database")]
GO_CASE = re.compile(r'input:\s*(?:"((?:[^"\\\n]|\\.)*)"|`([^`]*)`),(?:(?!input:)[\s\S]){0,200}?wantMatch:\s*(true|false)')
CLEAN_FILES, CLEAN_BYTES, PIECE_BYTES = 300, (2_000, 200_000), 30_000
TEXT = (".py", ".js", ".ts", ".go", ".rs", ".c", ".java", ".md", ".rst", ".txt", ".json", ".csv", ".yml", ".xml", ".html", ".log")


def score(name: str, cases: Iterable[Case]) -> None:
    redactor, right, missed, false = Redactor({}, {}), 0, list[Case](), list[Case]()
    for case in cases:
        shown = redactor.redact(case.text)
        if case.secret is None:
            false += [case] * (shown != case.text)
        elif case.secret in shown:
            missed.append(case)
        else:
            right += 1
    f1 = 2 * right / (2 * right + len(missed) + len(false))
    print(f"{name}: F1 {f1:.3f} ({right} found, {len(missed)} missed, {len(false)} false)")
    for word, several in (("missed", missed), ("false", false)):
        print("".join(f"  {word}: {case.name}\n" for case in several[:40]), end="")


def score_values(name: str, places: Iterable[Place]) -> None:
    """By value: a secret counts as found if all of it is hidden, and each thing found that touches no secret is false."""
    redactor, right, missed, false = Redactor({}, {}), 0, Counter[str](), Counter[str]()
    for place in places:
        found = [(each.start, each.end) for each in redactor.find(place.text)]
        for start, end in place.secrets:
            is_hidden = any(first <= start and end <= last for first, last in found)
            right += is_hidden
            missed[place.name] += not is_hidden
        for first, last in found:
            false[place.name] += not any(first < end and start < last for start, end in place.secrets)
    f1 = 2 * right / (2 * right + missed.total() + false.total())
    print(f"{name}: F1 {f1:.3f} ({right} found, {missed.total()} missed, {false.total()} false)")
    if not name.endswith("unseen"):
        for word, several in (("missed", missed), ("false", false)):
            print("".join(f"  {word}: {title} ({count})\n" for title, count in several.items() if count), end="")


def read_go_cases(folder: Path) -> Iterator[Case]:
    """Every match of their rules must be hidden, at least in part."""
    for path in TESTS:
        text = show(folder, path).decode()
        for quoted, raw, wanted in GO_CASE.findall(text):
            written = quoted.encode().decode("unicode_escape") if quoted else raw
            yield Case(f"{Path(path).stem}: {written[:24]}…", written, written if wanted == "true" else None)


def read_clean_files(folder: Path, seed: int) -> Iterator[tuple[str, bytes]]:
    """A few of each repository."""
    source = random.Random(seed)  # noqa: S311
    repositories = sorted(path for path in folder.glob("*/repo") if "mcpproxy" not in str(path))
    source.shuffle(repositories)
    for repository in repositories:
        listed = git(repository, "ls-tree", "-r", "-l", "HEAD").decode("utf-8", "replace").splitlines()
        files = [line.split(None, 4)[3:] for line in listed]
        fit = [name for size, name in files if size.isdigit() and CLEAN_BYTES[0] <= int(size) <= CLEAN_BYTES[1]]
        fit = [name for name in fit if name.endswith(TEXT)]
        for name in source.sample(fit, min(max(3, -(-CLEAN_FILES // len(repositories))), len(fit))):
            if data := git(repository, "show", f"HEAD:{name}"):
                yield f"{repository.parent.name}/{name}", data


def read_pieces(folder: Path, seed: int) -> Iterator[tuple[str, bytes]]:
    """Real outputs: pieces of a folder's files, as large as a page, and as many of each file."""
    files = [(path.name, path.read_bytes()) for path in sorted(folder.iterdir()) if path.is_file()]
    pieces = [
        [(f"{name} at {at}", data[at : at + PIECE_BYTES]) for at in range(0, len(data), PIECE_BYTES)] for name, data in files
    ]
    source = random.Random(seed)  # noqa: S311
    for several in pieces:
        yield from source.sample(several, min(-(-CLEAN_FILES // len(pieces)), len(several)))


def show(folder: Path, path: str) -> bytes:
    file = folder / path
    return file.read_bytes() if file.exists() else git(folder, "show", f"HEAD:{path}")


def git(folder: Path, *args: str) -> bytes:
    return subprocess.run(["git", "-C", str(folder), *args], capture_output=True, check=False).stdout  # noqa: S603, S607


def count_alarms(folder: Path, seed: int) -> None:
    redactor, seen, alarms = Redactor({}, {}), 0, list[str]()
    read = read_clean_files if any(folder.glob("*/repo")) else read_pieces
    for name, data in read(folder, seed):
        found = redactor.find(data)
        seen += 1
        if found:
            alarms.append(f"{name}: {', '.join(sorted({each.kind for each in found}))}")
        if seen == CLEAN_FILES:
            break
    print(f"clean files: {len(alarms)} of {seen} with something found ({len(alarms) / max(seen, 1):.1%}), to be read by eye:")
    print("\n".join(f"  {alarm}" for alarm in alarms))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--material", type=Path, help="mcpproxy-go")
    parser.add_argument("--clean", type=Path, help="a folder of OWNER+NAME/repo, or of outputs")
    parser.add_argument("--seed", type=int, help="of the unseen half and of the clean files; otherwise random")
    args = parser.parse_args()
    seed = random.randrange(10**6) if args.seed is None else args.seed  # noqa: S311
    score("issuers' forms, seen", make_cases(1)[::2])
    score(f"issuers' forms, unseen (seed {seed})", make_cases(seed)[1::2])
    score("issuers' forms, written after the rules", make_cases(seed, LATER_FORMS))
    score("fresh", make_fresh_cases(seed))
    for half in get_args(Half):
        score_values(f"places, {half}", make_places(half, SPLIT_SEED))
    if args.material:
        score("mcpproxy-go", read_go_cases(args.material))
    if args.clean:
        count_alarms(args.clean, seed)


if __name__ == "__main__":
    main()
