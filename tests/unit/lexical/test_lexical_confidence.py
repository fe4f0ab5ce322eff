import pytest

from overspill.lexical.index import build
from overspill.lexical.select import select
from overspill.types import UNLIKELY

NOTES = b"The harbour was closed in March because of the storm.\n\nThe ferry to Skopelos leaves at nine.\n\n" + b"".join(
    b"On day %d the crew painted the deck and mended nets.\n\n" % number for number in range(40)
)
BUILD = b"".join(b"cc -c part%d.c\n" % number for number in range(300)) + (
    b"part300.c:7: error: unknown type name 'wing'\nmake: *** [part300.o] Error 1\n"
)


@pytest.mark.parametrize("question", ["when does the ferry to Skopelos leave", "ferry Skopelos", "day 17"])
def test_an_answer_with_all_that_is_asked_is_sure(question: str) -> None:
    assert select(build(NOTES), question).confidence >= 0.5


@pytest.mark.parametrize(
    "question", ["when does the train to Larissa leave", "which crew won the regatta of 1988", "who paid for the harbour licence"]
)
def test_an_answer_that_shares_some_words_is_not_sure(question: str) -> None:
    selection = select(build(NOTES), question)
    assert selection.confidence < 0.5


@pytest.mark.parametrize(
    "question", ["what went wrong", "why did it fail", "what is the error", "what broke the build of part300.c"]
)
def test_a_failure_is_sure_in_whatever_words_one_asks_for_it(question: str) -> None:
    assert select(build(BUILD), question).confidence >= 0.5


def test_a_failure_of_something_else_is_not_sure() -> None:
    assert select(build(BUILD), "why did the deployment of billing-service-7 to Frankfurt fail").confidence < 0.5


@pytest.mark.parametrize("tokens", [100, 500, 4000])
def test_tokens_are_counted_a_few_times_whatever_the_budget(tokens: int) -> None:
    counted: list[str] = []

    def count(text: str) -> int:
        counted.append(text)
        return len(text.split())

    selection = select(build(NOTES), "what did the crew do each day", max_tokens=tokens, count_tokens=count)
    assert len(selection.text.split()) <= tokens
    assert len(counted) <= 40


def test_a_budget_is_used_up_even_if_tokens_are_much_longer_than_usual() -> None:
    selection = select(build(NOTES), "what did the crew do each day", max_tokens=60, count_tokens=lambda text: len(text) // 40)
    assert selection.text.count("painted the deck") > 25


PAGE = (
    b"<html><body><h1>Pump 7</h1><dl>"
    + b"".join(b"<dt>Part %d</dt><dd>Steel, %d mm</dd>" % (n, n) for n in range(20))
    + (b"<dt>Mass</dt><dd>41 kg</dd></dl></body></html>")
)
CODE = b"".join(b"def step_%d(valve):\n    return valve.turn(%d)\n\n\n" % (number, number) for number in range(40))


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (PAGE, "how heavy is it, compared with other machines of the pump industry?"),
        (CODE, "turning the lever of a broken heater crashes under load"),
    ],
)
def test_that_code_and_pages_lack_the_words_of_a_question_does_not_mean_that_nothing_answers_it(
    text: bytes, question: str
) -> None:
    found = select(build(text), question)
    assert found.excerpts
    assert found.confidence >= UNLIKELY
