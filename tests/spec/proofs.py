"""Finds the tests that say `@proves(...)`, by reading their source.

It runs nothing and imports nothing, so it sees the same proofs whichever part of the suite is selected and whichever
worker asks. A claim that pytest would not run is a mistake and no proof: it is reported, never counted.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Proof", "Scan", "scan"]

LAWS = "contextplane.testing.laws"
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NEVER_RUN = frozenset({"skip", "xfail"})
_DATA_DRIVEN = frozenset({"cases", "parametrize"})


@dataclass(frozen=True, slots=True, order=True)
class Proof:
    """One requirement, and the test that proves it."""

    key: str
    test: str


@dataclass(frozen=True, slots=True)
class Scan:
    """All proofs, and all invalid claims, each with its place and reason."""

    proofs: tuple[Proof, ...]
    mistakes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Class:
    """A class of a test module or of the law suites: what it inherits, and what its own methods claim."""

    name: str
    where: str
    bases: tuple[str, ...]
    methods: frozenset[str]
    claims: dict[str, tuple[str, ...]]
    collected: bool


@dataclass(slots=True)
class _Module:
    """The claims of one file. `suite`: it is a law suite, whose classes run only where a test subclasses them."""

    place: str
    suite: bool
    proofs: list[Proof] = field(default_factory=list)
    mistakes: list[str] = field(default_factory=list)
    classes: dict[str, _Class] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    decorators: set[int] = field(default_factory=set)

    @property
    def collected(self) -> bool:
        name = self.place.rpartition("/")[2]
        return self.suite or name.startswith("test_") or name.endswith("_test.py")

    def mistake(self, node: ast.stmt | ast.expr, reason: str) -> None:
        self.mistakes.append(f"{self.place}:{node.lineno}: {reason}")

    def read(self, tree: ast.Module) -> None:
        skipped = _is_marked_never_run(tree)
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                self._class(node, inside="", collected=self.collected, skipped=skipped)
            elif isinstance(node, _Function):
                ids = self._claim(node, skipped=skipped)
                if ids and (not self.collected or self.suite):
                    self.mistake(node, f"{node.name} is not in a test module, and is never run")
                elif ids:
                    self.proofs += [Proof(key, f"{self.place}::{node.name}") for key in ids]
            elif isinstance(node, ast.ImportFrom) and node.module is not None and node.module.startswith(LAWS):
                self.imported.update({alias.asname or alias.name: alias.name for alias in node.names})

    def _class(self, node: ast.ClassDef, *, inside: str, collected: bool, skipped: bool) -> None:
        name = f"{inside}::{node.name}" if inside else node.name
        collected = collected and (self.suite or _is_collected(node))
        skipped = skipped or _is_marked_never_run(node)
        claims: dict[str, tuple[str, ...]] = {}
        for child in node.body:
            if isinstance(child, ast.ClassDef):
                self._class(child, inside=name, collected=collected, skipped=skipped)
            elif isinstance(child, _Function) and (ids := self._claim(child, skipped=skipped)):
                claims[child.name] = ids
                if not collected:
                    self.mistake(child, f"{node.name} is not a class that pytest collects, {child.name} is never run")
                elif not self.suite:
                    self.proofs += [Proof(key, f"{self.place}::{name}::{child.name}") for key in ids]
        for decorator in _proves_calls(node):
            self.decorators.add(id(decorator.func))
            self.mistake(node, f"proves stands on the class {node.name}; it belongs on its tests")
        self.classes[name] = _Class(
            name=name,
            where=f"{self.place}:{node.lineno}",
            bases=tuple(_last_name(base) for base in node.bases),
            methods=frozenset(child.name for child in node.body if isinstance(child, _Function)),
            claims=claims,
            collected=collected and not skipped,
        )

    def _claim(self, node: _Function, *, skipped: bool) -> tuple[str, ...]:
        """Return the ids that a function claims; none when it cannot prove them."""
        calls = _proves_calls(node)
        self.decorators.update(id(call.func) for call in calls)
        if not calls:
            return ()
        ids: list[str] = []
        for call in calls:
            texts = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            if not texts or len(texts) != len(call.args) or not all(map(_is_case, call.keywords)):
                self.mistake(node, "proves takes ids written out, at least one")
            ids += texts
        if not node.name.startswith("test_"):
            self.mistake(node, f"{node.name} is not named test_*, and is never run")
        elif _data_driven_above(node, calls[-1]):
            self.mistake(node, f"proves stands below the cases of {node.name}, and does not see them")
        elif skipped or _is_marked_never_run(node):
            self.mistake(node, f"{node.name} is skipped or expected to fail, and proves nothing")
        elif all(isinstance(line, ast.Pass) or _is_constant(line) for line in node.body):
            self.mistake(node, f"{node.name} is hollow, and proves nothing")
        else:
            return tuple(ids)
        return ()

    def report_strays(self, tree: ast.Module) -> None:
        """Report uses of `proves` under another name, or other than as a decorator of a test."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                if any(alias.name == "proves" and alias.asname not in {None, "proves"} for alias in node.names):
                    self.mistake(node, "proves is imported under another name")
            elif not isinstance(node, ast.Name | ast.Attribute) or id(node) in self.decorators:
                continue
            elif _last_name(node) == "proves":
                self.mistake(node, "proves is the decorator of a test and nothing else")


