"""What every program can call, as Python that runs before it. Names with an underscore are answered outside the sandbox."""

PRELUDE = """\
import json

def load(name):
    form, text = _read(name)
    return json.loads(text) if form == "json" else text.splitlines()

def parts(name):
    return _parts(name)

def text(name, start=0, end=None):
    return _text(name, start, end)

def sql(statement):
    return json.loads(_sql(statement))

def find(question, name):
    return json.loads(_find(question, name))

def save(label, value):
    return _save(label, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))

def tool_stubs(names=()):
    return _stubs([names] if isinstance(names, str) else list(names))

class _Server:
    pass

async def _use(tool, positional, arguments):
    if positional:
        raise TypeError(tool + " takes its arguments by name: " + tool.split("/")[-1] + "(id=1)")
    form, text = await _call(tool, json.dumps(arguments))
    return json.loads(text) if form == "json" else text

def _write(value):
    written = value if isinstance(value, str) else repr(value)
    if isinstance(value, (dict, list)):
        try:
            written = json.dumps(value, ensure_ascii=False)
        except (TypeError, ValueError):
            pass
    if len(written) > 10_000_000:
        raise MemoryError("memory limit: the value of the last expression has more than 10,000,000 characters")
    return written
"""
