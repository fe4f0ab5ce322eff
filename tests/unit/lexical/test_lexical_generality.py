# ruff: noqa: E501, S311  (outputs are written here as their tools write them)
"""Outputs of many tools, made up here, and questions whose answer must stand among 500 tokens."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest

from overspill.lexical.index import build
from overspill.lexical.select import select

NAMES = [
    "amber",
    "birch",
    "cedar",
    "dune",
    "ember",
    "fjord",
    "grove",
    "heath",
    "islet",
    "jasper",
    "knoll",
    "larch",
    "maple",
    "north",
    "ocean",
    "pine",
    "quartz",
    "ridge",
    "slate",
    "tundra",
]


def kubectl_json() -> str:
    pods = [
        {
            "metadata": {"name": f"{name}-{number}", "namespace": "shop", "uid": f"{number:08x}-aa"},
            "spec": {
                "nodeName": f"node-{number % 7}",
                "containers": [{"name": "main", "image": f"registry.local/{name}:1.{number}"}],
            },
            "status": {
                "phase": "Running" if number != 61 else "CrashLoopBackOff",
                "restartCount": number % 5,
                "podIP": f"10.1.{number}.9",
            },
        }
        for number in range(90)
        for name in (NAMES[number % 20],)
    ]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": pods}, indent=2)


def git_diff() -> str:
    files = []
    for number, name in enumerate(NAMES * 3):
        body = "\n".join(f" context line {line} of {name}" for line in range(12))
        added = "+    retries = max_retries(policy, 7)" if number == 33 else f"+    value = compute_{name}({number})"
        path = f"src/{name}_{number}.py"
        files.append(
            f"diff --git a/{path} b/{path}\n--- a/{path}\n+++ b/{path}\n@@ -1,14 +1,15 @@ def run():\n{body}\n-    old = {number}\n{added}\n"
        )
    return "".join(files)


def ripgrep() -> str:
    lines = [
        f"src/{NAMES[number % 20]}/module_{number}.py:{number * 3}:    logger.info('step %s', {number})" for number in range(400)
    ]
    lines[271] = "src/heath/limits.py:88:MAX_UPLOAD_BYTES = 52_428_800"
    return "\n".join(lines)


def markdown() -> str:
    sections = [f"## {name.title()}\n\n" + f"The {name} service reads events and writes them on. " * 12 + "\n" for name in NAMES]
    sections[13] += "\n### Retention\n\nBackups of this service are kept for 45 days and then deleted.\n"
    return "# Handbook\n\n" + "\n".join(sections)


def python_source() -> str:
    functions = [
        f"def handle_{name}(event):\n    data = parse(event)\n    for item in data:\n        store(item, {number})\n    return len(data)\n"
        for number, name in enumerate(NAMES * 6)
    ]
    functions[70] = (
        "class RateLimiter:\n    def acquire(self, key):\n        window = self.windows[key]\n        if window.count > self.burst:\n            raise TooManyRequests(key)\n        window.count += 1\n"
    )
    return "import json\n\n\n" + "\n\n".join(functions)


def ls_table() -> str:
    rows = [
        f"-rw-r--r--  1 deploy  staff  {1000 + number * 37:8d}  Mar {number % 28 + 1:2d} 10:{number % 60:02d}  {NAMES[number % 20]}-{number}.txt"
        for number in range(300)
    ]
    rows[212] = "-rw-------  1 root    wheel    734003  Mar  3 04:44  backup-key.pem"
    return "total 4096\n" + "\n".join(rows)


def ndjson_log() -> str:
    events = [
        {
            "ts": f"2026-02-01T10:{number // 60:02d}:{number % 60:02d}Z",
            "level": "info",
            "msg": f"served {NAMES[number % 20]}",
            "request_id": f"r{number:05d}",
            "ms": number % 90,
        }
        for number in range(500)
    ]
    events[377] = {
        "ts": "2026-02-01T10:06:17Z",
        "level": "error",
        "msg": "upstream reset",
        "request_id": "r00377",
        "peer": "10.9.8.7:443",
    }
    return "\n".join(map(json.dumps, events))


def xml() -> str:
    books = "".join(
        f'<book id="b{number}"><title>{name.title()} tales {number}</title><price>{number}.50</price><shelf>{number % 9}-{name}</shelf></book>'
        for number, name in enumerate(NAMES * 10)
    )
    return f'<?xml version="1.0"?><catalog>{books}</catalog>'


def yaml() -> str:
    services = [
        f"  {name}-{number}:\n    image: {name}:2.{number}\n    ports:\n      - {8000 + number}\n    environment:\n      MODE: prod\n      SHARD: s{number}\n"
        for number, name in enumerate(NAMES * 5)
    ]
    return "version: '3'\nservices:\n" + "".join(services)


def java_trace() -> str:
    lines = [
        f"2026-01-05 09:{number // 60:02d}:{number % 60:02d},120 INFO  [pool-{number % 8}] c.s.Worker - processed batch {number}"
        for number in range(400)
    ]
    lines[250] += (
        "\n2026-01-05 09:04:10,777 ERROR [pool-3] c.s.Ledger - posting failed\njava.lang.IllegalStateException: account 7741 is frozen"
        "\n\tat com.shop.Ledger.post(Ledger.java:212)\n\tat com.shop.Worker.run(Worker.java:58)\nCaused by: com.shop.RuleViolation: rule R-19"
        "\n\tat com.shop.Rules.check(Rules.java:31)\n\t... 2 more"
    )
    return "\n".join(lines)


def terraform_plan() -> str:
    blocks = [
        f'  # aws_s3_bucket.{name}_{number} will be created\n  + resource "aws_s3_bucket" "{name}_{number}" {{\n      + bucket = "{name}-{number}"\n      + acl    = "private"\n    }}\n'
        for number, name in enumerate(NAMES * 5)
    ]
    blocks[44] = (
        '  # aws_db_instance.billing must be replaced\n-/+ resource "aws_db_instance" "billing" {\n      ~ engine_version = "13.4" -> "16.2" # forces replacement\n    }\n'
    )
    return (
        "Terraform will perform the following actions:\n\n"
        + "\n".join(blocks)
        + "\nPlan: 100 to add, 0 to change, 1 to destroy.\n"
    )


def access_log() -> str:
    lines = [
        f'10.0.{number % 9}.{number % 200} - - [12/Mar/2026:10:{number // 60 % 60:02d}:{number % 60:02d} +0000] "GET /{NAMES[number % 20]}/{number} HTTP/1.1" 200 {number * 7}'
        for number in range(600)
    ]
    lines[433] = '203.0.113.77 - - [12/Mar/2026:10:07:13 +0000] "POST /checkout/pay HTTP/1.1" 503 92'
    return "\n".join(lines)


def sql_table() -> str:
    rows = [
        f"| {number:5d} | {NAMES[number % 20]:10s} | {1000 + (number * 7919) % 5000:7d} | 2025-0{number % 9 + 1}-11 |"
        for number in range(300)
    ]
    rows[150] = "|   150 | zephyr     |   98431 | 2025-07-11 |"
    rule = "+-------+------------+---------+------------+"
    return "\n".join([rule, "|    id | customer   | balance | since      |", rule, *rows, rule, "300 rows in set (0.01 sec)"])


def npm_audit() -> str:
    advisories = {
        str(1000 + number): {
            "module_name": f"{name}-lib-{number}",
            "severity": "low",
            "title": "Prototype pollution",
            "patched_versions": f">={number}.0.1",
        }
        for number, name in enumerate(NAMES * 4)
    }
    advisories["1055"] = {
        "module_name": "tar-stream-x",
        "severity": "critical",
        "title": "Arbitrary file overwrite",
        "patched_versions": ">=4.4.18",
    }
    return json.dumps({"auditReportVersion": 1, "advisories": advisories})


def pytest_run() -> str:
    lines = [f"tests/test_{NAMES[number % 20]}.py::test_case_{number} PASSED [ {number // 5:2d}%]" for number in range(450)]
    lines[311] = "tests/test_heath.py::test_refund_is_idempotent FAILED [ 62%]"
    report = "=== FAILURES ===\n___ test_refund_is_idempotent ___\n    def test_refund_is_idempotent():\n>       assert ledger.total == 100\nE       assert 90 == 100\n"
    return "=== test session starts ===\n" + "\n".join(lines) + f"\n{report}=== 1 failed, 449 passed in 3.21s ===\n"


def ci_log() -> str:
    steps = [f"\x1b[32m✓\x1b[0m step {number}: compiled {NAMES[number % 20]}.c" for number in range(400)]
    steps[300:300] = [
        "gcc -c quartz.c -o quartz.o",
        "\x1b[31mquartz.c:41:9: error: unknown type name 'size_tt'\x1b[0m",
        "   41 |         size_tt n;",
        "make: *** [Makefile:12: quartz.o] Error 1",
        'The command "make" exited with 2.',
    ]
    return "\n".join([*steps, *(f"uploading cache part {number}" for number in range(80))])


def wrapped_text() -> str:
    inner = (
        "\n".join(f'{number:04d} {NAMES[number % 20]} says "hello {number}"' for number in range(400))
        + "\nsecret phrase: blue kettle at dawn\n"
    )
    return json.dumps({"isError": False, "result": inner})


def json_in_string() -> str:
    inner = json.dumps(
        {"orders": [{"order_id": f"A-{number}", "customer": NAMES[number % 20], "total": number * 3} for number in range(300)]}
    )
    return json.dumps({"status": 200, "body": inner})


def html_page() -> str:
    rows = "".join(
        f"<tr><td>{2000 + number}</td><td><a href='/{name}'>{name.title()} Cup</a></td><td>{name.title()} United</td><td>{(number * 37) % 91},{number:03d}</td></tr>\n"
        for number, name in enumerate(NAMES)
    )
    filler = "".join(f"<p>Paragraph {number} about the history of the league and its many seasons.</p>" for number in range(120))
    return f"<!DOCTYPE html><html><head><style>td {{color: red}}</style></head><body><h1>League</h1>{filler}<h2>Winners</h2><table><tr><th>Year</th><th>Trophy</th><th>Winner</th><th>Attendance</th></tr>{rows}</table>{filler}</body></html>"


def contract() -> str:
    clauses = [
        f"{number}. The parties agree that schedule {name} shall be read together with this agreement and that nothing in it limits the remedies available."
        for number, name in enumerate(NAMES * 6, 1)
    ]
    clauses[77] = (
        "78. Governing Law. This agreement shall be governed by and construed in accordance with the laws of the Republic of Larchland."
    )
    return "\n\n".join(clauses)


def csv_sales() -> str:
    rows = [
        f"{number},{NAMES[number % 20]},{NAMES[(number * 7) % 20]},{(number * 7919) % 9973},2025-{number % 12 + 1:02d}-01"
        for number in range(500)
    ]
    return "id,region,product,revenue,month\n" + "\n".join(rows)


def df_output() -> str:
    rows = [
        f"/dev/sd{number:<8d}  {number * 3 + 10}G  {number % 40 + 1}G  {number % 70}%  /mnt/{NAMES[number % 20]}{number}"
        for number in range(240)
    ]
    rows[101] = "/dev/nvme7n1   900G  871G  97%  /var/lib/data"
    return "Filesystem     Size  Used  Use%  Mounted on\n" + "\n".join(rows)


def describe_output() -> str:
    blocks = [
        f"Name:         {name}-{number}\nNamespace:    shop\nNode:         node-{number}/10.0.0.{number}\nLabels:       app={name}\nEvents:\n  Type    Reason   Age  Message\n  Normal  Pulled   3m   Image pulled for {name}-{number}\n"
        for number, name in enumerate(NAMES * 4)
    ]
    blocks[37] = blocks[37].replace("Normal  Pulled   3m   Image pulled", 'Warning FailedMount 1m  secret "tls-west" not found')
    return "\n\n".join(blocks)


def syslog() -> str:
    lines = [
        f"Mar  4 11:{number // 60:02d}:{number % 60:02d} gate sshd[{900 + number}]: Accepted publickey for {NAMES[number % 20]} from 10.2.0.{number % 250} port {30000 + number}"
        for number in range(500)
    ]
    lines[321] = "Mar  4 11:05:21 gate sshd[1221]: Failed password for invalid user oracle from 198.51.100.23 port 51514"
    return "\n".join(lines)


def lockfile() -> str:
    return "\n".join(
        f'[[package]]\nname = "{name}-{number}"\nversion = "{number}.{number % 7}.3"\nchecksum = "{random.Random(number).getrandbits(128):032x}"\n'
        for number, name in enumerate(NAMES * 8)
    )


CASES: list[tuple[Callable[[], str], str, str]] = [
    (kubectl_json, "which pod is in CrashLoopBackOff", '"name": "birch-61"'),
    (kubectl_json, "the podIP of quartz-36", "10.1.36.9"),
    (git_diff, "where was max_retries introduced", "retries = max_retries(policy, 7)"),
    (ripgrep, "what is MAX_UPLOAD_BYTES set to", "MAX_UPLOAD_BYTES = 52_428_800"),
    (ripgrep, "the maximum upload bytes", "MAX_UPLOAD_BYTES = 52_428_800"),
    (markdown, "how long are backups kept", "kept for 45 days"),
    (python_source, "what happens when the burst of the rate limiter is exceeded", "raise TooManyRequests(key)"),
    (python_source, "the function handle_fjord", "def handle_fjord(event):"),
    (ls_table, "how large is backup-key.pem and who owns it", "root    wheel    734003"),
    (ndjson_log, "the peer of the upstream reset", "10.9.8.7:443"),
    (ndjson_log, "what happened to request r00377", "upstream reset"),
    (xml, 'on which shelf is "Heath tales 107"', "<shelf>8-heath</shelf>"),
    (yaml, "which port does larch-31 listen on", "- 8031"),
    (java_trace, "why did the posting fail", "account 7741 is frozen"),
    (java_trace, "which rule was violated", "com.shop.RuleViolation: rule R-19"),
    (terraform_plan, "what will be replaced and why", "# forces replacement"),
    (access_log, "requests answered with 503", "POST /checkout/pay HTTP/1.1"),
    (access_log, "what did 203.0.113.77 ask for", "POST /checkout/pay HTTP/1.1"),
    (sql_table, "which customer has the highest balance", "zephyr"),
    (sql_table, "the balance of zephyr", "98431"),
    (npm_audit, "which package has a critical vulnerability", "tar-stream-x"),
    (npm_audit, "patched versions of tar-stream-x", ">=4.4.18"),
    (pytest_run, "which tests failed", "test_refund_is_idempotent FAILED"),
    (pytest_run, "why did the run fail", "assert 90 == 100"),
    (ci_log, "why did the build fail", "quartz.c:41:9: error: unknown type name 'size_tt'"),
    (wrapped_text, "what is the secret phrase", "blue kettle at dawn"),
    (json_in_string, "the total of order A-217", '"order_id": "A-217", "customer": "ridge", "total": 651'),
    (html_page, "who won the Maple Cup", "Maple United"),
    (html_page, "which winner came after Knoll United", "Larch United"),
    (html_page, "which year had the highest attendance", "2017"),
    (contract, "which law governs this agreement", "laws of the Republic of Larchland"),
    (csv_sales, "the highest revenue", ",9970,"),
    (df_output, "which filesystem has the most space used", "/dev/nvme7n1"),
    (csv_sales, "which row comes before id 200", "\n199,"),
    (describe_output, "why was a mount not possible", 'secret "tls-west" not found'),
    (syslog, "failed logins", "invalid user oracle from 198.51.100.23"),
    (lockfile, "the checksum of grove-46", "grove-46"),
]  # fmt: skip


@pytest.mark.parametrize(("output", "question", "answer"), CASES, ids=[f"{case[0].__name__}: {case[1]}" for case in CASES])
def test_the_answer_stands_among_500_tokens(output: Callable[[], str], question: str, answer: str) -> None:
    data = output().encode()
    assert len(data) > 8_000
    selection = select(build(data), question, max_tokens=500)
    assert answer in selection.text
    assert len(selection.text) <= 2_000
