"""Queries stored JSON by JSON pointer or JMESPath: exact to the digit, and bounded."""

from overspill.reading.query.ask import QueryAnswer, lookup, query
from overspill.reading.query.document import Number

__all__ = ["Number", "QueryAnswer", "lookup", "query"]
