"""Overspill's own entries in a client's files: a hook for the client's built-in tools, and the server that reads back what the
hook has stored. Every other byte of a file is kept."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path, PurePath
from typing import Any

from msgspec import Struct

from overspill.errors import SettingsError
from overspill.text import jsonc
from overspill.text.jsonc import Node

SERVER = "overspill"
_GROUP_DEPTH = 3
"""The depth of a group of hooks. A group without hooks is removed, although it also has a matcher."""


class HookPlace(Struct, frozen=True):
    """Where a client has its hooks, with a matcher for each event. The first event has the outputs that we may replace."""

    client: str
    file: Path
    project_file: str
    events: Mapping[str, str]
    server_type: str = ""

    @property
    def tools(self) -> list[str]:
        return next(iter(self.events.values())).split("|")

    def add_hook(self, text: str, name: str, launch: Sequence[str]) -> str:
        """Add our hook for each event that does not have it, and return the new text. A missing file has an empty text."""
        there = {path[1] for path, _ in self._find_hooks(_open(text, name), launch)}
        for event in (event for event in self.events if event not in there):
            text = self._add_event(text, name, event, shlex.join([*launch, "hook", self.client]))
        return text

    def _add_event(self, text: str, name: str, event: str, command: str) -> str:
        root = _open(text, name)
        group = {"matcher": self.events[event], "hooks": [{"type": "command", "command": command}]}
        hooks = root.get("hooks")
        _expect("object", hooks, "hooks", name)
        groups = root.get("hooks", event)
        _expect("array", groups, f"hooks.{event}", name)
        if groups:
            return _insert(text, groups, "", group)
        return _insert(text, hooks, event, [group]) if hooks else _insert(text, root, "hooks", {event: [group]})

    def find_hook(self, text: str, name: str, launch: Sequence[str] = ()) -> list[str]:
        """Return the words of our hook's command, or an empty list. `launch` starts Overspill under another name."""
        return next((words for _, words in self._find_hooks(_open(text, name), launch)), list[str]())

    def remove_hook(self, text: str, name: str, launch: Sequence[str] = ()) -> str:
        """Remove our hooks, and the lists and objects that would then be empty."""
        while found := next(self._find_hooks(root := _open(text, name), launch), None):
            text = _remove(text, root, found[0])
        return text

    def _find_hooks(self, root: Node, launch: Sequence[str]) -> Iterator[tuple[tuple[str | int, ...], list[str]]]:
        """Yield, for each of our hooks, its path from the root and the words of its command."""
        for event in self.events:
            for group_at, group in enumerate(_list(root.get("hooks", event))):
                for hook_at, hook in enumerate(_list(group.get("hooks"))):
                    words, command = list[str](), hook.get("command")
                    with suppress(ValueError):  # a shell would reject it too
                        words = shlex.split(command.value) if command and command.kind == "string" else words
                    if words[-2:] == ["hook", self.client] and (is_overspill(words[:-2]) or words[:-2] == list(launch)):
                        yield ("hooks", event, group_at, "hooks", hook_at), words

    def add_server(self, text: str, name: str, launch: Sequence[str]) -> str:
        """Add our server unless the file has it, and return the new text. Raises SettingsError if another server has its name."""
        root = _open(text, name)
        table = root.get("mcpServers")
        _expect("object", table, "mcpServers", name)
        if entry := root.get("mcpServers", SERVER):
            if not self.is_own_server(entry):
                raise SettingsError(
                    f"{name} already has a server {SERVER!r}, and it is another one. Rename it, and run this again."
                )
            return text
        program, *words = launch
        kind = {"type": self.server_type} if self.server_type else {}
        new = {**kind, "command": program, "args": [*words, "serve", self.client]}
        return _insert(text, table, SERVER, new) if table else _insert(text, root, "mcpServers", {SERVER: new})

    def find_server(self, text: str, name: str) -> list[str]:
        """Return the command that starts Overspill in our server's entry; empty if there is no such entry."""
        entry = _open(text, name).get("mcpServers", SERVER)
        return list_words(entry)[:-2] if entry and self.is_own_server(entry) else []

    def remove_server(self, text: str, name: str) -> str:
        return _remove(text, _open(text, name), ("mcpServers", SERVER)) if self.find_server(text, name) else text

    def is_own_server(self, entry: Node) -> bool:
        return list_words(entry)[-2:] == ["serve", self.client]


def serves_outputs(server: str, entry: Node) -> bool:
    """Whether an entry is `overspill serve`, which reads what Overspill has stored and needs no proxy."""
    words = list_words(entry)
    return len(words) > 2 and words[-2] == "serve" and (server == SERVER or is_overspill(words[:-2]))


def _open(text: str, name: str) -> Node:
    root = jsonc.scan(text or "{}", name)
    _expect("object", root, "", name)
    for node in (root, root.get("hooks"), root.get("mcpServers")):
        if node and (twice := node.duplicate_key):
            raise SettingsError(f"{name} has the key {twice!r} twice. Keep one.")
    return root


def _expect(kind: str, node: Node | None, path: str, name: str) -> None:
    if node and node.kind != kind:
        raise SettingsError(f"{f'{path} in ' if path else ''}{name} must be {'an' if kind[0] in 'ao' else 'a'} {kind}.")


def _list(node: Node | None) -> Sequence[Node]:
    return node.children if node and node.kind == "array" else ()


def list_words(entry: Node) -> list[str]:
    found = [entry.get("command"), *_list(entry.get("args"))]
    return [node.value for node in found if node and node.kind == "string"]


def is_overspill(words: Sequence[str]) -> bool:
    return bool(words) and PurePath(words[-1].replace("\\", "/")).name.removesuffix(".exe") == "overspill"


def _insert(text: str, container: Node, key: str, value: Any) -> str:
    if not text:
        return json.dumps({key: value}, indent=2, ensure_ascii=False) + "\n"
    written = jsonc.write_like_first(container, value)
    return jsonc.apply_edits(text, [jsonc.insert(container, [f"{jsonc.quote(key)}: {written}" if key else written])])


def _remove(text: str, root: Node, path: Sequence[str | int]) -> str:
    """Remove the value at the path, and its parents that become empty."""
    containers, indexes = [root], list[int]()
    for step in path:
        indexes.append(containers[-1].names.index(step) if isinstance(step, str) else step)
        containers.append(containers[-1].children[indexes[-1]])
    depth = len(path) - 1
    while depth and (len(containers[depth].children) == 1 or depth == _GROUP_DEPTH):
        depth -= 1
    return jsonc.apply_edits(text, jsonc.remove(containers[depth], [indexes[depth]]))
