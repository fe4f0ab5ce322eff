"""Parts of stored JSON, named by JSON pointer or JMESPath, exact to the digit and within a bound."""

from overspill.reading.query.ask import Found, lookup, query
from overspill.reading.query.document import Number
from overspill.reading.query.outline import outline

__all__ = ["Found", "Number", "lookup", "outline", "query"]
