"""The final report: handed in by a call, or written in its wrapper, which is then understood as that call."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from overspill.agent import internal, wording
from overspill.agent.file.keys import OutputKeys, ReportFormat
from overspill.errors import BadRequest, MissingPackage, SettingsError
from overspill.extraction import wrapper
from overspill.models.protocol import Response
from overspill.schema import Unchecked, find_flaw, find_misfit
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


class ReportCheck:
    """Recognises and checks the reports of one run. What was taken last is the report."""

    def __init__(self, output: OutputKeys) -> None:
        self.nonce = wrapper.new_nonce()
        self.taken: Report | None = None
        self._output = output
        _check_usable(output.json_schema)

    def parse_report(self, response: Response, *, plain: bool) -> Response:
        """The response with a call in place of its wrapper; with `plain`, in place of a text that calls nothing."""
        if (content := wrapper.unwrap(response.text, self.nonce)) is not None:
            return _calling(response, content, "wrapper")
        if plain and response.text.strip() and not response.calls:
            return _calling(response, response.text.strip(), "text")
        return response

    def hand_in(self, args: Mapping[str, Any]) -> None:
        """BadRequest says what is wrong with it. Blocks while it is checked."""
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
            raise BadRequest(wording.report_misfit(problem))
        return written

    def _unfit(self, value: Any) -> str:
        if self._output.json_schema is None:
            return ""
        try:
            found = find_misfit(self._output.json_schema, value)
        except Unchecked as reason:  # a report that nobody can check is never taken
            return f"it cannot be checked, because {reason}"
        return "" if found is None else f"{found.path}: {found.message}"


def _calling(response: Response, content: str, source: Source) -> Response:
    call = ToolCall(f"call_{secrets.token_hex(8)}", internal.REPORT, {"content": content, _SOURCE: source})
    return replace(response, text="", calls=(*response.calls, call))


def _check_usable(schema: Mapping[str, Any] | None) -> None:
    if schema is None:
        return
    if find_spec("jsonschema") is None:
        raise MissingPackage("output.schema", "agent")
    try:
        flaw = find_flaw(schema)
    except Unchecked as reason:
        flaw = f"cannot be used, because {reason}"
    if flaw:
        raise SettingsError(f"output.schema {flaw}.")
