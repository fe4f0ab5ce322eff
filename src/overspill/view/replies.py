"""What a model saw of a stored output, made again. The journal holds no content, so this is what today's defaults would show."""

from __future__ import annotations

from overspill.errors import OverspillError
from overspill.gate.replies import OutputText, draft_handle
from overspill.retrieval.output import StoredOutput
from overspill.settings import Settings
from overspill.text.encoding import clean


def rebuild_reply(stored: StoredOutput) -> str:
    """Empty if there is none to rebuild: the output is damaged, not plain text, or was stored by the host itself."""
    kept = stored.kept
    if stored.damage or kept.media != "text" or kept.reason == "requested":
        return ""
    try:
        drafts = draft_handle(kept, OutputText(stored.reader, kept.size), Settings())
    except OverspillError:
        return ""
    return clean(drafts[0].text)
