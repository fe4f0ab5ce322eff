"""How the engine is built: weights in one place, each with its reason, and what differs by kind only in the kinds."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path

from overspill import lexical
from overspill.lexical.kinds import KINDS
from overspill.lexical.weights import Weights

FOLDER = Path(lexical.__file__).parent


def test_every_weight_has_its_reason() -> None:
    module = ast.parse((FOLDER / "weights.py").read_text("utf-8"))
    body = next(node.body for node in module.body if isinstance(node, ast.ClassDef))
    reasons = {
        field.target.id
        for field, following in pairwise(body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and isinstance(following, ast.Expr)
    }
    assert reasons == set(Weights.__struct_fields__)


def test_every_weight_is_used() -> None:
    used = {
        node.attr
        for path in FOLDER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "WEIGHTS"
    }
    assert used == set(Weights.__struct_fields__)


def test_only_the_kinds_know_their_names() -> None:
    """Everything else asks for their traits, so that a new kind takes one module."""
    names = {kind.name for kind in KINDS}
    asking = {
        path.name
        for path in FOLDER.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Compare) and "kind" in ast.unparse(node.left)
        for value in ast.walk(node)
        if isinstance(value, ast.Constant) and value.value in names
    }
    assert not asking