def scan(root: Path) -> Scan:
    """Find every proof in the tests under `root`, and in the law suites that they subclass."""
    modules = [_read(root, path, suite=False) for path in sorted((root / "tests").rglob("*.py"))]
    laws = root / "src" / Path(*LAWS.split("."))
    paths = [laws.with_suffix(".py")] if laws.with_suffix(".py").exists() else sorted(laws.rglob("*.py"))
    suites: dict[str, _Class] = {}
    mistakes: list[str] = []
    for module in [_read(root, path, suite=True) for path in paths]:
        mistakes += module.mistakes
        for name, suite in module.classes.items():
            if name in suites:
                mistakes.append(f"{suite.where}: a second suite {name}, after {suites[name].where}")
            suites[name] = suite
    proofs = [proof for module in modules for proof in module.proofs]
    mistakes += [mistake for module in modules for mistake in module.mistakes]
    for module in modules:
        for cls in module.classes.values():
            if cls.collected:
                proofs += _inherited(module, cls, suites)
    return Scan(tuple(sorted(set(proofs))), tuple(sorted(mistakes)))


def _read(root: Path, path: Path, *, suite: bool) -> _Module:
    module = _Module(path.relative_to(root).as_posix(), suite)
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text, filename=str(path))
    module.read(tree)
    if "proves" in text:  # most files do not mention it, and every node of them would be looked at
        module.report_strays(tree)
    return module


def _inherited(module: _Module, cls: _Class, suites: dict[str, _Class]) -> Iterator[Proof]:
    """Yield what a test class proves through inherited suites, without the laws it overrides."""

    def walk(name: str, replaced: frozenset[str], *, local: bool) -> Iterator[Proof]:
        nearer = module.classes.get(name) if local else None
        suite = nearer or suites.get(module.imported.get(name, name))
        if suite is None:
            return
        if nearer is None:
            for method, ids in suite.claims.items():
                if method not in replaced:
                    yield from (Proof(key, f"{module.place}::{cls.name}::{method}") for key in ids)
        for base in suite.bases:
            yield from walk(base, replaced | suite.methods, local=nearer is not None)

    for base in cls.bases:
        yield from walk(base, cls.methods, local=True)


def _is_collected(node: ast.ClassDef) -> bool:
    """Whether pytest collects a class: by its name, without a constructor, not with `__test__ = False`."""
    own = {child.name for child in node.body if isinstance(child, _Function)}
    excluded = any(
        isinstance(child, ast.Assign)
        and any(_last_name(target) == "__test__" for target in child.targets)
        and isinstance(child.value, ast.Constant)
        and child.value.value is False
        for child in node.body
    )
    return node.name.startswith("Test") and not excluded and not own & {"__init__", "__new__"}


def _is_marked_never_run(node: ast.Module | ast.ClassDef | _Function) -> bool:
    """Whether a node is marked `skip` or `xfail`, by a decorator or `pytestmark`. `skipif` does not count."""
    marks: list[ast.expr] = [] if isinstance(node, ast.Module) else list(node.decorator_list)
    if not isinstance(node, _Function):
        marks += [
            child.value
            for child in node.body
            if isinstance(child, ast.Assign) and any(_last_name(target) == "pytestmark" for target in child.targets)
        ]
    return any(isinstance(part, ast.Attribute) and part.attr in _NEVER_RUN for part in _walk(marks))


def _walk(nodes: Iterable[ast.expr]) -> Iterator[ast.AST]:
    for node in nodes:
        yield from ast.walk(node)


def _is_constant(line: ast.stmt) -> bool:
    return isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)


def _is_case(keyword: ast.keyword) -> bool:
    return keyword.arg == "case" and isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)


def _proves_calls(node: ast.ClassDef | _Function) -> list[ast.Call]:
    return [d for d in node.decorator_list if isinstance(d, ast.Call) and _last_name(d.func) == "proves"]


def _data_driven_above(node: _Function, call: ast.Call) -> bool:
    """Whether `cases` or `parametrize` stands above a decorator, which then runs before there are any cases."""
    above = node.decorator_list[: node.decorator_list.index(call)]
    return any(isinstance(d, ast.Call) and _last_name(d.func) in _DATA_DRIVEN for d in above)


def _last_name(node: ast.expr) -> str:
    """Return the last name of an expression: `Law` for `Law`, `laws.Law` and `Law[bytes]`."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=value):
            return _last_name(value)
        case _:
            return ""
