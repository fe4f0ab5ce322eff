from msgspec import Struct


class Use(Struct, frozen=True):
    id: str
    bytes: int
