"""The shape of the code: which way imports point, what importing costs, how long files and functions get."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src"

# Lowest first. A room imports only from rooms of its own row or above it. `overspill` is the public door, `__init__.py`.
LAYERS: list[set[str]] = [
    {"types", "errors", "figures", "framing", "ids", "jsonc", "names", "text", "tokens", "notation", "patterns", "schema"},
    {"truncate", "settings", "measure", "wording", "store", "events", "counters", "budget", "ledger"},
    {"decide", "owner", "clock", "job", "jobs", "view", "spool"},
    {"read", "query", "collect", "perform"},
    {"refs"},
    {"engine", "models", "loop"},
    {"answers", "gate", "extraction"},
    {"stored", "toolrun", "calls", "tools", "pages", "extractor", "abstracts", "retrieval", "archive", "optree", "family"},
    {"opened"},
    {"session"},
    {"sync", "oneshot", "testing", "mcp_client", "overspill"},
    {"proxy", "clients", "doctor", "agent", "hosts", "viewer"},
    {"cli"},
]
HEIGHT = {room: height for height, rooms in enumerate(LAYERS) for room in rooms}

# Packages that only these rooms know, so that the core runs without them.
CONFINED: dict[str, set[str]] = {
    "click": {"cli"},
    "mcp": {"mcp_client", "proxy", "agent", "hosts"},
    "mcp_types": {"mcp_client", "proxy", "agent", "hosts"},
    "pydantic": {"models", "mcp_client", "proxy", "agent", "hosts"},
    "pydantic_ai": {"models", "agent", "hosts"},
    "rich": {"cli"},
    "re2": {"patterns"},
    "starlette": {"proxy", "viewer"},
}

# Rooms that may import inside a function, and why.
LATE_IMPORTS = {
    "agent": "functions are named in the settings, and MCP is there only for agents that use it",
    "cli": "a command imports what it runs, so that the others start fast",
    "models": "client libraries take seconds to import, and most sessions ask no model",
    "overspill": "the door loads a name when it is first used, so that importing the package costs next to nothing",
    "schema": "a process of its own imports the library that checks, after it was told where packages are",
    "owner": "trio is there only when the program runs on it",
}

MAX_FILE_LINES = 350
MAX_FUNCTION_LINES = 60


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(file): file for file in sorted(SRC.rglob("*.py"))}
TREES = {module: ast.parse(file.read_text("utf-8"), str(file)) for module, file in MODULES.items()}


def room(module: str) -> str:
    """`overspill.store.base` is in the room `store`; the door is its own room."""
    return module.split(".")[1] if "." in module else module


def imported_by(tree: ast.AST) -> Iterator[str]:
    """Dotted names, also under TYPE_CHECKING and inside functions; `from a import b` is a.b where that is a module of ours."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"line {node.lineno}: import by the full name"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from {name if name in MODULES else str(node.module) for name in names}


GRAPH = {module: {name for name in imported_by(tree) if name in MODULES} for module, tree in TREES.items()}


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def imports_late(function: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__")))
        for node in ast.walk(function)
    )


def modules_loaded_by(code: str) -> set[str]:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return set(run.stderr.split())


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_a_place_in_the_layers(module: str):
    assert room(module) in HEIGHT


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str):
    assert {name for name in GRAPH[module] if HEIGHT[room(name)] > HEIGHT[room(module)]} == set()


def test_no_modules_import_each_other_in_a_circle():
    TopologicalSorter(GRAPH).prepare()


def test_no_rooms_import_each_other_in_a_circle():
    rooms: dict[str, set[str]] = {}
    for module, names in GRAPH.items():
        rooms.setdefault(room(module), set()).update({room(name) for name in names} - {room(module)})
    TopologicalSorter(rooms).prepare()


@pytest.mark.parametrize("module", MODULES)
def test_frameworks_stay_in_their_rooms(module: str):
    foreign = {name.split(".")[0] for name in imported_by(TREES[module])}
    assert {package for package, rooms in CONFINED.items() if package in foreign and room(module) not in rooms} == set()


@pytest.mark.parametrize("module", [module for module in MODULES if room(module) not in LATE_IMPORTS])
def test_imports_stand_at_the_top(module: str):
    assert [function.name for function in functions(TREES[module]) if imports_late(function)] == []


@pytest.mark.parametrize("module", MODULES)
def test_files_and_functions_are_short(module: str):
    assert len(MODULES[module].read_text("utf-8").splitlines()) <= MAX_FILE_LINES
    lengths = [(function.name, function.end_lineno - function.lineno + 1) for function in functions(TREES[module])]
    assert [(name, length) for name, length in lengths if length > MAX_FUNCTION_LINES] == []


def test_only_commands_know_the_environment():
    readers = {
        module
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and ast.unparse(node) in ("os.environ", "os.getenv")
    }
    assert {room(module) for module in readers} == {"cli"}


def test_only_a_sessions_owner_starts_tasks_outside_a_group():
    starters = {
        module
        for module, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in ("create_task", "ensure_future", "spawn_system_task")
    }
    assert starters == {"overspill.owner"}


def test_importing_overspill_loads_no_framework():
    loaded = modules_loaded_by("import sys, overspill; print(*sys.modules, file=sys.stderr)")
    assert loaded & {"mcp", "pydantic", "pydantic_ai", "rich", "yaml", "click"} == set()


@pytest.mark.parametrize(("command", "needed"), [([], set[str]()), (["proxy"], {"yaml"})])
def test_asking_for_help_loads_nothing_heavy(command: list[str], needed: set[str]):
    loaded = modules_loaded_by(
        "import atexit, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"sys.argv = {['overspill', *command, '--help']}\n"
        "from overspill.cli import main; main()"
    )
    assert "overspill.cli" in loaded
    assert loaded & {"rich", "yaml", "mcp", "pydantic", "splintr", "re2"} == needed
