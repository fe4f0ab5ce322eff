"""Fifty small programs as models write them, each in Python and in JavaScript: filter, join, count, page, follow ids.

Both begin with the lines of their kind, and then have one expression whose value is the program's result. `call` represents the
way a host calls a tool. As in real programs, some look up a key with a default: a result without it then looks like no rows.
"""

from __future__ import annotations

from typing import NamedTuple

BEGINNINGS = {
    "filter": (
        'rows = (await call("list_orders")).get("orders", [])',
        'const rows = (await call("list_orders")).orders ?? [];',
    ),
    "join": (
        'orders = (await call("list_orders"))["orders"]\n'
        'customers = {each["id"]: each for each in (await call("list_customers")).get("customers", [])}\n'
        'products = {each["id"]: each for each in (await call("list_products")).get("products", [])}',
        'const orders = (await call("list_orders")).orders;\n'
        'const customers = Object.fromEntries(((await call("list_customers")).customers ?? []).map((each) => [each.id, each]));\n'
        'const products = Object.fromEntries(((await call("list_products")).products ?? []).map((each) => [each.id, each]));',
    ),
    "count": (
        'rows = (await call("list_orders")).get("orders", [])\nlines = (await call("read_log")).split("\\n")',
        'const rows = (await call("list_orders")).orders ?? [];\nconst lines = (await call("read_log")).split("\\n");',
    ),
    "pages": (
        "rows = []\npage = 0\nwhile page is not None:\n"
        '    got = await call("page_orders", page=page)\n    rows.extend(got.get("orders", []))\n    page = got.get("next")',
        "const rows = [];\nlet page = 0;\nwhile (page != null) {\n"
        '  const got = await call("page_orders", {page: page});\n  rows.push(...(got.orders ?? []));\n  page = got.next;\n}',
    ),
    "follow": (
        "nodes = []\nat = START\nwhile at is not None and len(nodes) < 12:\n"
        '    node = await call("get_node", id=at)\n    nodes.append(node)\n    at = node.get("next")',
        "const nodes = [];\nlet at = START;\nwhile (at != null && nodes.length < 12) {\n"
        '  const node = await call("get_node", {id: at});\n  nodes.push(node);\n  at = node.next;\n}',
    ),
}


class Script(NamedTuple):
    kind: str
    number: int
    python: str
    javascript: str

    @property
    def name(self) -> str:
        return f"{self.kind}-{self.number}"

    def lines(self, language: str) -> tuple[str, str]:
        """What comes before the result, and the expression that is the result."""
        begin = BEGINNINGS[self.kind][language == "javascript"]
        return begin.replace("START", str(self.number * 5)), self.javascript if language == "javascript" else self.python


