"""The file by which systemd or launchd starts the hub when you log in. Nothing here starts or stops anything."""

from __future__ import annotations

import os
import plistlib
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct

from overspill.errors import OverspillError
from overspill.hub.place import process_variables
from overspill.mcp.host_configs.files import write_private
from overspill.text.regex import regex

_MARK = "Written by `overspill hub install`"
_NAME, _LABEL = "overspill-hub.service", "overspill.hub"
_GIVEN = {"DBUS_SESSION_BUS_ADDRESS", "HOME", "LOGNAME", "USER", "XDG_RUNTIME_DIR"}
"""Variables that systemd and launchd set themselves."""
_PLAIN = {
    "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "TZ", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME",
}  # fmt: skip
"""Variables that may be written into the file. Others may hold secrets."""
_MAX_BYTES = 1 << 16
_PORT = regex(r'"--port" "(\d+)"|<string>--port</string>\s*<string>(\d+)</string>')


class HubUnit(Struct, frozen=True):
    file: Path
    text: str
    start: str
    """The command that starts the hub, now and at each login."""
    stop: str
    link: Path | None = None
    """The link that enabling the unit creates in addition to the file."""

    def install(self) -> None:
        """Write the file. Raises OverspillError if it exists and we did not write it."""
        self.check()
        try:
            write_private(self.file, self.text)
        except OSError as problem:
            raise OverspillError(f"{self.file} cannot be written: {problem.strerror}.") from None

    def uninstall(self) -> bool:
        """Remove the file. Returns whether it existed. Raises OverspillError if we did not write it."""
        is_there = self.check()
        if self.link is not None and self.link.is_symlink() and os.readlink(self.link) == str(self.file):
            self.link.unlink()
        self.file.unlink(missing_ok=True)
        return is_there

    def check(self) -> bool:
        """Return whether the file exists. Raises OverspillError if we did not write it."""
        return self._read() is not None

    def find_port(self) -> int | None:
        """Return the port on which the installed hub serves HTTP; None if it has none, or no unit is installed."""
        found = _PORT.search(self._read() or "")
        return int(found[1] or found[2]) if found else None

    def _read(self) -> str | None:
        if not os.path.lexists(self.file):
            return None
        with suppress(OSError):
            is_plain = not self.file.is_symlink() and self.file.is_file() and self.file.stat().st_size <= _MAX_BYTES
            if is_plain and _MARK in (text := self.file.read_text("utf-8", "replace")):
                return text
        raise OverspillError(f"{self.file} exists, and Overspill did not write it. Remove it first.")


def make_unit(environ: Mapping[str, str], platform: str, launch: Sequence[str], port: int | None = None) -> HubUnit:
    """Make a unit for this system. `launch` starts Overspill; clients that speak HTTP use the `port`. Raises OverspillError
    without systemd and launchd."""
    home = Path(environ.get("HOME", ""))
    if not home.is_absolute():
        raise OverspillError("HOME is not set, so there is no folder for the unit. Set HOME, and try again.")
    words = [*launch, "hub", "run", "--idle-minutes", "0", *(["--port", str(port)] if port else [])]
    if not all(each.isprintable() for each in (str(home), *words)):
        raise OverspillError("The path of Overspill or of your home folder has characters that a unit cannot hold.")
    variables = [each for each in process_variables(environ) if each.partition("=")[0] in _PLAIN and each.isprintable()]
    if platform == "darwin":
        return _make_agent(home / "Library" / "LaunchAgents" / f"{_LABEL}.plist", words, variables)
    if platform != "linux" or shutil.which("systemctl", path=environ.get("PATH")) is None:
        raise OverspillError(
            "There is neither systemd nor launchd here, so nothing was written. The hub needs neither: the first proxy starts it."
        )
    config = Path(environ.get("XDG_CONFIG_HOME", ""))
    folder = (config if config.is_absolute() else home / ".config") / "systemd" / "user"
    lines = [
        f"# {_MARK}. To remove it: overspill hub uninstall",
        "[Unit]",
        "Description=Overspill hub, one process for all conversations",
        "[Service]",
        f"ExecStart={' '.join(map(_quote, words)).replace('$', '$$')}",
        *(f"Environment={_quote(each)}" for each in variables),
        "Restart=on-failure",
        "[Install]",
        "WantedBy=default.target",
    ]
    control = f"systemctl --user {{}} --now {_NAME}"
    link = folder / "default.target.wants" / _NAME
    return HubUnit(folder / _NAME, "\n".join(lines) + "\n", control.format("enable"), control.format("disable"), link)


def list_left_out(environ: Mapping[str, str]) -> list[str]:
    """List variables that are not in the unit, so clients with these variables get another hub than the unit's."""
    names = [each.partition("=")[0] for each in process_variables(environ)]
    return [name for name in names if name not in _PLAIN | _GIVEN]


def _make_agent(file: Path, words: Sequence[str], variables: Sequence[str]) -> HubUnit:
    content = {
        "Label": _LABEL,
        "ProgramArguments": list(words),
        "EnvironmentVariables": dict(each.split("=", 1) for each in variables),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
    }
    head, body = plistlib.dumps(content).decode().split("\n", 1)
    control = f"launchctl {{}} gui/{os.getuid()}"
    text = f"{head}\n<!-- {_MARK}. To remove it: overspill hub uninstall -->\n{body}"
    return HubUnit(file, text, f"{control.format('bootstrap')} '{file}'", f"{control.format('bootout')}/{_LABEL}")


def _quote(word: str) -> str:
    """Quote a word for systemd, so that it expands nothing in it."""
    plain = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{plain}"'
