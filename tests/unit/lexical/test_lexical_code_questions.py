"""What a question about code says of the request, and what of the code."""

from __future__ import annotations

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import select
from overspill.lexical.signals import SIGNALS
from overspill.lexical.signals.scope import boost_scope
from overspill.lexical.signals.vicinity import boost_vicinity


def write_functions(names: list[str], body: str) -> str:
    return "".join(f"def {name}(order, store):\n    {body.format(name=name)}\n    return order\n\n\n" for name in names)


def show(code: str, question: str, max_tokens: int = 80) -> str:
    index = build(code.encode())
    assert index.kind == "code"
    return select(index, question, max_tokens=max_tokens).text


NAMES = ["pack", "ship", "weigh", "label", "stack", "count", "price", "refund", "split", "merge", "queue", "print_bill"]


def test_code_that_mentions_a_fix_is_not_what_is_to_be_fixed() -> None:
    noise = write_functions(NAMES[:2], "# fix: change this line if the bug of {name} comes back")
    meant = "def invoice(order, store):\n    discount = sum(order)\n    return discount, store\n\n\n"
    others = write_functions(NAMES[2:], "order = store.{name}(order)")
    shown = show(noise + others + meant + others, "Which line has to change for this? Fix a bug of the discount", 60)
    assert "discount = sum(order)" in shown
    assert "comes back" not in shown


def test_words_of_the_request_are_looked_for_if_there_are_no_others() -> None:
    noise = write_functions(NAMES, "order = store.{name}(order)")
    assert "known bug" in show(noise + "# a known bug\n", "fix bug")


def test_a_name_is_found_in_a_longer_one() -> None:
    others = write_functions(NAMES, "order = store.{name}(ring, drain, order)")
    meant = "def close(order, store):\n    __ring_drain_all(order)\n    store.pRingDrain(order)\n\n\n"
    for question in ("ring_drain never returns", "RingDrain never returns"):
        assert "__ring_drain_all" in show(others + meant + others, question)


def test_part_of_a_word_is_not_the_name() -> None:
    others = write_functions(NAMES, "order = store.{name}(order)")
    assert "overslogged" not in show(others + "def close(order):\n    return overslog_entryment(order)\n", "log_entry", 200)


def test_a_function_named_by_the_question_comes_before_one_that_shares_a_word_of_its_name() -> None:
    uses = write_functions([f"address_{name}" for name in NAMES], "parse(order)  # an address, escaped")
    meant = "def is_address_escaped(order):\n    return order.startswith(b'%')\n\n\n"
    assert "startswith" in show(uses + meant + uses, "an address that is escaped twice is not seen", 60)


@pytest.mark.parametrize("banner", ["==> {} <==", "===== {} =====", "# File: {}"])
def test_the_path_above_a_file_is_about_all_of_it(banner: str) -> None:
    files = [
        banner.format(f"src/{name}.py") + "\n" + write_functions(["open", "list", "sort", "close"], f"store.send({number})")
        for number, name in enumerate(NAMES)
    ]
    shown = show("".join(files), "refund: close it later", 60)
    assert "def close" in shown
    assert "store.send(7)" in shown


def test_search_results_near_those_with_the_words_are_shown() -> None:
    near = [f"lib/mail.py:{number}:    body = value{number}" for number in range(300, 306)]
    near[3:3] = ["lib/mail.py:303:    # the attachment is encoded twice"]
    far = [f"lib/part{number}.py:{number}:    body = value{number}" for number in range(1, 200)]
    index = build("\n".join([*far[:100], *near, *far[100:]]).encode())
    assert index.kind == "matches"
    question = "An encoded attachment is encoded twice"
    assert "value304" in select(index, question, max_tokens=150).text
    others = tuple(signal for signal in SIGNALS if signal is not boost_vicinity)
    assert "value304" not in select(index, question, max_tokens=150, signals=others).text


def test_tags_in_comments_and_in_search_results_do_not_make_a_page() -> None:
    comment = "/**\n * Sends <b>{}</b>.\n * <p>Not for <i>all</i>.\n */\n"
    code = "public class {} {{\n  void run() {{\n    go();\n  }}\n}}\n\n"
    documented = "".join(comment.format(name) + code.format(name.title()) for name in NAMES)
    assert build(documented.encode()).kind == "code"
    found = "".join(f"web/{name}.js:{number}:  out += '<p><b>{name}</b></p>';\n" for number, name in enumerate(NAMES, 10))
    assert build(found.encode()).kind == "matches"


@pytest.mark.parametrize(
    "question", ["refund: close the store", "fix(refund): close the store", "What is this? [refund] close the store"]
)
def test_the_file_that_a_question_begins_with_is_looked_at_first(question: str) -> None:
    meant = write_functions([f"step{number}" for number in range(60)], "store.{name}()") + write_functions(
        ["close"], "store.send(7)"
    )
    noise = write_functions(["close", "send", "open"], "store.send(8)")
    files = [f"==> src/{name}.py <==\n{meant if name == 'refund' else noise}" for name in ("pack", "refund", "ship")]
    index = build("".join(files).encode())
    assert "store.send(7)" in select(index, question, max_tokens=45).text
    others = tuple(signal for signal in SIGNALS if signal is not boost_scope)
    assert "store.send(7)" not in select(index, question, max_tokens=45, signals=others).text


def test_search_results_of_the_file_that_a_question_begins_with_come_first() -> None:
    lines = [f"lib/{name}.py:{number}:    store.close(value{number})" for number, name in enumerate(NAMES * 8)]
    index = build("\n".join([*lines, "lib/ledger.py:9:    store.close(it)", *lines]).encode())
    assert "store.close(it)" in select(index, "ledger: close value3 and value4", max_tokens=80).text


@pytest.mark.parametrize("folder", ["tests", "docs", "spec/unit"])
def test_what_has_to_be_changed_is_in_the_program_and_not_in_its_tests(folder: str) -> None:
    aside = [f"{folder}/mail{number}.py:{number}:    close(attachment, twice)" for number in range(30)]
    program = [
        "lib/mail.py:80:    close(attachment, self.seen)",
        *(f"lib/part.py:{number}:    send({number})" for number in range(99)),
    ]
    index = build("\n".join([*aside, *program, *aside]).encode())
    assert "self.seen" in select(index, "Fix: close an attachment twice", max_tokens=60).text
    assert "self.seen" not in select(index, "close an attachment twice", max_tokens=60).text
    assert "self.seen" not in select(index, "Fix the tests and docs and spec: close an attachment twice", max_tokens=60).text
