"""Remote servers of every client: wrapped without a secret on a command line or on the screen, and unwrapped byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Place

SECRET = "s3cr3t"  # noqa: S105
FILES = {
    "cursor": (
        ".cursor/mcp.json",
        """{ // mine
  "mcpServers": {
    "plain": { "url": "https://a.example/mcp" },
    "typed": { "type": "streamable-http", "url": "https://a.example/mcp", "headers": {} },
    "header": { "url": "https://b.example/mcp", "headers": { "Authorization": "Bearer s3cr3t", "X-A": "1" } /* keep */ },
    "query": { "url": "https://c.example/mcp?key=s3cr3t", },
    "user": { "url": "https://u:s3cr3t@d.example/mcp" },
    "path": { "url": "https://e.example/s3cr3t-0123456789abcdef/mcp", "type": "http" },
    "old": { "type": "sse", "url": "https://f.example/sse" },
    "off": { "url": "https://h.example/mcp", "disabled": true },
    "files": { "url": "ftp://m.example/mcp" }
  }
}
""",
    ),
    "codex": (
        ".codex/config.toml",
        """model = "x"  # mine

[mcp_servers.plain]
url = "https://a.example/mcp"

[mcp_servers.header]
url = "https://c.example/mcp"
http_headers = { "X-A" = "s3cr3t" }
""",
    ),
    "gemini-cli": (
        ".gemini/settings.json",
        '{"mcpServers": {"plain": {"httpUrl": "https://a.example/mcp"}, "query": {"httpUrl": "https://c.example/mcp?k=s3cr3t"}}}',
    ),
    "opencode": (
        ".config/opencode/opencode.json",
        """{"mcp": {"plain": {"type": "remote", "url": "https://a.example/mcp", "enabled": true},
 "header": {"type": "remote", "url": "https://b.example/mcp", "headers": {"Authorization": "Bearer s3cr3t"}}}}""",
    ),
    "goose": (
        ".config/goose/config.yaml",
        "extensions:\n  plain:\n    type: streamable_http\n    uri: https://a.example/mcp\n    enabled: true\n    name: plain\n",
    ),
}


@pytest.mark.parametrize("client", FILES)
def test_secrets_stay_off_command_lines_and_unwrapping_restores_every_byte(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    place = Place(tmp_path, monkeypatch, capsys)
    monkeypatch.delenv("XDG_CONFIG_HOME")
    name, text = FILES[client]
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    shown = place.overspill("wrap", client, "--command", "overspill", "--print")
    said = place.overspill("wrap", client, "--command", "overspill")
    assert (shown.code, said.code) == (0, 0)
    assert SECRET not in shown.out + shown.err + said.out + said.err
    logins = next(line for line in said.out.splitlines() if "may need one login" in line)
    assert logins.startswith(
        f"Each of these may need one login: {'plain, typed' if client == 'cursor' else 'plain'}. To log in: "
    )
    wrapped = file.read_text()
    assert wrapped.count("--name") == {"cursor": 7, "goose": 1}.get(client, 2)
    if client == "cursor":
        entries = json.loads(
            wrapped.replace("// mine", "").replace("/* keep */", "").replace("}, }", "}}").replace("},\n  }", "}}")
        )
        assert [entry for entry in entries["mcpServers"].values() if SECRET in str(entry.get("args"))] == []
        assert "old: it is of type 'sse'" in said.out
        assert "files: its url does not begin with http:// or https://." in said.out
    assert place.overspill("unwrap", client).code == 0
    assert file.read_text() == text
    assert [path.name for path in file.parent.iterdir()] == [file.name]
