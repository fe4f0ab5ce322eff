"""Codex's code mode in front of one server. Reads and prints as `fastmcp_host.py` does. Its model is scripted, on loopback.

    python codex_host.py CODEX COMMAND ARGS… < programs.json

One conversation runs all programs: each request to the model is answered with a call of `exec` that has the next one.
"""

import json
import os
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PRELUDE = """// @exec: {"yield_time_ms": 60000, "max_output_tokens": 20000}
const call = async (name, args = {}) => {
  const got = await tools["mcp__data__" + name](args);
  if (got.isError) throw new Error(got.content[0].text);
  return got.structuredContent ?? got.content.map((each) => each.text).join("\\n");
};
"""
CONFIG = """
model = "scripted"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "read-only"

[model_providers.scripted]
name = "scripted"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[features]
code_mode = true
code_mode_only = true

[mcp_servers.data]
command = {command}
args = {args}
tool_timeout_sec = 60
startup_timeout_sec = 60
required = true
default_tools_approval_mode = "approve"
"""


class Model:
    """Answers with one program after the other, and keeps what Codex sends back."""

    def __init__(self, programs: dict[str, tuple[str, str]]) -> None:
        self.programs = list(programs.items())
        self.asked = 0
        self.outputs: dict[str, str] = {}

    def answer(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        for item in body.get("input", []):
            if item.get("type") == "custom_tool_call_output":
                output = item["output"]
                parts = [output] if isinstance(output, str) else [each.get("text", "") for each in output]
                self.outputs[item["call_id"]] = "\n".join(parts)
        id = f"answer-{self.asked}"
        if self.asked == len(self.programs):
            item: dict[str, Any] = {
                "type": "message",
                "role": "assistant",
                "id": id,
                "content": [{"type": "output_text", "text": "done"}],
            }
        else:
            name, (lines, expression) = self.programs[self.asked]
            self.asked += 1
            code = f"{PRELUDE}{lines}\ntext('VALUE' + JSON.stringify({expression}));"
            item = {"type": "custom_tool_call", "call_id": name, "name": "exec", "input": code}
        usage = {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}
        return [
            {"type": "response.created", "response": {"id": id}},
            {"type": "response.output_item.done", "item": item},
            {"type": "response.completed", "response": {"id": id, "usage": usage}},
        ]


def serve(model: Model) -> ThreadingHTTPServer:
    class Door(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            events = model.answer(body)
            data = "".join(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n" for each in events).encode()
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self.send_error(404)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Door)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def main() -> None:
    codex, command, *args = sys.argv[1:]
    model = Model(json.load(sys.stdin))
    server = serve(model)
    with tempfile.TemporaryDirectory() as home:
        config = CONFIG.format(port=server.server_port, command=json.dumps(command), args=json.dumps(args))
        Path(home, "config.toml").write_text(config)
        line = [codex, "exec", "--skip-git-repo-check", "--cd", home, "Go."]
        environ = {**os.environ, "CODEX_HOME": home}
        ended = subprocess.run(  # noqa: S603
            line, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=560, check=False
        )
    for name, _ in model.programs:
        output = model.outputs.get(name)
        if output is None:
            sys.exit(f"Codex ended without running {name}: {ended.stderr[-2000:]}")
        _, found, value = output.partition("VALUE")
        said = {"value": json.JSONDecoder().raw_decode(value)[0]} if found else {"error": output[:500]}
        print(json.dumps({"name": name, **said}))


main()
