"""Answer a question about a stored output by the strategy that fits, and check every quote against the stored bytes."""

from overspill.extraction.document import Document, ExtractionFailed, Mode, Policy, Progress
from overspill.extraction.fallback import BUILTIN, extract_with_engine
from overspill.extraction.findings import NOT_FOUND
from overspill.extraction.inquiry import Cache
from overspill.extraction.run import extract

__all__ = [
    "BUILTIN", "NOT_FOUND", "Cache", "Document", "ExtractionFailed", "Mode", "Policy", "Progress", "extract",
    "extract_with_engine",
]  # fmt: skip
