"""Writes the pages of docs/ that are made from the code: `make docs`.

`--check` writes nothing, and fails when a page is not what the code says. A page is an entry in PAGES: its path, and
the function that renders it. Pages written by hand are not touched.
"""

import importlib
import inspect
import json
import pkgutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple, get_args

import msgspec

import contextplane
from contextplane.authoring.artifacts import LAWS_OF
from contextplane.authoring.gates.table import EVERY_LAW, GATES
from contextplane.cli.help import DEFAULT_WIDTH, top_help, verb_help
from contextplane.cli.table import VERBS
from contextplane.errors import ContextPlaneError, Family
from contextplane.policy.redaction.rules import RULES
from docs.concepts_picture import draw_concepts
from docs.explanations import explanations_file
from docs.schemas import PUBLISHED, PublishedSchema

DOCS = Path(__file__).resolve().parent
FAMILIES: tuple[str, ...] = get_args(Family)


class Page(NamedTuple):
    """A page below docs/, and the function that renders it."""

    path: str
    render: Callable[[], str]


def import_everything() -> None:
    """Import each module of the package, so that every class exists."""
    for module in pkgutil.walk_packages(contextplane.__path__, prefix="contextplane."):
        if not module.name.endswith(".__main__"):
            importlib.import_module(module.name)


def error_classes() -> list[type[ContextPlaneError]]:
    """List every error of the package, sorted by code, without the classes that tests derive."""
    import_everything()

    def below(cls: type[ContextPlaneError]) -> Iterator[type[ContextPlaneError]]:
        for child in cls.__subclasses__():
            yield child
            yield from below(child)

    classes = {cls for cls in below(ContextPlaneError) if cls.__module__.partition(".")[0] == "contextplane"}
    return sorted(classes, key=lambda cls: (cls.code, cls.__module__, cls.__qualname__))


def errors_page() -> str:
    """Render a section for each family and each code: its meaning, and its class."""
    classes = error_classes()
    lines = [
        "# Errors",
        "",
        "<!-- Made by `make docs` from the docstrings of the error classes. Edit those. -->",
        "",
        "Every error has a `code`, which never changes its meaning; a `message` for people, which may; `at`, the",
        "place; `hint`, the way out; and `details` for machines. The family decides the exit status.",
        "`ctx explain CODE` prints what an error means and what to do.",
        "",
        "| code | family |",
        "|---|---|",
        *(f"| [`{cls.code}`](#{cls.code}) | {cls.family} |" for cls in classes),
    ]
    for family in FAMILIES:
        members = [cls for cls in classes if cls.family == family]
        if members:
            lines += ["", f"## Family: {family}"]
        for cls in members:
            lines += ["", f"### {cls.code}", "", inspect.cleandoc(cls.__doc__ or ""), ""]
            lines += [f"`{cls.__module__}.{cls.__qualname__}`"]
    return "\n".join(lines) + "\n"


def command_page() -> str:
    """Render `ctx --help` and the help of every verb."""
    lines = [
        "# The command",
        "",
        "<!-- Made by `make docs` from the verbs themselves. Edit those. -->",
        "",
        "```",
        top_help(VERBS).rstrip(),
        "```",
    ]
    for verb in VERBS:
        lines += ["", f"## ctx {verb.name}", "", "```", verb_help(verb, DEFAULT_WIDTH).rstrip(), "```"]
    return "\n".join(lines) + "\n"


def schema_page(published: PublishedSchema) -> str:
    """Render the JSON Schema of a document, for editors and other programs."""
    text = msgspec.json.encode(published.render(), order="deterministic")
    return msgspec.json.format(text, indent=2).decode() + "\n"


