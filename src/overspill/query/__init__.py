"""Parts of stored JSON, named by JSON pointer or JMESPath, exact to the digit and within a bound."""

from overspill.query.ask import Found, lookup, query
from overspill.query.document import Number
from overspill.query.outline import outline

__all__ = ["Found", "Number", "lookup", "outline", "query"]
