"""What an extraction is given: a stored document, and models that are asked without retries, so that each answer of a script is
the only one."""

from __future__ import annotations

import re
from hashlib import sha256

from overspill import handles
from overspill.extraction import Document
from overspill.models.protocol import Model, Request
from overspill.models.targets import Targets
from overspill.store.memory import MemoryStore
from overspill.store.meter import size_of


def once(model: Model) -> Targets:
    return Targets([model], retries=0)


def stored(content: str, tool: str = "fetch", args: str = "{}") -> Document:
    shelf = MemoryStore().open_shelf(session := handles.new())
    writer = shelf.create(file := handles.new())
    writer.append(content.encode())
    writer.commit()
    digest = sha256(content.encode()).hexdigest()
    return Document(handles.handle(session, file), tool, args, shelf.open(file), size_of(content), digest)


def nonce(request: Request) -> str:
    """Of the wrapper that the report is asked for in."""
    found = re.search(r"<ai-agent-([0-9a-f]+)-FINAL", request.system)
    assert found
    return found[1]
