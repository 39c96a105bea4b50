"""Collects what `ctx explain` says: every error, law, gate and reason, with the ways out that the source names.

The ways out are the `hint=` of each raised error and the `cure=` of each violation, read from the syntax tree of the
package. A part of them that is known only when the error happens is written as `...`.
"""

import ast
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any, get_args

import msgspec

from contextplane.app.explain import ErrorEntry, Explanations, LawEntry, ReasonEntry
from contextplane.authoring.artifacts import LAWS_OF
from contextplane.authoring.law import Gate, Law
from contextplane.compiler.reasons import REASONS
from contextplane.errors import ContextPlaneError

__all__ = ["explanations_file"]

MOST_WAYS_OUT = 8
"""A code with more of them is used for too many cases: a list of all would help in none."""


def explanations_file(classes: list[type[ContextPlaneError]]) -> str:
    """Render the data of `ctx explain` as JSON: errors by code, laws in the order of their gates."""
    hints = hints_by_class({cls.__name__ for cls in classes})
    errors = {
        cls.code: ErrorEntry(family=cls.family, means=one_line(cls.__doc__), to_do=hints.get(cls.__name__, ()))
        for cls in classes
    }
    laws = {
        law.code: LawEntry(gate=law.gate, severity=law.severity, law=one_line(law.text), to_do=cures(law))
        for laws_of_kind in LAWS_OF.values()
        for law in laws_of_kind
    }
    reasons = {
        code: ReasonEntry(kinds=reason.kinds, means=reason.means, to_do=(reason.to_do,))
        for code, reason in REASONS.items()
    }
    entries = Explanations(gates=get_args(Gate), laws=laws, errors=errors, reasons=reasons)
    return msgspec.json.format(msgspec.json.encode(entries), indent=2).decode() + "\n"


def one_line(docstring: str | None) -> str:
    return " ".join((docstring or "").split())


def hints_by_class(names: set[str]) -> dict[str, tuple[str, ...]]:
    """Map each error class to the hints with which the package raises it."""
    hints: dict[str, list[str]] = {}
    modules = [module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] == "contextplane"]
    for module in modules:
        for call in calls(syntax_tree(module)):
            name = ast.unparse(call.func).rpartition(".")[2]
            if name in names:
                hints.setdefault(name, []).extend(literal_arguments(call, "hint", module))
    return {name: ways_out(texts) for name, texts in hints.items()}


def cures(law: Law[Any]) -> tuple[str, ...]:
    """Return the cures that the check of a law names itself, not those of functions that it calls."""
    module, name = sys.modules[law.check.__module__], getattr(law.check, "__name__", "")
    functions = [node for node in syntax_tree(module).body if isinstance(node, ast.FunctionDef) and node.name == name]
    inner_calls = (call for function in functions for call in calls(function))
    return ways_out([cure for call in inner_calls for cure in literal_arguments(call, "cure", module)])


def ways_out(texts: list[str]) -> tuple[str, ...]:
    """Return the texts without repetition; none if there are too many."""
    different = tuple(sorted(set(texts)))
    return different if len(different) <= MOST_WAYS_OUT else ()


@cache
def syntax_tree(module: ModuleType) -> ast.Module:
    return ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))


def calls(tree: ast.AST) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call))


def literal_arguments(call: ast.Call, name: str, module: ModuleType) -> Iterator[str]:
    """Yield the keyword argument of this name, if it is a text that the source spells out."""
    for keyword in call.keywords:
        text = literal(keyword.value, module) if keyword.arg == name else None
        # What begins with an unknown part may be anything: the reader of it cannot tell what is left out.
        if text and not text.startswith("..."):
            yield text


def literal(node: ast.expr, module: ModuleType) -> str | None:
    """Return the text of a literal, of a constant of the module, or of a format string of both."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        value = getattr(module, node.id, None)
        return str(value) if isinstance(value, str | int) else None
    if isinstance(node, ast.JoinedStr):
        values = (part.value if isinstance(part, ast.FormattedValue) else part for part in node.values)
        return "".join(literal(value, module) or "..." for value in values)
    return None
