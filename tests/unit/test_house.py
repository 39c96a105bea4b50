"""The order of the house: sizes, frozen values, a sign on every door, and nothing lying about that is not ours."""

import ast
import dataclasses
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec
import pytest

from docs.generate import import_everything
from tests.house import PACKAGE, RULES, SOURCES, Module, modules, violations
from tests.house_exceptions import EXCEPTIONS
from tests.support.cases import cases

T = TypeVar("T")
ROOT = Path(__file__).resolve().parents[2]
ROOMS = [
    *("model", "ports", "policy", "authoring", "trust", "registry", "knowledge", "memory", "compiler", "gateway"),
    *(
        "record",
        "store",
        "handoff",
        "runtime",
        "audit",
        "evaluation",
        "adapters",
        "app",
        "cli",
        "http",
        "mcp",
        "testing",
    ),
]
EMPTY = "Nothing lives here yet."

# Values that change after they were made, by qualified name, and why they must.
MUTABLE: dict[str, str] = {}


@cases("rule", RULES)
def test_the_house_keeps_its_rules(rule: str) -> None:
    assert [str(violation) for violation in violations(rule) if violation.key not in EXCEPTIONS[rule]] == []


@cases("rule", RULES)
def test_every_exception_from_a_rule_is_needed_and_has_a_reason(rule: str) -> None:
    assert EXCEPTIONS[rule].keys() <= {violation.key for violation in violations(rule)}
    assert all(reason.strip() for reason in EXCEPTIONS[rule].values())


def test_every_value_is_frozen() -> None:
    import_everything()
    structs = [cls for cls in below(msgspec.Struct) if not cls.__struct_config__.frozen]
    classes = [cls for cls in below(object) if dataclasses.is_dataclass(cls) and "__dataclass_params__" in vars(cls)]
    plain = [cls for cls in classes if not vars(cls)["__dataclass_params__"].frozen]
    mutable = {f"{cls.__module__}.{cls.__qualname__}" for cls in (*structs, *plain) if is_ours(cls)}
    assert mutable == MUTABLE.keys()


def below(cls: type[T]) -> set[type[T]]:
    """Every class that descends from it, itself excepted."""
    children: list[type[T]] = type.__subclasses__(cls)
    return set(children).union(*(below(child) for child in children))


def is_ours(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == "contextplane"


def test_there_are_these_rooms_and_no_others() -> None:
    assert sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py")) == sorted(ROOMS)


@cases("room", ROOMS)
def test_a_room_says_what_it_is_and_that_it_is_empty_when_it_is(room: str) -> None:
    sign = " ".join(docstring(PACKAGE / room / "__init__.py").split())
    assert len(sign) >= 120
    others = [path for path in (PACKAGE / room).rglob("*.py") if path.name != "__init__.py"]
    assert (EMPTY in sign) == (not others), "the sign and the room do not agree"


@cases("module", modules(), ids=lambda module: module.path.relative_to(SOURCES).as_posix())
def test_a_module_says_what_it_is_and_imports_no_test(module: Module) -> None:
    assert (ast.get_docstring(module.tree) or "").strip()
    assert not {
        name for name in imported(module.tree) if name.partition(".")[0] in {"tests", "docs", "scripts", "bench"}
    }


def docstring(path: Path) -> str:
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


# Written in pieces, so that this file does not accuse itself.
FOREIGN = {
    "a package index": rf"{'py'}pi\.org|{'python'}hosted|(?<![\w-])--(?:extra-)?{'index'}-url|{'PIP_'}(?:EXTRA_)?INDEX",
    "a folder of packages": rf"(?<![\w-])--{'find'}-links|{'PIP_'}FIND_LINKS|file:///{'opt'}",
    "a home folder": rf"(?<![\w.])/(?:{'home'}|{'Users'})/[a-z]|(?<![\w.])/{'root'}/|(?<![\w.])/{'work'}/",
    "a folder outside": rf"\.\./{'shared'}|\b{'shared'}/(?:DESIGN|STYLE)",
    "a trace of how it was written": rf"(?i){'co-'}authored-by|{'generated'} (?:with|by) (?:an? )?(?:ai|llm)\b",
    "a conflict": rf"(?m)^(?:{'<' * 7}|{'>' * 7}) ",
    "a private key": rf"{'-' * 5}BEGIN [A-Z ]*{'PRIVATE'} KEY",
}


def tracked() -> list[Path]:
    """What is in the repository or about to be: the files that git knows, and new ones it is not told to ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git repository")
    return [ROOT / name for name in listed.split("\0") if (ROOT / name).is_file()]


def test_no_file_names_a_place_or_a_thing_that_is_not_part_of_the_product() -> None:
    matches = []
    for path in tracked():
        text = path.read_bytes().decode(errors="replace")
        for what, pattern in FOREIGN.items():
            matches += [f"{path.relative_to(ROOT)}: {what}: {match[0]!r}" for match in re.finditer(pattern, text)]
    assert matches == []


@cases(
    ("text", "what"),
    [
        ("--index" + "-url https://example.org", "a package index"),
        ("https://py" + "pi.org/simple", "a package index"),
        ("see /home" + "/somebody/project", "a home folder"),
        ("Co-" + "Authored-By: somebody", "a trace of how it was written"),
    ],
)
def test_the_search_finds_what_it_looks_for(text: str, what: str) -> None:
    assert [name for name, pattern in FOREIGN.items() if re.search(pattern, text)] == [what]


@cases("text", ["--no-emit-index-url", "docs/home/page.md", "the roots of a tree", "work/list"])
def test_the_search_leaves_the_rest_alone(text: str) -> None:
    assert not [name for name, pattern in FOREIGN.items() if re.search(pattern, text)]


@pytest.mark.parametrize("name", ["run", "dev", "build"])
def test_a_package_has_one_version_in_all_locks(name: str) -> None:
    assert pinned(name) <= pinned("all")


@cases("name", ["run", "dev", "build", "all"])
def test_a_lock_pins_by_hash_for_more_than_one_platform(name: str) -> None:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    packages = re.split(r"(?m)^(?=[a-z])", text)[1:]
    assert packages
    assert [package.splitlines()[0] for package in packages if package.count("--hash=sha256:") < 1] == []
    compiled = [package for package in packages if package.startswith(("msgspec==", "ruff==", "tomlkit=="))]
    assert all(package.count("--hash=sha256:") > 1 for package in compiled)


def pinned(name: str) -> set[str]:
    text = (ROOT / "requirements" / f"{name}.txt").read_text(encoding="utf-8")
    return set(re.findall(r"(?m)^[a-z][\w.-]*==[^ ;]+", text))
