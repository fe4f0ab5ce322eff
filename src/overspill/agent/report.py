"""The final report: submitted with a tool call, or written in its wrapper, which counts as that call."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any, Literal, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from overspill.agent import internal, wording
from overspill.agent.file import OutputKeys, ReportFormat
from overspill.errors import BadRequest, MissingPackage, SettingsError
from overspill.extraction import wrapper
from overspill.models.protocol import Response
from overspill.schema import Unchecked, find_flaw, find_misfit
from overspill.text.lenient_json import loads
from overspill.types import ToolCall

Source: TypeAlias = Literal["tool", "wrapper", "text"]
_SOURCE_KEY = "handed_in_as"


class Report(Struct, frozen=True):
    format: ReportFormat
    content: str
    source: Source = "tool"
    """`text`: the model answered in plain text without marking it as its report."""

    @property
    def value(self) -> Any:
        """The parsed value if the format is json, or else the text."""
        return loads(self.content) if self.format == "json" else self.content


class ReportCheck:
    """Recognizes and checks the reports of one run. The last report that was accepted counts."""

    def __init__(self, output: OutputKeys) -> None:
        self.nonce = wrapper.new_nonce()
        self.accepted: Report | None = None
        self._output = output
        if output.json_schema is None:
            return
        if find_spec("jsonschema") is None:
            raise MissingPackage("output.schema", "agent")
        try:
            flaw = find_flaw(output.json_schema)
        except Unchecked as reason:
            flaw = f"cannot be used, because {reason}"
        if flaw:
            raise SettingsError(f"output.schema {flaw}.")

    def parse_report(self, response: Response, *, plain: bool) -> Response:
        """Turn a wrapped report into a tool call. With `plain`, do the same for plain text without calls."""
        if (content := wrapper.unwrap(response.text, self.nonce)) is not None:
            return _as_call(response, content, "wrapper")
        if plain and response.text.strip() and not response.calls:
            return _as_call(response, response.text.strip(), "text")
        return response

    def submit(self, args: Mapping[str, Any]) -> None:
        """Check and accept a report. Blocks. Raises BadRequest with what is wrong."""
        given: object = args.get("content")
        said = args.get(_SOURCE_KEY)
        source: Source = said if said in ("wrapper", "text") else "tool"
        if self._output.format == "json":
            content = self._check_json(given)
        else:
            content = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False, indent=2)
        if given is None or not content.strip():
            raise BadRequest(wording.EMPTY_REPORT)
        self.accepted = Report(self._output.format, content, source)

    def _check_json(self, given: object) -> str:
        try:
            value = loads(given) if isinstance(given, str) else given
            written = json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False)
        except ValueError as error:
            raise BadRequest(wording.not_json(str(error))) from None
        except RecursionError:
            raise BadRequest(wording.TOO_DEEP) from None
        try:
            found = None if self._output.json_schema is None else find_misfit(self._output.json_schema, value)
        except Unchecked as reason:  # a report that cannot be checked is never accepted
            raise BadRequest(wording.report_misfit(f"it cannot be checked, because {reason}")) from None
        if found is not None:
            raise BadRequest(wording.report_misfit(f"{found.path}: {found.message}"))
        return written


def _as_call(response: Response, content: str, source: Source) -> Response:
    call = ToolCall(f"call_{secrets.token_hex(8)}", internal.REPORT, {"content": content, _SOURCE_KEY: source})
    return replace(response, text="", calls=(*response.calls, call))
