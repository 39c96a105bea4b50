"""The order of the house: sizes, and five rules for names. Each rule lists what breaks it.

`python -m tests.house [PATH ...]` lists the violations below these paths, `--figures` the figures of the whole house.
`tests/unit/test_house.py` refuses every violation that has no reasoned exception in `tests/house_exceptions.py`.
"""

import ast
import re
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import TypeAlias

from tests.house_exceptions import EXCEPTIONS

__all__ = ["PACKAGE", "ROOT", "RULES", "SOURCES", "Module", "Violation", "figures", "modules", "violations"]

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "src"
PACKAGE = SOURCES / "contextplane"
LIMITS = {"module": 500, "package": 40, "class": 200, "function": 60}
SMALL_MODULE = 60
DOCSTRING_WIDTH = 100

NO_NAMES = frozenset({"one", "told", "said", "found", "given", "wanted"})
_MAY_BIND = re.compile(rf"\b(?:{'|'.join(sorted(NO_NAMES))})\b\s*(?:[^\w\s.(]|in\b|if\b)")
NO_PERSONS = re.compile(r"\b(?:who|what|which)ever\b|\b(?:no|some|any)body\b", re.IGNORECASE)
_IRREGULAR = (
    "begun bound bought broken brought built caught chosen come done drawn fallen felt forgotten found "
    "frozen given gone grown held hidden kept known laid left lost made meant met paid said seen sent "
    "shown sold sought spoken stood struck stuck taken taught thought thrown told understood won worn "
    "written"
)
_NOT_PARTICIPLES = frozenset({"bleed", "embed", "exceed", "feed", "need", "proceed", "red", "seed", "shed", "speed"})
_PREPOSITIONS = frozenset(
    {
        *("again", "against", "anew", "as", "at", "away", "back", "before", "by", "down", "for", "from", "in", "into"),
        *("of", "off", "on", "out", "over", "to", "together", "under", "up", "with", "within", "without"),
    }
)
_BLOCKS = ("body", "orelse", "handlers", "finalbody", "cases")
"""The fields of a node that hold statements; an expression defines nothing that has a name."""
_ADVERBS = re.compile(r"(?:^|_)(?:\w+ly)$")


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that breaks a rule. `key` names it in `tests/house_exceptions.py`."""

    key: str
    words: str
    place: str

    def __str__(self) -> str:
        return f"{self.place}: {self.words} [{self.key}]"


@dataclass(frozen=True)
class Module:
    """A file of the package, or of the tests."""

    path: Path
    root: Path
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text, filename=str(self.path))

    @property
    def name(self) -> str:
        """The dotted name, without `contextplane`."""
        return ".".join(self.path.relative_to(self.root).with_suffix("").parts)

    @property
    def lines(self) -> int:
        return len(self.text.splitlines())

    def place(self, node: ast.AST | None = None) -> str:
        root = ROOT if self.path.is_relative_to(ROOT) else self.root
        return f"{self.path.relative_to(root).as_posix()}:{getattr(node, 'lineno', 1)}"


Modules: TypeAlias = tuple[Module, ...]


@cache
def modules(folder: Path = PACKAGE) -> Modules:
    """Read every Python file below a folder."""
    root = ROOT if folder.is_relative_to(ROOT) and folder != PACKAGE else folder
    return tuple(Module(path, root, path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py")))


@cache
def violations(rule: str) -> tuple[Violation, ...]:
    """List what breaks a rule, exceptions included."""
    return tuple(RULES[rule](modules()))


def oversized(house: Modules) -> Iterator[Violation]:
    """A module has at most 500 lines, an `__init__` 40, a class 200, a function 60."""
    for module in house:
        kind = "package" if module.path.name == "__init__.py" else "module"
        if module.lines > LIMITS[kind]:
            yield Violation(module.name, f"{kind} of {module.lines} lines, the limit is {LIMITS[kind]}", module.place())
        for name, node in definitions(module.tree):
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            # Decorators do not count: a table of test cases above a function does not make it longer.
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > LIMITS[kind]:
                words = f"{kind} of {lines} lines, the limit is {LIMITS[kind]}"
                yield Violation(f"{module.name}::{name}", words, module.place(node))


def undersized(house: Modules) -> Iterator[Violation]:
    """A module under 60 lines that one other module of its own room imports belongs into that one. Verbs are exempt."""
    importers = _importers(house)
    for module in house:
        if module.path.name == "__init__.py" or module.lines >= SMALL_MODULE or module.name.startswith("cli.verbs."):
            continue
        users = importers[module.name]
        if len(users) == 1 and next(iter(users)).partition(".")[0] == module.name.partition(".")[0]:
            yield Violation(module.name, f"{module.lines} lines, imported by {next(iter(users))} only", module.place())


def module_names(house: Modules) -> Iterator[Violation]:
    """A module is the noun that it implements: no -ing, no participle, no adverb."""
    for module in house:
        stem = module.path.stem.strip("_")
        if stem.endswith("ing") or is_participle(stem) or _ADVERBS.search(stem):
            yield Violation(module.name, "not a noun", module.place())


def function_names(house: Modules) -> Iterator[Violation]:
    """A function that acts is an imperative verb, one that returns a thing is the noun; never a bare participle."""
    for module in house:
        for name, node in definitions(module.tree):
            if isinstance(node, ast.ClassDef) or _is_property(node):
                continue
            words = node.name.strip("_").split("_")
            bare = len(words) == 1 or (len(words) == 2 and words[1] in _PREPOSITIONS)
            if bare and (is_participle(words[0]) or _is_gerund(words[0])):
                yield Violation(f"{module.name}::{name}", "a bare participle", module.place(node))


def class_names(house: Modules) -> Iterator[Violation]:
    """A public class name exists once in the package."""
    places: dict[str, list[str]] = defaultdict(list)
    for module in house:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(module.place(node))
    for name, where in places.items():
        if len(where) > 1:
            yield Violation(name, f"{len(where)} classes of this name: {', '.join(where)}", where[0])


def variable_names(house: Modules) -> Iterator[Violation]:
    """A variable is the noun of what it holds."""
    for module in (*house, *modules(ROOT / "tests"), *modules(ROOT / "bench")):
        if not _MAY_BIND.search(module.text):  # spares parsing most of the tests
            continue
        for node in ast.walk(module.tree):
            name = _bound_name(node)
            if name in NO_NAMES:
                yield Violation(f"{module.name}::{name}", f"a variable called {name}", module.place(node))


def docstrings(house: Modules) -> Iterator[Violation]:
    """A docstring's first line fits into 100 characters; no whoever, nobody, somebody."""
    for module in house:
        for name, node in (("", module.tree), *definitions(module.tree)):
            text = ast.get_docstring(node) or ""
            first = text.split("\n", 1)[0]
            if len(first) > DOCSTRING_WIDTH:
                words = f"the first line of its docstring has {len(first)} characters"
                yield Violation(f"{module.name}::{name}", words, module.place(node))
            if person := NO_PERSONS.search(text):
                yield Violation(f"{module.name}::{name}", f"its docstring says {person[0]!r}", module.place(node))


