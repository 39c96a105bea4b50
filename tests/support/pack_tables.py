"""The packs of `tests/cases/packs`, and what their authors meant: tables of requests, and checks of single calls.

`NAME.yaml` is a pack, and `NAME.test.yaml` its table for `ctx test`. `NAME.checks.yaml` says what a table cannot: which
call is refused for which argument, who approves, and which evidence a request cannot claim for itself. Each check is
made in the request of a case of the table.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from contextplane.app.packs.files import read_source_file
from contextplane.compiler.compile import compile_draft
from contextplane.compiler.draft import Draft
from contextplane.compiler.source import PackSource
from contextplane.errors import ContextPlaneError
from contextplane.evaluation.case_run import run_table
from contextplane.evaluation.case_table import read_table
from contextplane.model.compiled_context import Lineage
from contextplane.model.context_pack import ContextPack
from contextplane.model.evidence import Evidence, EvidenceFreshness
from contextplane.model.ids import Digest
from contextplane.model.json.canonical import canonical
from contextplane.model.terms import DataClassification
from contextplane.model.value import Document
from contextplane.policy.arguments import violations

__all__ = ["FOLDER", "NAMES", "TEAMS", "Checks", "PackTable", "pack_table", "source_of"]

Json = Any
CASES = Path(__file__).parents[1] / "cases"
FOLDER = CASES / "packs"
TEAMS = ("analyst", "coding", "helpdesk", "kyc", "marketing", "oncall")
"""Six packs as teams write them."""

NAMES = (*TEAMS, "support")
"""The seventh is the pack of the specification."""


class Call(Document, frozen=True):
    """A call in the request of a case. `breaks`: the arguments for which it is refused; none if it is accepted."""

    name: str
    case: str
    tool: str
    arguments: dict[str, Any]
    breaks: tuple[str, ...]
    approved: bool = False


class Approval(Document, frozen=True):
    """An approval that a case waits for."""

    case: str
    gate: str
    role: str
    approvers: int
    ttl_seconds: int
    capabilities: tuple[str, ...]


class Claim(Document, frozen=True):
    """What a request claims of itself, the required evidence that is still open, and what counts as attested."""

    name: str
    case: str
    claims: dict[str, Any]
    unresolved: tuple[str, ...]
    attested: tuple[str, ...]


class Result(Document, frozen=True):
    """What a tool returned. `answers`: the required evidence that it satisfies. `hidden`: what no model reads of it.

    `shown`: what the model does read. With a `classification` above that of the pack, it is not admitted.
    """

    name: str
    case: str
    tool: str
    answers: str
    content: dict[str, Any]
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    admitted: bool = True
    classification: DataClassification = "INTERNAL"


class Checks(Document, frozen=True):
    calls: tuple[Call, ...] = ()
    approvals: tuple[Approval, ...] = ()
    evidence: tuple[Claim, ...] = ()
    results: tuple[Result, ...] = ()

    @property
    def all(self) -> tuple[Call | Approval | Claim | Result, ...]:
        return (*self.calls, *self.approvals, *self.evidence, *self.results)


class PackTable:
    """A pack, its table of cases and its checks."""

    def __init__(self, name: str, table: Path, checks: Path) -> None:
        self.name = name
        self.table_file = read_source_file(str(table))
        self.table = read_table(self.table_file)
        self.file = read_source_file(str(table.parent / self.table.pack))
        self.checks = msgspec.convert(read_source_file(str(checks)).file.value, type=Checks)

    def failures(self, value: Json = None) -> Iterator[str]:
        """Yield what goes otherwise than the authors meant: with their pack, or with another value of it."""
        source = source_of(self.file.file.value if value is None else value)
        drafts: dict[str, Draft | None] = {}
        try:
            for outcome in run_table(source, self.table_file, self.table, None):
                drafts[outcome.name] = outcome.draft
                yield from (f"{outcome.name}: {difference}" for difference in outcome.differences)
            yield from self._check_failures(drafts)
        except ContextPlaneError as error:
            yield f"{error.code}: {error.message}"

    def _check_failures(self, drafts: Mapping[str, Draft | None]) -> Iterator[str]:
        for check in self.checks.all:
            draft = drafts[check.case]
            if draft is None:
                yield f"{check.case}: it was refused, so nothing can be checked in it"
                continue
            match check:
                case Call():
                    yield from _call_failures(check, draft)
                case Approval():
                    yield from _approval_failures(check, draft)
                case Claim():
                    yield from _claim_failures(check, draft)
                case Result():
                    yield from _result_failures(check, draft)


def source_of(value: Json) -> PackSource:
    """Make the source of a compile without the gates: a mutant may be one that they refuse."""
    pack = msgspec.convert(value, type=ContextPack)
    lineage = Lineage(ref=str(pack.ref), digest=str(Digest.of(canonical(value))))
    return PackSource(pack, (lineage,), str)


def _call_failures(check: Call, draft: Draft) -> Iterator[str]:
    view, facts = draft.inputs.view, draft.facts
    surface = view.tooling.surface(draft.decision, facts.safety_mode, view.intent(facts.intent).reach)
    tools = {tool.capability_id: tool for tool in surface.tools}
    if check.tool not in tools:
        yield f"{check.name}: {check.tool} is not surfaced"
        return
    tool = tools[check.tool]
    changes = tool.declared_mode != "read_only"
    broken = violations(tool.bounds, check.arguments, approved=check.approved, changes=changes)
    arguments = sorted({violation.argument for violation in broken})
    if arguments != sorted(check.breaks):
        yield f"{check.name}: refused for {arguments}, and {sorted(check.breaks)} was expected"


def _approval_failures(check: Approval, draft: Draft) -> Iterator[str]:
    approvals = {approval.gate_id: approval for approval in draft.tools.approvals}
    active = approvals.get(check.gate)
    if active is None:
        yield f"{check.case}: {check.gate} is not active"
        return
    actual = (active.required_approver_role, active.approvers, active.ttl_seconds, sorted(active.capabilities))
    expected = (check.role, check.approvers, check.ttl_seconds, sorted(check.capabilities))
    if actual != expected:
        yield f"{check.case}: {check.gate} is {actual}, and {expected} was expected"


def _claim_failures(check: Claim, draft: Draft) -> Iterator[str]:
    inputs = draft.inputs
    request = inputs.request
    claiming = replace(request, input=replace(request.input, context={**request.input.context, **check.claims}))
    gate = compile_draft(
        inputs.view, inputs.run_context, claiming, inputs.evidence, inputs.memories, as_of=inputs.as_of
    ).assemble.gate
    unresolved = sorted(entry.name for entry in gate.unresolved)
    attested = sorted(entry.name for entry in gate.satisfied if entry.by == "attested_by_request")
    for word, actual, expected in (
        ("unresolved", unresolved, sorted(check.unresolved)),
        ("attested", attested, sorted(check.attested)),
    ):
        if actual != expected:
            yield f"{check.name}: {word} are {actual}, and {expected} was expected"


def _result_failures(check: Result, draft: Draft) -> Iterator[str]:
    inputs = draft.inputs
    evidence = Evidence(
        evidence_ref=f"tool:{check.tool}:tc_1#{check.answers}",
        type=check.answers,
        tenant_id=inputs.run_context.tenant_id,
        source=check.tool,
        trust="authoritative",
        content=canonical(check.content).decode(),
        freshness=EvidenceFreshness(observed_at="2026-11-16T00:00:00Z"),
        classification=check.classification,
    )
    after = compile_draft(
        inputs.view, inputs.run_context, inputs.request, (evidence,), inputs.memories, as_of=inputs.as_of
    )
    satisfied = any(entry.name == check.answers for entry in after.assemble.gate.satisfied)
    if satisfied is not check.admitted:
        yield f"{check.name}: {check.answers} is {'' if satisfied else 'not '}satisfied"
    prompt = msgspec.json.encode(after.prompt).decode()
    yield from (f"{check.name}: the model reads {text}" for text in check.hidden if text in prompt)
    yield from (f"{check.name}: the model does not read {text}" for text in check.shown if text not in prompt)


@cache
def pack_table(name: str) -> PackTable:
    """Read one of the packs with its table and checks, once."""
    return PackTable(name, FOLDER / f"{name}.test.yaml", FOLDER / f"{name}.checks.yaml")
