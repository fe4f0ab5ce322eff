"""Runs a model's JMESPath on untrusted JSON, in time linear in both, and without quoting the JSON."""

from __future__ import annotations

from typing import Any, cast

from jmespath import exceptions, functions, visitor  # pyright: ignore[reportMissingTypeStubs]
from jmespath import parser as untyped_parser  # pyright: ignore[reportMissingTypeStubs]

from overspill.errors import BadRequest
from overspill.reading.query.document import Value, is_array, is_object, write_within
from overspill.reading.ranges import Bound
from overspill.text.humanize import quote_line

_UNUSABLE = (
    "The expression cannot be used: {reason}. Put a key in double quotes if it has characters other than letters, digits and _."
)
_FAILED = "The expression cannot be evaluated: {reason}."
_TOO_MUCH = (
    "The expression takes too many steps for an output of this size. Use a simpler one, a JSON pointer such as /items/0, "
    "or grep, lines or a slice."
)

# A pass over an array of digits with two comparisons takes four steps a byte.
_STEPS_PER_BYTE = 8
_LEAST_STEPS = 1_000_000
_CHARS_PER_STEP = 64
_MAX_STRING_BYTES = 64 * 1024 * 1024
_TYPES = {
    "null": "null",
    "boolean": "a boolean",
    "number": "a number",
    "string": "a string",
    "array": "an array",
    "object": "an object",
    "expref": "an expression such as &name",
    "array-number": "an array of numbers",
    "array-string": "an array of strings",
}
_SIZED = (str, list, dict)
_PYTHON_TYPES: dict[str, str] = functions.TYPES_MAP


class Expression:
    """A JMESPath expression. Raises BadRequest if it is not valid or does not apply to a value."""

    def __init__(self, spelling: str) -> None:
        try:
            self._tree: Any = cast("Any", untyped_parser).Parser().parse(spelling).parsed
        except exceptions.JMESPathError as error:
            raise _refuse(error) from None
        except RecursionError:
            raise BadRequest(_UNUSABLE.format(reason="it is nested too deeply")) from None

    def search(self, value: Value, size: int) -> Value:
        """`size`: the bytes of the whole document."""
        interpreter = _Interpreter(_LEAST_STEPS + _STEPS_PER_BYTE * size)
        try:
            return interpreter.visit(self._tree, value)
        except exceptions.JMESPathError as error:
            raise _refuse(error) from None
        except (ValueError, ArithmeticError, TypeError) as error:  # from a function that JMESPath leaves to Python
            raise BadRequest(_FAILED.format(reason=quote_line(str(error)))) from None


