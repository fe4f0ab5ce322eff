"""The final report: handed in by a call, or written in its wrapper, which is then understood as that call."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from importlib import import_module
from typing import Any, Literal, TypeAlias, cast

from msgspec import Struct
from msgspec.structs import replace

from overspill.agent import internal, wording
from overspill.agent.keys import OutputKeys, ReportFormat
from overspill.errors import BadRequest, MissingPackage, SettingsError
from overspill.extraction import wrapper
from overspill.models.base import Response
from overspill.types import ToolCall

Source: TypeAlias = Literal["tool", "wrapper", "text"]
_SOURCE = "handed_in_as"


class Report(Struct, frozen=True):
    format: ReportFormat
    content: str
    source: Source = "tool"
    """`text`: the model answered in plain words and did not say that this is its report."""

    @property
    def value(self) -> Any:
        """Of the format json, what it says."""
        return json.loads(self.content) if self.format == "json" else self.content


class Reports:
    """Recognises and checks the reports of one run. What was taken last is the report."""

    def __init__(self, output: OutputKeys) -> None:
        self.nonce = wrapper.nonce()
        self.taken: Report | None = None
        self._output = output
        self._validator = _validator(output.json_schema)

    def understood(self, response: Response, *, plain: bool) -> Response:
        """The response with a call in place of its wrapper; with `plain`, in place of a text that calls nothing."""
        if (content := wrapper.unwrap(response.text, self.nonce)) is not None:
            return _calling(response, content, "wrapper")
        if plain and response.text.strip() and not response.calls:
            return _calling(response, response.text.strip(), "text")
        return response

    def hand_in(self, args: Mapping[str, Any]) -> None:
        """BadRequest says what is wrong with it."""
        given: object = args.get("content")
        source: Source = "wrapper" if args.get(_SOURCE) == "wrapper" else "text" if args.get(_SOURCE) == "text" else "tool"
        if self._output.format == "json":
            content = self._json(given)
        else:
            content = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, indent=2)
        if given is None or not content.strip():
            raise BadRequest(wording.EMPTY_REPORT)
        self.taken = Report(self._output.format, content, source)

    def _json(self, given: object) -> str:
        try:
            value = json.loads(given) if isinstance(given, str) else given
            written = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
        except ValueError as error:
            raise BadRequest(wording.not_json(str(error))) from None
        except RecursionError:
            raise BadRequest(wording.TOO_DEEP) from None
        if problem := self._unfit(value):
            raise BadRequest(wording.unfit(problem))
        return written

    def _unfit(self, value: Any) -> str:
        if self._validator is None:
            return ""
        try:
            problem = next(iter(self._validator.iter_errors(value)), None)
        except Exception as error:  # a schema can fail in as many ways as there are keywords
            return f"it cannot be checked ({type(error).__name__})"
        return "" if problem is None else f"{problem.json_path}: {problem.message}"


def _calling(response: Response, content: str, source: Source) -> Response:
    call = ToolCall(f"call_{secrets.token_hex(8)}", internal.REPORT, {"content": content, _SOURCE: source})
    return replace(response, text="", calls=(*response.calls, call))


def _validator(schema: Mapping[str, Any] | None) -> Any:
    if schema is None:
        return None
    try:
        jsonschema = import_module("jsonschema")
    except ImportError:
        raise MissingPackage("output.schema", "agent") from None
    kind: Any = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
    try:
        kind.check_schema(schema)
    except jsonschema.exceptions.SchemaError as error:
        raise SettingsError(f"output.schema is not a JSON Schema: {error.message}.") from None
    specifications: Any = import_module("jsonschema_specifications")
    referencing: Any = import_module("referencing.jsonschema")
    root = referencing.specification_with(kind.META_SCHEMA["$schema"]).create_resource(schema)
    _check_references(specifications.REGISTRY.resolver_with_root(root), root)
    return kind(schema, registry=specifications.REGISTRY)


def _check_references(resolver: Any, schema: Any) -> None:
    """What a schema refers to has to be in it: nothing is fetched, and a report that nobody can check is never taken."""
    contents = cast("dict[str, Any]", schema.contents) if isinstance(schema.contents, dict) else {}
    for wanted in [contents[key] for key in ("$ref", "$dynamicRef") if key in contents]:
        try:
            resolver.lookup(wanted)
        except Exception:  # unknown, or not the form of a reference
            raise SettingsError(f"output.schema refers to {wanted!r}, which is not in it.") from None
    for part in schema.subresources():
        _check_references(resolver.in_subresource(part), part)
