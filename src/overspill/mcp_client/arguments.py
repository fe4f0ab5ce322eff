"""Whether arguments suit a tool, by the schema its server lists."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from overspill.collect import to_json
from overspill.figures import one_line
from overspill.refs import Check


def suits(schema: Any) -> Check:
    """What is wrong with arguments, as a sentence. A schema that cannot be used finds nothing: the server judges for itself."""

    def check(args: Mapping[str, Any]) -> str | None:
        jsonschema = import_module("jsonschema")
        try:
            kind = jsonschema.validators.validator_for(schema, default=jsonschema.Draft202012Validator)
            found = jsonschema.exceptions.best_match(kind(schema).iter_errors(args))
        except Exception:  # a broken schema fails in as many ways as there are keywords
            return None
        if found is None:
            return None
        # The rule, not the value: that is stored content, and may be large.
        return f"{found.json_path} breaks the rule {one_line(to_json({found.validator: found.validator_value}))}."

    return check
