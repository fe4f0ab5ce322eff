"""Packages that are not installed everywhere."""

from importlib.util import find_spec

import pytest

OFFERED = ["tool_output", "get_tool_output", "wait_for_tool_output"] + ["run_program"] * (find_spec("pydantic_monty") is not None)
"""What the default preset offers here."""


def needs(package: str, extra: str) -> pytest.MarkDecorator:
    """Skips a test, or a file, without the package. Looking for it does not import it: that takes a second for some."""
    return pytest.mark.skipif(
        find_spec(package) is None, reason=f"the extra '{extra}' is not installed: pip install '.[{extra}]'"
    )
