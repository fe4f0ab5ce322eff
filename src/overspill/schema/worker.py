"""Checks values against schemas, in a process that can do nothing else. Run by its path; see `check.py`.

A schema can ask for any file or address, and can make a check take forever in too many ways to list: patterns, `anyOf` within
`anyOf`, `uniqueItems`. So the library cannot fetch anything, its patterns run in linear time, and the system enforces limits on
this process.
"""

from __future__ import annotations

import json
import sys
from functools import cache
from importlib import import_module
from typing import Any, cast

_SECONDS = 2  # of processor time, including the start, which takes a tenth of it
_MEMORY = 2 * 1024**3
_MESSAGE_CHARS = 500
_UNUSABLE = "has the pattern {pattern!r}, which cannot be used ({reason}). Look-around and backreferences do not exist here"


class Patterns:
    """Replaces the module `re` in the library, which uses only its `search`."""

    @staticmethod
    @cache
    def compile(pattern: str) -> Any:
        return import_module("overspill.text.patterns").compile_pattern(pattern.encode("utf-8", "surrogatepass"), utf8=True)

    @classmethod
    def search(cls, pattern: str, text: str) -> Any:
        return cls.compile(pattern).search(text.encode("utf-8", "surrogatepass"))


def answer(request: dict[str, Any]) -> dict[str, Any]:
    library = import_module("jsonschema")
    schema = request["schema"]
    try:
        kind = library.validators.validator_for(schema, default=library.Draft202012Validator)
        if "value" not in request:
            try:
                kind.check_schema(schema, format_checker=None)
            except library.exceptions.SchemaError as error:
                return {"flaw": f"is not a JSON Schema: {error.message[:_MESSAGE_CHARS]}"}
            specification = import_module("referencing.jsonschema").specification_with(kind.META_SCHEMA["$schema"])
            root = specification.create_resource(schema)
            registry = import_module("jsonschema_specifications").REGISTRY
            return {"flaw": _flaw_below(registry.resolver_with_root(root), root)}
        # Passing a registry, even an empty one, stops the library from fetching schemas.
        validator = kind(schema, registry=import_module("referencing").Registry())
        found = library.exceptions.best_match(validator.iter_errors(request["value"]))
    except RecursionError:
        return {"unchecked": "it is nested too deeply, or refers to itself without end"}
    except MemoryError:
        return {"unchecked": "it is too large"}
    except Exception as error:  # a broken schema fails in as many ways as there are keywords
        return {"unchecked": f"the schema cannot be used ({type(error).__name__})"}
    if found is None:
        return {}
    rule = json.dumps({found.validator: found.validator_value}, ensure_ascii=False, separators=(",", ":"))
    message: str = found.message
    cut = message if len(message) <= _MESSAGE_CHARS else message[: _MESSAGE_CHARS - 1] + "…"
    return {"misfit": {"path": found.json_path, "rule": rule, "message": cut}}


def _flaw_below(resolver: Any, part: Any) -> str:
    """Why a schema cannot be used: it may refer only to its own parts, and use only patterns that this process can match."""
    contents = cast("dict[str, Any]", part.contents) if isinstance(part.contents, dict) else {}
    for wanted in [contents[key] for key in ("$ref", "$dynamicRef") if key in contents]:
        try:
            resolver.lookup(wanted)
        except Exception:  # unknown, or not the form of a reference
            return f"refers to {wanted!r}, which is not in it"
    for pattern in [*([contents["pattern"]] if "pattern" in contents else []), *contents.get("patternProperties", {})]:
        try:
            Patterns.compile(pattern)
        except Exception as error:  # the matcher's own kind, or not the form of a pattern
            return _UNUSABLE.format(pattern=pattern, reason=error)
    return next((flaw for each in part.subresources() if (flaw := _flaw_below(resolver.in_subresource(each), each))), "")


def main() -> None:
    sys.path[:] = sys.argv[1:]
    limits = import_module("overspill.confined.limits")
    limits.end_with_reader()
    limits.limit_seconds(_SECONDS)
    for module in ("_keywords", "_legacy_keywords", "_utils"):
        vars(import_module(f"jsonschema.{module}"))["re"] = Patterns
    import_module("overspill.text.patterns")
    limits.give_up_everything_else(_MEMORY)
    sys.stdout.write(json.dumps(answer(json.loads(sys.stdin.buffer.read()))))


if __name__ == "__main__":
    main()