_EXPRESSIONS: dict[str, list[tuple[str, str]]] = {
    "filter": [
        ('[r["id"] for r in rows if r["amount"] > 985]', "rows.filter((r) => r.amount > 985).map((r) => r.id)"),
        (
            '[r["id"] for r in rows if r["state"] == "returned" and r["day"] < 10]',
            'rows.filter((r) => r.state == "returned" && r.day < 10).map((r) => r.id)',
        ),
        ('[r for r in rows if r["id"] in (17, 1717, 2999)]', "rows.filter((r) => [17, 1717, 2999].includes(r.id))"),
        ('[r["day"] for r in rows if r["customer"] == 42]', "rows.filter((r) => r.customer == 42).map((r) => r.day)"),
        ('[r["id"] for r in rows if r["product"] == 299]', "rows.filter((r) => r.product == 299).map((r) => r.id)"),
        ('max([0] + [r["amount"] for r in rows])', "Math.max(0, ...rows.map((r) => r.amount))"),
        ('[r["id"] for r in rows][-5:]', "rows.map((r) => r.id).slice(-5)"),
        ('[r["id"] for r in rows if r["amount"] == 0]', "rows.filter((r) => r.amount == 0).map((r) => r.id)"),
        ('[[r["id"], r["amount"]] for r in rows[2000:2010]]', "rows.slice(2000, 2010).map((r) => [r.id, r.amount])"),
        ('[r["id"] for r in rows if r["day"] == 364]', "rows.filter((r) => r.day == 364).map((r) => r.id)"),
    ],
    "join": [
        (
            'sum([o["amount"] for o in orders if customers[o["customer"]]["city"] == "Cairo"])',
            'orders.filter((o) => customers[o.customer].city == "Cairo").reduce((sum, o) => sum + o.amount, 0)',
        ),
        (
            'sum([products[o["product"]]["price"] for o in orders if o["state"] == "paid"])',
            'orders.filter((o) => o.state == "paid").reduce((sum, o) => sum + products[o.product].price, 0)',
        ),
        (
            'len([0 for o in orders if products[o["product"]]["group"] == "toys" and customers[o["customer"]]["since"] == 2007])',
            'orders.filter((o) => products[o.product].group == "toys" && customers[o.customer].since == 2007).length',
        ),
        (
            '[customers[o["customer"]]["name"] for o in orders if o["amount"] == 999]',
            "orders.filter((o) => o.amount == 999).map((o) => customers[o.customer].name)",
        ),
        (
            '[products[o["product"]]["name"] for o in orders[2990:]]',
            "orders.slice(2990).map((o) => products[o.product].name)",
        ),
        (
            'len([o for o in orders if customers.get(o["customer"], {}).get("city") == "Delhi"])',
            'orders.filter((o) => customers[o.customer]?.city == "Delhi").length',
        ),
        (
            'len([o for o in orders if o["customer"] not in customers])',
            "orders.filter((o) => !(o.customer in customers)).length",
        ),
        (
            'sum([o["amount"] * products.get(o["product"], {}).get("price", 0) for o in orders])',
            "orders.reduce((sum, o) => sum + o.amount * (products[o.product]?.price ?? 0), 0)",
        ),
        (
            'len([o for o in orders if customers[o["customer"]]["since"] < 2005])',
            "orders.filter((o) => customers[o.customer].since < 2005).length",
        ),
        (
            '[[o["id"], customers[o["customer"]]["city"], products[o["product"]]["group"]] for o in orders[1500:1505]]',
            "orders.slice(1500, 1505).map((o) => [o.id, customers[o.customer].city, products[o.product].group])",
        ),
    ],
    "count": [
        ("len(rows)", "rows.length"),
        ('len([r for r in rows if r["state"] == "open"])', 'rows.filter((r) => r.state == "open").length'),
        ("len(lines)", "lines.length"),
        ('len([x for x in lines if "level=ERROR" in x])', 'lines.filter((x) => x.includes("level=ERROR")).length'),
        ('len([x for x in lines if x.endswith("ms=1999")])', 'lines.filter((x) => x.endsWith("ms=1999")).length'),
        ('sum([r["amount"] for r in rows])', "rows.reduce((sum, r) => sum + r.amount, 0)"),
        (
            'len([x for x in lines if "code=500 " in x]) + len(rows)',
            'lines.filter((x) => x.includes("code=500 ")).length + rows.length',
        ),
        ('[x for x in lines if x.startswith("day=364 ")][:3]', 'lines.filter((x) => x.startsWith("day=364 ")).slice(0, 3)'),
        ("lines[-1]", "lines[lines.length - 1]"),
        (
            'len([r for r in rows if r["day"] >= 300 and r["amount"] >= 500])',
            "rows.filter((r) => r.day >= 300 && r.amount >= 500).length",
        ),
    ],
    "pages": [
        ("len(rows)", "rows.length"),
        ('sum([r["amount"] for r in rows])', "rows.reduce((sum, r) => sum + r.amount, 0)"),
        (
            '[r["id"] for r in rows][:3] + [r["id"] for r in rows][-3:]',
            "[...rows.slice(0, 3), ...rows.slice(-3)].map((r) => r.id)",
        ),
        ('[r["id"] for r in rows if r["amount"] == 37]', "rows.filter((r) => r.amount == 37).map((r) => r.id)"),
        ('len([r for r in rows if r["state"] == "shipped"])', 'rows.filter((r) => r.state == "shipped").length'),
        ('[r["amount"] for r in rows if r["id"] % 500 == 499]', "rows.filter((r) => r.id % 500 == 499).map((r) => r.amount)"),
        (
            'max([-1] + [r["day"] for r in rows if r["customer"] == 7])',
            "Math.max(-1, ...rows.filter((r) => r.customer == 7).map((r) => r.day))",
        ),
        ('len([r for r in rows if r["product"] < 3])', "rows.filter((r) => r.product < 3).length"),
        (
            '[r["id"] for r in rows if r["day"] == 100 and r["amount"] < 500]',
            "rows.filter((r) => r.day == 100 && r.amount < 500).map((r) => r.id)",
        ),
        (
            'sum([r["id"] for r in rows if r["state"] != "open"])',
            'rows.filter((r) => r.state != "open").reduce((sum, r) => sum + r.id, 0)',
        ),
    ],
    "follow": [
        ('[n["id"] for n in nodes]', "nodes.map((n) => n.id)"),
        ('sum([n.get("value", 0) for n in nodes])', "nodes.reduce((sum, n) => sum + (n.value ?? 0), 0)"),
        ("len(nodes)", "nodes.length"),
        ('[n["owner"] for n in nodes]', "nodes.map((n) => n.owner)"),
        ('sum([len(n.get("notes", "")) for n in nodes])', 'nodes.reduce((sum, n) => sum + (n.notes ?? "").length, 0)'),
        ('nodes[-1].get("next")', "nodes[nodes.length - 1].next ?? null"),
        (
            '[n.get("value") for n in nodes if n.get("value", 0) > 50]',
            "nodes.filter((n) => (n.value ?? 0) > 50).map((n) => n.value)",
        ),
        ('len([n for n in nodes if n.get("owner") == "Bern"])', 'nodes.filter((n) => n.owner == "Bern").length'),
        ('max([0] + [n.get("value", 0) for n in nodes])', "Math.max(0, ...nodes.map((n) => n.value ?? 0))"),
        ('nodes[0].get("notes", "")[:9] + str(len(nodes))', '(nodes[0].notes ?? "").slice(0, 9) + nodes.length'),
    ],
}

SCRIPTS = [
    Script(kind, number, *both) for kind, expressions in _EXPRESSIONS.items() for number, both in enumerate(expressions, 1)
]
