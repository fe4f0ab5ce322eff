"""Undo wrapping: the edits that turn an entry that runs `overspill proxy` into the original."""

from __future__ import annotations

from overspill.mcp.host_configs.proxied import TYPE_VARIABLE, ProxyArguments
from overspill.text import jsonc
from overspill.text.jsonc import Edit, Node


def unwrap_entry(entry: Node, found: ProxyArguments) -> list[Edit] | None:
    """The edits that keep all comments; None if the entry does not tell what the original was."""
    command, args, env = entry.get("command"), entry.get("args"), entry.get("env")
    assert command
    assert args
    if found.command_at is not None:
        own = args.children[found.command_at].raw
        return [jsonc.replace(command, own), *jsonc.remove(args, range(found.command_at + 1))]
    url = _find_url(args, env, found)
    if found.has_other_options or not url or not {variable for _, variable in found.headers} <= set(env.names if env else ()):
        return None
    edits = [jsonc.replace(entry.key("command"), '"url"'), jsonc.replace(command, url.raw)]
    if (kind := entry.get("type")) and kind.value == "stdio":
        spelled = env.get(TYPE_VARIABLE) if env else None
        edits.append(jsonc.replace(kind, spelled.raw if spelled else '"http"'))
    return edits + _remove_args(entry, env, found)


def _find_url(args: Node, env: Node | None, found: ProxyArguments) -> Node | None:
    if found.url_at is not None:
        return args.children[found.url_at] if found.url_at < len(args.children) else None
    return env.get(found.url_variable) if env else None


def _remove_args(entry: Node, env: Node | None, found: ProxyArguments) -> list[Edit]:
    """Remove `args` and Overspill's variables. `env` becomes `headers` if it holds nothing else."""
    gone = [entry.names.index("args")]
    if not env:
        return jsonc.remove(entry, gone)
    own = [at for at, name in enumerate(env.names) if name in (found.url_variable, TYPE_VARIABLE)]
    headers = {variable: name for name, variable in found.headers}
    held = [at for at, name in enumerate(env.names) if name in headers]
    if held and len(held) == len(found.headers) == len(env.names) - len(own):
        names = [jsonc.replace(env.keys[at], jsonc.quote(headers[env.names[at]])) for at in held]
        return [*jsonc.remove(entry, gone), jsonc.replace(entry.key("env"), '"headers"'), *names, *jsonc.remove(env, own)]
    added: list[Edit] = []
    if held:
        members = [f"{jsonc.quote(name)}: {value.raw}" for name, variable in found.headers if (value := env.get(variable))]
        added.append(jsonc.append(entry, "command", f'"headers": {{{", ".join(members)}}}'))
    if own and len(own) == len(env.names):
        return added + jsonc.remove(entry, [*gone, entry.names.index("env")])
    return [*added, *jsonc.remove(entry, gone), *jsonc.remove(env, [*own, *held])]
