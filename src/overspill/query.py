from msgspec import Struct

OUTLINE_UP_TO = 8 << 20


class Answer(Struct, frozen=True):
    text: str


def query(reader: object, expression: str, bound: object) -> Answer:
    return Answer("stub")


def outline(text: str, limit: int) -> str | None:
    return None
