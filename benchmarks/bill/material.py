"""Reads recorded conversations from public repositories, pinned by commit. None of it is shipped."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from benchmarks.bill.conversation import Conversation, Result, Step, Usage
from benchmarks.questions.sources import Git, Repository, Sources

TOKBENCH = Repository("Entelligentsia/tokbench", "c790418bf62b4893ae6a47f48d4fbecf496d2b69", "MIT")
LIVE_MCP = Repository("icip-cas/LiveMCPBench", "a928e57d1ee7a25579b9a7036030faffff72d15b", "Apache-2.0")
SWE_AGENT = Repository("multi-swe-bench/experiments", "89888f1604001fcd80b0799a37af42a1bfebfd8f", "not stated")


def read_material(folder: Path) -> list[Conversation]:
    """Every conversation once, even if the repositories hold several copies."""
    sources = Sources(folder, folder)
    found: dict[str, Conversation] = {}
    for conversation in (
        *read_tokbench(sources.git(TOKBENCH)),
        *read_live_mcp(sources.git(LIVE_MCP)),
        *read_swe_agent(sources.git(SWE_AGENT)),
    ):
        if any(step.results for step in conversation.steps):
            found.setdefault(fingerprint(conversation), conversation)
    return list(found.values())


def read_example() -> Conversation:
    """Our own example conversation, for machines without the others."""
    record = json.loads(Path(__file__).with_name("example.json").read_text())
    return read_openai(record["id"], "example", record["messages"])


def fingerprint(conversation: Conversation) -> str:
    parts = [part for step in conversation.steps for part in (step.written, *(result.text for result in step.results))]
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).hexdigest()


def read_tokbench(git: Git) -> Iterator[Conversation]:
    for path in git.list():
        if "/transcripts/" in path and path.endswith(".json"):
            record = json.loads(git.read(path))
            if record.get("schema") == "forge-subagent-transcript/v1":
                yield Conversation(path, "forge", record["prompt"], tuple(read_forge(record["messages"])))
        elif path.endswith(".jsonl") and "main-session/" in path:
            lines = [json.loads(line) for line in git.read(path).splitlines() if line.strip()]
            yield read_claude_code(path, lines)


def read_forge(messages: Iterable[dict[str, Any]]) -> Iterator[Step]:
    """Each assistant message, with the results that follow it."""
    written, results, said, at, usage = "", list[Result](), "", None, None
    begun, calls = False, dict[str, dict[str, Any]]()
    for message in messages:
        if message["role"] == "assistant":
            calls |= {block["id"]: block["arguments"] for block in message["content"] if block.get("type") == "toolCall"}
            if begun:
                yield Step(written, tuple(results), said, at, usage)
            begun, written, results, said = True, join_blocks(message["content"]), [], ""
            at = message.get("timestamp", 0) / 1000 or None
            usage = read_forge_usage(message.get("usage"))
        elif message["role"] == "toolResult":
            args = calls.get(message["toolCallId"], {})
            results.append(Result(message["toolName"], join_blocks(message["content"]), args))
        else:
            said += join_blocks(message["content"])
    if begun:
        yield Step(written, tuple(results), said, at, usage)


def read_forge_usage(usage: dict[str, int] | None) -> Usage | None:
    if not usage or not usage.get("input"):
        return None
    return Usage(usage["input"], usage.get("cacheRead", 0), usage.get("cacheWrite", 0), usage.get("output", 0))


def join_blocks(content: str | list[dict[str, Any]]) -> str:
    """The text of a message as the model reads or writes it: texts, thinking, and calls as JSON."""
    if isinstance(content, str):
        return content
    parts = list[str]()
    for block in content:
        match block.get("type"):
            case "text":
                parts.append(block["text"])
            case "thinking":
                parts.append(block.get("thinking") or "")
            case "toolCall":
                parts.append(json.dumps({"name": block["name"], "arguments": block["arguments"]}, ensure_ascii=False))
            case "tool_use":
                parts.append(json.dumps({"name": block["name"], "arguments": block["input"]}, ensure_ascii=False))
            case _:
                pass
    return "\n".join(parts)


def read_claude_code(path: str, lines: list[dict[str, Any]]) -> Conversation:
    """A session file of Claude Code: one message of the model may take several lines, which share its id and usage."""
    beginning, calls = "", dict[str, dict[str, Any]]()
    steps = list[dict[str, Any]]()
    for line in lines:
        message = line.get("message")
        if line.get("type") == "assistant" and message:
            if not steps or steps[-1]["id"] != message["id"]:
                at = datetime.fromisoformat(line["timestamp"]).timestamp()
                steps.append({"id": message["id"], "written": [], "results": [], "said": [], "at": at})
            steps[-1]["written"].append(join_blocks(message["content"]))
            steps[-1]["usage"] = message.get("usage")
            calls |= {block["id"]: block for block in message["content"] if block.get("type") == "tool_use"}
        elif line.get("type") == "user" and message:
            blocks = message["content"]
            if isinstance(blocks, str):
                blocks = [{"type": "text", "text": blocks}]
            for block in blocks:
                if block.get("type") == "tool_result" and steps:
                    call = calls.get(block["tool_use_id"], {})
                    text = join_blocks(block.get("content") or "")
                    steps[-1]["results"].append(Result(call.get("name", ""), text, call.get("input", {})))
                elif block.get("type") == "text" and steps:
                    steps[-1]["said"].append(block["text"])
                elif block.get("type") == "text":
                    beginning += block["text"]
    return Conversation(path, "claude-code", beginning, tuple(make_claude_step(step) for step in steps))


def make_claude_step(step: dict[str, Any]) -> Step:
    usage = step.get("usage")
    billed = usage and Usage(
        usage["input_tokens"],
        usage.get("cache_read_input_tokens") or 0,
        usage.get("cache_creation_input_tokens") or 0,
        usage["output_tokens"],
    )
    return Step("\n".join(step["written"]), tuple(step["results"]), "\n".join(step["said"]), step["at"], billed or None)


def read_live_mcp(git: Git) -> Iterator[Conversation]:
    for path in git.list():
        if path.startswith(("baseline/output/", "baseline/annotation/", "evaluator/output/")) and path.endswith(".json"):
            for record in json.loads(git.read(path)):
                if messages := record.get("messages"):
                    yield read_openai(f"{path}#{record['task_id']}", "live-mcp", messages)


def read_openai(identity: str, source: str, messages: list[dict[str, Any]]) -> Conversation:
    beginning, called = "", dict[str, dict[str, Any]]()
    steps = list[tuple[str, list[Result], list[str]]]()
    for message in messages:
        text = message.get("content") or ""
        if message["role"] == "assistant":
            calls = [call["function"] for call in message.get("tool_calls") or ()]
            called |= {call["id"]: call["function"] for call in message.get("tool_calls") or ()}
            written = [text, *(json.dumps({"name": call["name"], "arguments": call["arguments"]}) for call in calls)]
            steps.append(("\n".join(written), [], []))
        elif message["role"] == "tool" and steps:
            call = called.get(message["tool_call_id"], {})
            steps[-1][1].append(Result(call.get("name", ""), text, read_arguments(call.get("arguments", "{}"))))
        elif steps:
            steps[-1][2].append(text)
        else:
            beginning += text
    return Conversation(identity, source, beginning, tuple(Step(w, tuple(r), "\n".join(s)) for w, r, s in steps))


def read_arguments(written: str) -> dict[str, Any]:
    try:
        args = json.loads(written)
    except ValueError:
        return {}
    return cast("dict[str, Any]", args) if isinstance(args, dict) else {}


def read_swe_agent(git: Git) -> Iterator[Conversation]:
    """Trajectories of SWE-agent: the whole of each observation, before the agent left out old ones from its prompt."""
    for path in git.list("evaluation"):
        if path.endswith(".traj"):
            record = json.loads(git.read(path))
            first = next((at for at, each in enumerate(record["history"]) if each["role"] == "assistant"), 0)
            beginning = "\n".join(each["content"] for each in record["history"][:first])
            steps = tuple(
                Step(turn["response"] or "", (Result("shell", turn["observation"] or "", {"command": turn["action"]}),))
                for turn in record["trajectory"]
            )
            yield Conversation(path, "swe-agent", beginning, steps)
