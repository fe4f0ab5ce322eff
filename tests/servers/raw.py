"""An MCP server that writes its lines by hand, so that it can misbehave. The options say how; its tools say when."""

import json
import os
import signal
import subprocess
import sys
import time

OPTIONS = set(sys.argv[1:])
CHILD = [sys.executable, "-c", "import time; time.sleep(1000)"]
MODERN = "2026-07-28"
UNSUPPORTED = -32022


def line(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def send(**message: object) -> None:
    line(json.dumps({"jsonrpc": "2.0", **message}))


def say(text: str) -> None:
    sys.stderr.write(text + "\n")
    sys.stderr.flush()


def text(words: str) -> dict:
    return {"content": [{"type": "text", "text": words}]}


def greet(message: dict) -> None:
    id, method = message["id"], message["method"]
    if "mute" in OPTIONS:
        return
    if "fragile" in OPTIONS and method == "server/discover":
        sys.exit(1)
    if method == "server/discover":
        if "late" in OPTIONS and not held:
            held.append(id)
        elif "legacy" in OPTIONS or "old" in OPTIONS:
            send(id=id, error={"code": -32601, "message": "Method not found"})
        else:
            discovered(id)
    elif "late" in OPTIONS or "modern" in OPTIONS:
        for probe in held:
            discovered(probe)
        send(id=id, error={"code": UNSUPPORTED, "message": "Unsupported protocol version", "data": {"supported": [MODERN]}})
    elif "refuse" in OPTIONS:
        send(id=id, error={"code": -32603, "message": "No licence."})
    else:
        version = "2024-11-05" if "old" in OPTIONS else "1999-01-01" if "strange" in OPTIONS else "2025-11-25"
        info = {"name": "raw", "version": "1", "mood": "odd"}
        abilities = {} if "toolless" in OPTIONS else {"tools": True} if "promises" in OPTIONS else {"tools": {}}
        send(
            id=id,
            result={"protocolVersion": version, "capabilities": abilities, "serverInfo": info, "instructions": "Be kind."},
        )


def discovered(id: object) -> None:
    info = {"io.modelcontextprotocol/serverInfo": {"name": "raw", "version": "1"}}
    versions = ["2099-01-01"] if "future" in OPTIONS else [MODERN]
    send(id=id, result={"supportedVersions": versions, "capabilities": {"tools": {}}, "_meta": info, "resultType": "complete"})


def list_tools(message: dict) -> None:
    if "promises" in OPTIONS:
        send(id=message["id"], result={"tools": [{"name": "huge", "inputSchema": {"type": "object"}, "outputSchema": {}}]})
    elif "locked" in OPTIONS:
        send(id=message["id"], error={"code": -32603, "message": "The database is locked."})
    elif "nonsense" in OPTIONS:
        send(id=message["id"], result={"tools": [{"name": "good", "extra": 1}, {"name": 7}, "bad", {}]})
    elif "endless" in OPTIONS:
        cursor = int(message.get("params", {}).get("cursor", 0)) + 1
        send(id=message["id"], result={"tools": [], "nextCursor": str(cursor)})
    elif "paged" in OPTIONS:
        page = message.get("params", {}).get("cursor", "")
        send(id=message["id"], result={"tools": [{"name": "tool" + page}], "nextCursor": {"": "a", "a": "b", "b": "a"}[page]})
    else:
        send(id=message["id"], result={"tools": None})


def call(message: dict) -> None:
    id, name, args = message["id"], message["params"]["name"], message["params"].get("arguments", {})
    match name:
        case "echo":
            send(id=id, result={**text(json.dumps(message["params"])), "unknown": {"kept": [1, None]}})
        case "environment":
            send(id=id, result=text(json.dumps({"env": dict(os.environ), "cwd": os.getcwd(), "pid": os.getpid()})))
        case "exit":
            say(args.get("words", ""))
            sys.stdout.write(f'{{"jsonrpc":"2.0","id":{id},"resu')
            sys.stdout.flush()
            os._exit(int(args.get("code", 3)))
        case "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        case "hang":
            hanging.append(id)
        case "huge":
            huge(id, int(args["size"]), first=args.get("first", "id"))
        case "garbage":
            garbage(id)
        case "malformed":
            line(json.dumps({"jsonrpc": "2.0", "id": id, "result": ["not", "an", "object"]}))
        case "torn":
            line(f'{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"te')
        case "surrogate":
            send(id=id, result={"content": [{"type": "text", "text": "a\ud800b"}], "n": 2**80})
        case "progress":
            for step in range(3):
                send(
                    method="notifications/progress",
                    params={"progressToken": message["params"]["_meta"]["progressToken"], "progress": step, "mood": "odd"},
                )
                send(method="notifications/message", params={"level": "info", "data": step})
            send(id=id, result=text("done"))
        case "ask":
            asked[len(asked)] = id
            send(id=f"ask-{len(asked) - 1}", method=args["method"], params=args.get("params", {}))
        case "twice":
            send(id=999_999, result={})
            send(id=None, error={"code": -32700, "message": "Parse error"})
            send(id=id, result=text("first"))
            send(id=id, result=text("second"))
        case "close_output":
            os.close(1)
        case "close_input":
            os.close(0)
            say("Input closed.")
            send(id=id, result=text("closed"))
            time.sleep(1000)
        case "child":
            child = subprocess.Popen(CHILD)  # holds our pipes open
            send(id=id, result=text(json.dumps([os.getpid(), child.pid])))
        case "daemon":
            child = subprocess.Popen(CHILD, start_new_session=True)
            send(id=id, result=text(json.dumps([os.getpid(), child.pid])))
        case "closed":
            send(id=id, error={"code": -32000, "message": "Connection closed"})
        case "input":
            send(id=id, result={"resultType": "input_required", "inputRequests": {}})
        case _:
            send(id=id, error={"code": -32602, "message": f"No tool {name}", "data": {"tried": name}})


def huge(id: int, size: int, first: str) -> None:
    ends = {
        "id": (f'{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":"', '"}]}}\n'),
        "result": ('{"result":{"id":1,"content":[{"type":"text","id":1,"text":"', f'"}}]}},"id":{id},"jsonrpc":"2.0"}}\n'),
    }
    head, tail = (part.encode() for part in ends[first])
    out, block = sys.stdout.buffer, b"x" * 1_000_000
    out.write(head)
    for _ in range(size // len(block)):
        out.write(block)
    out.write(b"x" * (size % len(block)) + tail)
    out.flush()


def garbage(id: int) -> None:
    for each in ("Starting up ...", "", "   ", "{", "[]", "null", json.dumps({"level": "info", "id": id, "msg": "a log line"})):
        line(each)
    sys.stdout.buffer.write(b"\xff\xfe\x00\n")
    line(json.dumps({"jsonrpc": "2.0", "id": id, "method": "notifications/odd", "params": [1]}))
    whole = json.dumps({"jsonrpc": "2.0", "id": id, "result": text("after the garbage")})
    for part in (whole[:7], whole[7:30], whole[30:] + "\r\n"):
        sys.stdout.write(part)
        sys.stdout.flush()


def answer(message: dict) -> None:
    """To something that we asked."""
    index = int(str(message["id"]).removeprefix("ask-"))
    send(id=asked[index], result=text(json.dumps({key: message[key] for key in ("result", "error") if key in message})))


asked: dict[int, int] = {}
hanging: list[int] = []
held: list[object] = []

if "exit" in OPTIONS:
    say("Cannot open the database.")
    sys.exit(4)
if "stubborn" in OPTIONS:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)

for received in sys.stdin:
    message = json.loads(received)
    match message.get("method"):
        case "initialize" | "server/discover":
            greet(message)
        case "tools/list":
            list_tools(message)
        case "tools/call":
            call(message)
        case "notifications/cancelled":
            say(f"cancelled {hanging.index(message['params']['requestId'])}")
        case None:
            answer(message)
        case method if "id" in message:
            send(id=message["id"], error={"code": -32601, "message": "Method not found", "data": method})

while "stubborn" in OPTIONS:
    time.sleep(1000)
