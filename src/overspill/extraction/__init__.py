"""Answer a question about a stored output by the strategy that fits, and check every quote against the stored bytes."""

# Others use what is imported here.
# ruff: noqa: F401
# pyright: reportUnusedImport=false

from overspill.extraction.cache import Cache
from overspill.extraction.document import (
    Document,
    Engine,
    ExtractionFailed,
    Inspection,
    Mode,
    Policy,
    Progress,
    Selection,
)
from overspill.extraction.fallback import BUILTIN, extract_with_engine
from overspill.extraction.findings import NOT_FOUND
from overspill.extraction.run import extract
