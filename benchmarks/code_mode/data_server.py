"""An MCP server with a shop's data, for programs to filter, join, count, page through and follow. Always the same rows."""

import json
import sys

CITIES = ("Athens", "Bern", "Cairo", "Delhi", "Essen", "Fargo", "Genoa", "Hanoi", "Izmir")
STATES = ("open", "paid", "shipped", "returned")
GROUPS = ("tools", "toys", "food", "books", "garden")
ORDERS = [
    {
        "id": n,
        "customer": n * 7 % 400,
        "product": n * 13 % 300,
        "amount": n * 37 % 1000,
        "state": STATES[n * n % 4 + n % 2 * 2 % 4],
        "day": n % 365,
    }
    for n in range(3000)
]
CUSTOMERS = [{"id": n, "name": f"Customer {n}", "city": CITIES[n * 5 % 9], "since": 2000 + n % 25} for n in range(400)]
PRODUCTS = [{"id": n, "name": f"Product {n}", "price": n * 17 % 90 + 10, "group": GROUPS[n % 5]} for n in range(300)]
LOG = "\n".join(
    f"day={n % 365} level={('INFO', 'WARN', 'ERROR')[n * n % 7 % 3]} code={n * 11 % 600} ms={n * 31 % 2000}" for n in range(4000)
)
PAGE, NODES = 500, 60
TABLES = {"orders": ORDERS, "customers": CUSTOMERS, "products": PRODUCTS}
NOTE = "Notes of a ticket, as people write them. "


def make_node(id: int) -> dict:
    following = id * 7 + 3
    after = following % NODES if following % NODES not in (0, id) and id % 11 != 10 else None
    return {"id": id, "next": after, "value": id * 19 % 100, "owner": CITIES[id % 9], "notes": NOTE * 400}


def list_schema(name: str) -> dict:
    rows = {"type": "array", "items": {"type": "object"}}
    return {"type": "object", "properties": {name: rows}, "required": [name]}


def define(name: str, schema: dict | None = None, **arguments: str) -> dict:
    given = {"type": "object", "properties": {key: {"type": kind} for key, kind in arguments.items()}, "required": [*arguments]}
    return {
        "name": name,
        "description": f"Data of a shop: {name}.",
        "inputSchema": given,
        **({"outputSchema": schema} if schema else {}),
    }


PAGED = list_schema("orders")
PAGED["properties"]["next"] = {"type": ["integer", "null"]}
TOOLS = [
    *(define(f"list_{name}", list_schema(name)) for name in TABLES),
    define("page_orders", PAGED, page="integer"),
    define("get_node", {"type": "object"}, id="integer"),
    define("read_log"),
]


def call(name: str, arguments: dict) -> dict:
    if name == "read_log":
        return {"content": [{"type": "text", "text": LOG}]}
    if name == "page_orders":
        start = int(arguments["page"]) * PAGE
        after = int(arguments["page"]) + 1 if start + PAGE < len(ORDERS) else None
        value: dict = {"orders": ORDERS[start : start + PAGE], "next": after}
    elif name == "get_node":
        value = make_node(int(arguments["id"]))
    else:
        table = name.removeprefix("list_")
        value = {table: TABLES[table]}
    return {"content": [{"type": "text", "text": json.dumps(value)}], "structuredContent": value}


def answer(method: str, params: dict) -> dict:
    match method:
        case "initialize":
            info = {"name": "shop", "version": "1"}
            version = params.get("protocolVersion", "2025-11-25")
            return {"result": {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": info}}
        case "ping":
            return {"result": {}}
        case "tools/list":
            return {"result": {"tools": TOOLS}}
        case "tools/call":
            return {"result": call(params["name"], params.get("arguments") or {})}
        case _:
            return {"error": {"code": -32601, "message": "Method not found"}}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        said = {"jsonrpc": "2.0", "id": message["id"], **answer(message["method"], message.get("params") or {})}
        sys.stdout.write(json.dumps(said) + "\n")
        sys.stdout.flush()
