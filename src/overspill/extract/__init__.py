"""What a model needs from a stored output, said in words: found by whichever strategy fits, every quote checked."""

from overspill.extract.cache import Cache
from overspill.extract.document import Asks, Document, Engine, ExtractionFailed, Mode, Policy, Progress, Selection
from overspill.extract.extraction import extract
from overspill.extract.findings import NOT_FOUND

__all__ = [
    "NOT_FOUND",
    "Asks",
    "Cache",
    "Document",
    "Engine",
    "ExtractionFailed",
    "Mode",
    "Policy",
    "Progress",
    "Selection",
    "extract",
]