RULES: dict[str, Callable[[Modules], Iterator[Violation]]] = {
    "oversized": oversized,
    "undersized": undersized,
    "module_names": module_names,
    "function_names": function_names,
    "class_names": class_names,
    "variable_names": variable_names,
    "docstrings": docstrings,
}


def is_participle(word: str) -> bool:
    return (word.endswith("ed") and word not in _NOT_PARTICIPLES) or word in _IRREGULAR.split()


def definitions(
    parent: ast.AST, inside: str = ""
) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    """Yield every function and class below a node, with its qualified name."""
    for block in _BLOCKS:
        for node in getattr(parent, block, ()):
            name = inside
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{inside}.{node.name}" if inside else node.name
                yield name, node
            yield from definitions(node, name)


def _is_gerund(word: str) -> bool:
    return word.endswith("ing") and word not in {"string", "thing", "ring", "king", "ping", "warning", "finding"}


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    names = {getattr(decorator, "id", getattr(decorator, "attr", "")) for decorator in node.decorator_list}
    return bool(names & {"property", "cached_property", "lazy_property", "setter"})


def _bound_name(node: ast.AST) -> str:
    match node:
        case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
            return name
        case ast.MatchAs(name=str(name)) | ast.ExceptHandler(name=str(name)):
            return name
        case _:
            return ""


def _importers(house: Modules) -> dict[str, set[str]]:
    """Map each module of the package to the modules that import from it, wherever in their text."""
    names = {module.name for module in house}
    importers: dict[str, set[str]] = defaultdict(set)
    for module in house:
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("contextplane"):
                source = node.module.partition(".")[2]
                targets = {f"{source}.{alias.name}".lstrip(".") for alias in node.names} & names or {source} & names
                for target in targets:
                    importers[target].add(module.name)
    return importers


def figures() -> dict[str, str]:
    """Measure the house: the figures that the README of bench does not have."""
    lengths = [module.lines for module in modules() if module.path.name != "__init__.py"]
    functions = [
        node for module in modules() for _, node in definitions(module.tree) if not isinstance(node, ast.ClassDef)
    ]
    imports = sum(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
    )
    importers = _importers(modules())
    return {
        "modules": str(len(lengths)),
        "median lines of a module": f"{statistics.median(lengths):.0f}",
        "longest module": str(max(lengths)),
        "lines": str(sum(lengths)),
        "modules that only one other imports": str(sum(len(users) == 1 for users in importers.values())),
        "of these under 60 lines in the same room": str(len(violations("undersized"))),
        "import lines, part of all": f"{100 * imports / sum(lengths):.1f} %",
        "functions named by a bare participle": f"{100 * len(violations('function_names')) / len(functions):.1f} %",
        "modules that are no noun": str(len(violations("module_names"))),
        "variables called one, told, said, found, given, wanted": str(len(violations("variable_names"))),
        "public class names with more than one meaning": str(len(violations("class_names"))),
        "docstrings that break the rule": str(len(violations("docstrings"))),
    }


def main(arguments: list[str]) -> None:
    if "--figures" in arguments:
        sys.stdout.write("".join(f"{words:<60}{figure:>10}\n" for words, figure in figures().items()))
        return
    for rule in RULES:
        listed = [each for each in violations(rule) if each.key not in EXCEPTIONS[rule]]
        shown = [each for each in listed if not arguments or each.place.startswith(tuple(arguments))]
        sys.stdout.write("".join(f"{rule}: {each}\n" for each in shown))


if __name__ == "__main__":
    main(sys.argv[1:])
