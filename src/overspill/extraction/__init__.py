"""What a model needs from a stored output, said in words: found by whichever strategy fits, every quote checked."""

from overspill.extraction.cache import Cache
from overspill.extraction.document import Asks, Document, Engine, ExtractionFailed, Look, Mode, Policy, Progress, Selection
from overspill.extraction.fallback import BUILTIN
from overspill.extraction.findings import NOT_FOUND
from overspill.extraction.run import extract

__all__ = [
    "BUILTIN",
    "NOT_FOUND",
    "Asks",
    "Cache",
    "Document",
    "Engine",
    "ExtractionFailed",
    "Look",
    "Mode",
    "Policy",
    "Progress",
    "Selection",
    "extract",
]
