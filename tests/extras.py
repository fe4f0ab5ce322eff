"""Packages that are not installed everywhere."""

from importlib.util import find_spec

import pytest

OFFERED = ["get_tool_output"]
"""What the default preset offers."""


def needs(package: str, extra: str) -> pytest.MarkDecorator:
    """Skips a test, or a file, without the package. Looking for it does not import it: that takes a second for some."""
    return pytest.mark.skipif(
        find_spec(package) is None, reason=f"the extra '{extra}' is not installed: pip install '.[{extra}]'"
    )