class _Steps:
    """How much an expression may still do. Even a short expression can double a value many times."""

    def __init__(self, count: int) -> None:
        self.left = count

    def take(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise BadRequest(_TOO_MUCH)

    def take_for(self, value: Value) -> None:
        """Takes steps for everything in a value, counting repeated parts each time."""
        waiting: list[Value] = [value]
        while waiting:
            each: Value = waiting.pop()
            self.take(_weigh(each))
            if is_array(each):
                waiting += each
            elif is_object(each):
                waiting += each.values()


def _weigh(value: Value) -> int:
    """The steps for a value, not counting its members."""
    if isinstance(value, str):
        return 1 + len(value) // _CHARS_PER_STEP
    return 1 + len(value) if is_array(value) or is_object(value) else 1


class _Functions(functions.Functions):
    """JMESPath's functions, except that none writes without a limit. Numbers keep every digit even as strings."""

    def __init__(self, steps: _Steps) -> None:
        self._steps = steps

    def call_function(self, function_name: Any, resolved_args: Any) -> Value:
        self._steps.take(sum(map(_weigh, resolved_args)))
        arrays = [value for value in resolved_args if is_array(value)]
        for array in arrays:
            self._steps.take(sum(map(_weigh, array)))
        for value in resolved_args:
            if isinstance(value, visitor._Expression):  # pyright: ignore[reportPrivateUsage]
                self._steps.take(sum(map(len, arrays)) * _count_nodes(cast("Any", value).expression))
        return cast("Any", super()).call_function(function_name, resolved_args)

    @functions.signature({"types": []})
    def _func_to_string(self, value: Value) -> str:
        if isinstance(value, str):
            return value
        self._steps.take_for(value)
        text = write_within(value, Bound(_MAX_STRING_BYTES))
        if text is None:
            raise BadRequest(_TOO_MUCH)
        return text

    @functions.signature({"types": ["string"]}, {"types": ["array-string"]})
    def _func_join(self, separator: str, strings: list[str]) -> str:
        self._steps.take(len(separator) * len(strings) // _CHARS_PER_STEP)
        return separator.join(strings)

    @functions.signature({"types": ["array", "string"]}, {"types": []})
    def _func_contains(self, subject: Value, wanted: Value) -> bool:
        if is_array(subject):
            self._steps.take_for(subject)
            self._steps.take_for(wanted)
        return wanted in subject


class _Interpreter(visitor.TreeInterpreter):
    """Counts steps when an expression applies to many values, and before it makes or compares large ones."""

    def __init__(self, steps: int) -> None:
        self._steps = _Steps(steps)
        cast("Any", super()).__init__(visitor.Options(custom_functions=_Functions(self._steps)))

    def visit_projection(self, node: Any, value: Value) -> Value:
        base = self.visit(node["children"][0], value)
        return self._apply(node["children"][1], base) if is_array(base) else None

    def visit_value_projection(self, node: Any, value: Value) -> Value:
        base = self.visit(node["children"][0], value)
        return self._apply(node["children"][1], list(base.values())) if is_object(base) else None

    def visit_filter_projection(self, node: Any, value: Value) -> Value:
        base = self.visit(node["children"][0], value)
        if not is_array(base):
            return None
        _, then, condition = node["children"]
        self._steps.take(len(base) * _count_nodes(condition))
        return self._apply(then, [each for each in base if cast("Any", self)._is_true(self.visit(condition, each))])

    def visit_flatten(self, node: Any, value: Value) -> Value:
        base = self.visit(node["children"][0], value)
        if not is_array(base):
            return None
        self._steps.take(sum(len(each) if is_array(each) else 1 for each in base))
        flat: list[Value] = []
        for each in base:
            flat += each if is_array(each) else (each,)
        return flat

    def visit_slice(self, node: Any, value: Value) -> Value:
        if is_array(value):
            self._steps.take(len(value))
        return cast("Any", super()).visit_slice(node, value)

    def visit_comparator(self, node: Any, value: Value) -> Value:
        first, second = node["children"]
        left, right = self.visit(first, value), self.visit(second, value)
        if type(left) in _SIZED and type(right) in _SIZED:
            self._steps.take_for(left)
            self._steps.take_for(right)
        operator: str = node["value"]
        have_order = (_is_number(left) and _is_number(right)) or (isinstance(left, str) and isinstance(right, str))
        if operator not in ("eq", "ne") and not have_order:
            return None  # JMESPath would fail at the first row with a value of another type
        return self.COMPARATOR_FUNC[operator](left, right)

    def _apply(self, node: Any, values: list[Value]) -> list[Value]:
        self._steps.take(len(values) * _count_nodes(node))
        return [result for each in values if (result := self.visit(node, each)) is not None]


def _count_nodes(node: Any) -> int:
    """The steps for one application. Applications to many values are counted when they happen."""
    return 1 + sum(_count_nodes(child) for child in node["children"] if isinstance(child, dict))  # a slice has numbers


def _is_number(value: Value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _refuse(error: exceptions.JMESPathError) -> BadRequest:
    """The error for a model, without the value that a function refused, which may be large and would look like our own words."""
    if isinstance(error, exceptions.JMESPathTypeError):
        return BadRequest(_FAILED.format(reason=_describe_types(error)))
    reason = str(error).split("\n")[0].strip().rstrip(":.")
    return BadRequest(_UNUSABLE.format(reason=quote_line(reason)))


def _describe_types(error: Any) -> str:
    name: str = error.actual_type
    is_element = name in _PYTHON_TYPES  # JMESPath translates only the type of an argument
    actual = _TYPES.get(_PYTHON_TYPES.get(name, name), name)
    types: list[str] = error.expected_types
    expected = " or ".join(_TYPES.get(each, each) for each in types)
    return f"{error.function_name}() takes {expected}, not {f'an array with {actual} in it' if is_element else actual}"
