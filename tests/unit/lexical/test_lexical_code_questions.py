"""What a question about code says of the request, and what of the code."""

from __future__ import annotations

import pytest

from overspill.lexical.index import build
from overspill.lexical.query import parse
from overspill.lexical.select import select


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


def test_tags_in_comments_and_in_search_results_do_not_make_a_page() -> None:
    comment = "/**\n * Sends <b>{}</b>.\n * <p>Not for <i>all</i>.\n */\n"
    code = "public class {} {{\n  void run() {{\n    go();\n  }}\n}}\n\n"
    documented = "".join(comment.format(name) + code.format(name.title()) for name in NAMES)
    assert build(documented.encode()).kind == "code"
    found = "".join(f"web/{name}.js:{number}:  out += '<p><b>{name}</b></p>';\n" for number, name in enumerate(NAMES, 10))
    assert build(found.encode()).kind == "matches"


REPORT = """### What happened

<!-- Please search the tracker first, and name the store, the order and the label that you send. -->

I send an order to the store and its label is empty, though the store has the order, and sending the order again sends it twice.
It worked last week. `reload_stamp` seems to be what is wrong, but I do not know the store well enough to tell. The order has a
price, a weight and a label, and the store is the one that came with the box.

```python
order = store.open(order)
store.pack(order, label=None)
store.ship(order)
```

Traceback (most recent call last):
  File "ship.py", line 3, in ship
    return store.weigh(order)
  File "store.py", line 9, in weigh
    raise ValueError(order)
"""


def test_a_name_that_is_defined_once_comes_first_however_long_the_question_is() -> None:
    others = write_functions([f"{name}_{number}" for number in range(20) for name in NAMES], "order = store.{name}(order, label)")
    said = "# it worked last week and seems wrong now: I know well enough to tell what happened, the box came empty, twice, again"
    others += write_functions(["tell_price_and_weight_of_the_box_that_came_last_week"], said)
    meant = "def reload_stamp(mark):\n    return mark or None\n\n\n"
    assert "return mark or None" in show(others + meant + others.replace("def ", "def late_"), REPORT, 60)


def test_the_last_part_of_a_dotted_name_is_looked_for_too() -> None:
    others = write_functions(NAMES, "order = store.{name}(order)")
    meant = "def reload_stamp(mark):\n    return mark or None\n\n\n"
    assert "return mark or None" in show(others + meant + others, "store.ledger.reload_stamp() loses the order of the store", 40)


def test_what_a_template_says_to_its_readers_is_not_asked() -> None:
    assert {term.key for term in parse("The pump leaks. <!-- name your valve -->").terms if term.telling} == {"pump", "leak"}


def test_code_that_a_question_quotes_counts_less_than_what_it_says() -> None:
    terms = {term.key: term.weight for term in parse("The pump leaks.\n\n```\nopen valve\n```\n").terms}
    assert terms["valv"] < terms["pump"]
    assert {term.key for term in parse("```\nopen valve\n```\n").terms if term.weight >= 1.0} == {"open", "valv"}