def laws_page() -> str:
    """Render every law of every gate, then of catalogs and overlays: code, severity and text."""
    lines = [
        "# The laws of a context pack",
        "",
        "<!-- Made by `make docs` from the docstrings of the laws. Edit those. -->",
        "",
        "What `ctx lint` holds a pack to, by gate, in the order in which the gates judge. A broken law of severity",
        "`error` refuses the pack, a `warning` does not. Any law may also say that it cannot be told here, which is",
        "no pass. `ctx explain CODE` prints one of them. What packs are: [context packs](context-packs.md).",
    ]
    for gate in GATES:
        lines += ["", f"## Gate: {gate}", "", "| code | severity | law |", "|---|---|---|"]
        lines += [
            f"| `{law.code}` | {law.severity} | {' '.join(law.text.split())} |" for law in EVERY_LAW if law.gate == gate
        ]
    for title, laws in (("a decision catalog", LAWS_OF["decision_catalog"]), ("an overlay", LAWS_OF["overlay"])):
        lines += ["", f"## Of {title}", "", "| code | gate | severity | law |", "|---|---|---|---|"]
        lines += [f"| `{law.code}` | {law.gate} | {law.severity} | {' '.join(law.text.split())} |" for law in laws]
    return "\n".join(lines) + "\n"


_MADE = "<!-- Made by `make docs` from tests/cases/jsonlogic-differences.json. Edit that. -->"
_END_MADE = "<!-- End of what `make docs` makes. -->"


def policy_page() -> str:
    """Render docs/policy.md with the list of differences from JSONLogic; the rest is written by hand."""
    differences = json.loads((DOCS.parent / "tests/cases/jsonlogic-differences.json").read_text(encoding="utf-8"))
    lines = [_MADE, ""]
    for here, title in (
        ("error", "These are errors here. JSONLogic gives them a value:"),
        ("refused", "A policy with one of these is refused:"),
    ):
        lines += [title, "", "| expression | in JSONLogic |", "|---|---|"]
        rows = [entry for entry in differences if entry["here"] == here]
        lines += [*(f"| {entry['expression']} | {entry['jsonlogic']} |" for entry in rows), ""]
    lines += ["These have another value here, without an error. There are no others:", ""]
    lines += [f"- {entry['expression']}" for entry in differences if entry["here"] == "value"]
    before, _, made = (DOCS / "policy.md").read_text(encoding="utf-8").partition(_MADE)
    return before + "\n".join([*lines, "", ""]) + _END_MADE + made.partition(_END_MADE)[2]


_MADE_RULES = "<!-- Made by `make docs` from src/contextplane/policy/redaction/rules.py. Edit that. -->"


def redaction_page() -> str:
    """Render docs/redaction.md with the table of the rules; the rest is written by hand."""
    lines = [_MADE_RULES, "", "| rule | active | by shape | by field | by schema |", "|---|---|---|---|---|"]
    for rule in RULES:
        fields = " ".join(f"`{name}`" for name in rule.fields)
        active = "always" if rule.secret else "if listed"
        lines.append(f"| `{rule.name}` | {active} | {rule.shape} | {fields} | `x-redact: {rule.name}` |")
    before, _, made = (DOCS / "redaction.md").read_text(encoding="utf-8").partition(_MADE_RULES)
    return before + "\n".join([*lines, "", ""]) + _END_MADE + made.partition(_END_MADE)[2]


PAGES: tuple[Page, ...] = (
    Page("errors.md", errors_page),
    Page("cli.md", command_page),
    Page("laws.md", laws_page),
    Page("policy.md", policy_page),
    Page("redaction.md", redaction_page),
    Page("concepts.svg", draw_concepts),
    Page("../src/contextplane/cli/help.txt", lambda: top_help(VERBS)),
    Page(
        "../src/contextplane/app/clients/handoff_skill.md", lambda: (DOCS / "skills" / "handoff.md").read_text("utf-8")
    ),
    Page("../src/contextplane/app/explanations.json", lambda: explanations_file(error_classes())),
    *(Page(f"../src/contextplane/schemas/{entry.file}", partial(schema_page, entry)) for entry in PUBLISHED),
)


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print("usage: generate.py [--check]", file=sys.stderr)
        return 2
    drifted = []
    for page in PAGES:
        path, text = DOCS / page.path, page.render()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        drifted.append(page.path)
        if not arguments:
            path.write_text(text, encoding="utf-8")
            print(f"docs/{page.path}: written")
    if arguments and drifted:
        print(f"docs: {', '.join(drifted)} not as the code says; 'make docs' writes them anew", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
