"""Tables of cases: requests in a few lines each, with the verdict, tools and gates they must get.

A table names a pack and its cases. A case changes a base request, and says what must come of it. A name that the pack
does not have is refused: a case that expects the absence of a misspelt tool could not fail.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

from contextplane.authoring.source_file import AuthorFile, NamedFile
from contextplane.compiler.case import CompileCase, read_case
from contextplane.compiler.draft import Draft
from contextplane.compiler.envelope import complete_case
from contextplane.compiler.errors import find_problems, type_problem
from contextplane.compiler.overrides import (
    Override,
    apply_overrides,
    fact_pointer,
    guardrail_labels,
    known_places,
    put_value,
    value_at,
)
from contextplane.compiler.source import PackSource
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.context_pack import ContextPack
from contextplane.model.document_kind import document_kind
from contextplane.model.json.canonical import Json
from contextplane.model.json.pointer import pointer
from contextplane.model.pack_layers import PolicyBundle
from contextplane.model.suggestion import did_you_mean
from contextplane.model.terms import ApprovalMode
from contextplane.model.value import Document, Value

__all__ = ["CaseOutcome", "CaseTable", "TableCase", "TableInvalid", "read_table", "run_table"]

Text = Annotated[str, Meta(min_length=1, max_length=1000)]


class TableInvalid(ContextPlaneError):
    """A table of cases that has not its form, or that names something the pack does not have."""

    code: ClassVar[str] = "test_table_invalid"
    family: ClassVar[Family] = "refused"


class NameExpectation(Document, frozen=True):
    """Names of which some must be there, and others must not."""

    has: tuple[Text, ...] = ()
    lacks: tuple[Text, ...] = ()


Names = tuple[Text, ...] | NameExpectation


class CaseExpectation(Document, frozen=True):
    """What must come of a case. What is left out is not compared. A list is exact, in any order.

    - `allowed`: the verdict. `reason`: a part of its reasons.
    - `tools`, `gates`: what is surfaced and active. `rules`: in effect. `guardrails`: triggered.
    - `refused`: the code of the error, if nothing may be compiled.
    """

    allowed: bool | None = None
    reason: Text | None = None
    tools: Names | None = None
    gates: Names | None = None
    rules: Names | None = None
    guardrails: Names | None = None
    refused: Text | None = None


class CaseChanges(Document, frozen=True, kw_only=True):
    """Changes of the base request. `set`: facts by the names that rules use, or places of the document."""

    intent: Text | None = None
    message: Text | None = None
    role: Text | None = None
    safety_mode: ApprovalMode | None = None
    as_of: Text | None = None
    set: dict[str, Any] = msgspec.field(default_factory=dict)


class TableCase(CaseChanges, frozen=True, kw_only=True):
    """One case: a name, the changes, and what must come of it."""

    name: Text
    expect: CaseExpectation


class CaseTable(CaseChanges, frozen=True, kw_only=True):
    """A table of cases for one pack. Its changes hold for every case that does not make another one.

    `pack`, `overlays`, `catalogs` and `base` are files, relative to the table. `base` is the request that cases change:
    an envelope, or one with its run context. Without it, a user with a delegation asks, under the highest ceiling.
    """

    pack: Text
    cases: Annotated[tuple[TableCase, ...], Meta(min_length=1)]
    base: Text | None = None
    overlays: tuple[Text, ...] = ()
    catalogs: tuple[Text, ...] = ()


class CaseOutcome(Value, frozen=True):
    """The outcome of a case: its place in the table, and every difference from what it expects.

    `draft`: all that was compiled; None if the case was refused.
    """

    name: str
    at: str
    differences: tuple[str, ...]
    refused: str = ""
    draft: Draft | None = None

    @property
    def passed(self) -> bool:
        return not self.differences


def read_table(file: NamedFile) -> CaseTable:
    """Read a table, or raise `TableInvalid` with everything that is wrong with its form."""
    value = file.file.value
    kind = document_kind(value)
    if kind is not None and not (isinstance(value, dict) and "cases" in value):
        raise TableInvalid(f"this is {kind}, not a table of tests", at=file.path, hint="write pack and cases")
    try:
        table = msgspec.convert(value, type=CaseTable)
    except msgspec.ValidationError as error:
        problems = [
            (problem.at, problem.message, problem.hint)
            for problem in find_problems(value, CaseTable) or [type_problem(error)]
        ]
        raise _invalid(file, problems) from error
    problems = [*_repeated_names(table), *_empty_expectations(table)]
    if problems:
        raise _invalid(file, problems)
    return table


def _repeated_names(table: CaseTable) -> Iterator[tuple[str, str, str]]:
    seen: set[str] = set()
    for n, case in enumerate(table.cases):
        if case.name in seen:
            yield f"/cases/{n}/name", "another case has this name", "rename one of them"
        seen.add(case.name)


def _empty_expectations(table: CaseTable) -> Iterator[tuple[str, str, str]]:
    for n, case in enumerate(table.cases):
        # `tools: {}` names nothing. An empty list is another matter: nothing may be there.
        expected = {
            name
            for name in CaseExpectation.__struct_fields__
            if getattr(case.expect, name) not in (None, NameExpectation())
        }
        if not expected:
            yield f"/cases/{n}/expect", "it expects nothing, so it cannot fail", "expect allowed, tools or gates"
        elif "refused" in expected and len(expected) > 1:
            yield f"/cases/{n}/expect/refused", "a refused request has no verdict and no tools", "expect refused alone"


def _invalid(file: NamedFile, problems: Sequence[tuple[str, str, str]]) -> TableInvalid:
    (at, message, hint), *more = problems
    count = f"; and {len(more)} more" if more else ""
    return TableInvalid(
        f"{at or 'the table'}: {message}{count}",
        at=file.where(at),
        hint=hint,
        details={
            "problems": [
                {"at": place, "place": file.where(place), "message": words, "hint": cure}
                for place, words, cure in problems
            ]
        },
    )


def run_table(source: PackSource, file: NamedFile, table: CaseTable, base: NamedFile | None) -> Iterator[CaseOutcome]:
    """Compile every case of a table, and compare it with what it expects."""
    problems = [*_unknown_names(source.pack, table), *_unnamed_intents(source.pack, table, base)]
    if problems:
        raise _invalid(file, problems)
    known = known_places(source.pack)
    whole = _base_case(source, base)
    for n, case in enumerate(table.cases):
        at = f"/cases/{n}"
        changes = dict(_changes(table, case, file, at))
        try:
            compile_case = read_case(apply_overrides(whole, changes.values(), known))
        except ContextPlaneError as error:
            raise _change_error(error, changes, file, at) from error
        yield _outcome(source, case, at, compile_case)


def _change_error(
    error: ContextPlaneError, changes: dict[str, Override], file: NamedFile, at: str
) -> ContextPlaneError:
    """Return the error for a change that is refused, at the place of that change in the table."""
    for place, override in changes.items():
        if error.at == f"--set {override.name[:80]}" or (error.at or "").startswith(override.at):
            return _invalid(file, [(place, f"{override.name[:80]} {error.message}", error.hint or "change it")])
    return _invalid(file, [(at, f"its request is wrong: {error.at}: {error.message}", error.hint or "change it")])


def _outcome(source: PackSource, case: TableCase, at: str, compile_case: CompileCase) -> CaseOutcome:
    expect = case.expect
    try:
        draft = source.compile_draft(compile_case)
    except ContextPlaneError as error:
        words = f"refused with {error.code}: {error.message}"
        differences = () if expect.refused == error.code else (f"{words}; {_expected_outcome(expect)} was expected",)
        return CaseOutcome(name=case.name, at=at, differences=differences, refused=error.code)
    if expect.refused is not None:
        difference = f"it compiled, and is {_verdict_words(draft)}; {expect.refused} was expected"
        return CaseOutcome(name=case.name, at=at, differences=(difference,), draft=draft)
    return CaseOutcome(name=case.name, at=at, differences=tuple(_differences(expect, draft)), draft=draft)


def _expected_outcome(expect: CaseExpectation) -> str:
    return expect.refused if expect.refused is not None else "a compiled context"


# --- The requests of a table ---

_DELEGATION: Json = {"auth_type": "service", "scopes": ["*"], "subject": "u:test"}


def _base_case(source: PackSource, base: NamedFile | None) -> Json:
    """Return the whole case that the cases of a table change, with this version of the pack in it."""
    ceiling = Override(name="safety_mode", at="/run_context/safety_mode", value="destructive")
    if base is None:
        bare = NamedFile(path="", file=AuthorFile(_default_envelope(source), b"", {}))
        return complete_case(bare, source.pack, [ceiling]).file.file.value
    value = complete_case(base, source.pack).file.file.value
    at = "/request/context_pack_refs"
    refs = value_at(value, at)
    if not isinstance(refs, list):
        return value
    here = {lineage.ref.partition("@")[0]: lineage.ref for lineage in source.lineage}
    current: list[Json] = [here.get(ref.partition("@")[0], ref) if isinstance(ref, str) else ref for ref in refs]
    return put_value(value, at, current)


def _default_envelope(source: PackSource) -> Json:
    user: Json = {"user_id": "usr_test", "delegation": _DELEGATION}
    intents = sorted({intent for bundle in source.pack.policy_layer.policy_bundles for intent in _intents(bundle)})
    invoke_input: Json = {"intent": intents[0] if intents else "unnamed", "message": "a test", "context": {}}
    trace: Json = {"trace_id": "0" * 32, "span_id": "0" * 16}
    return {
        "request_id": "req_test",
        "tenant_id": source.pack.pack_meta.tenant.tenant_id,
        "user": user,
        "agent": {"agent_id": "agt_test", "lifecycle": "active"},
        "context_pack_refs": [str(source.pack.ref)],
        "input": invoke_input,
        "mode": "batch",
        "runtime": {},
        "trace": trace,
    }


def _intents(bundle: PolicyBundle) -> Iterator[str]:
    for rule in bundle.policy_dsl.rules:
        named = rule.applies_to.get("intent", ())
        yield from (named,) if isinstance(named, str) else named


def _changes(table: CaseTable, case: TableCase, file: NamedFile, at: str) -> Iterator[tuple[str, Override]]:
    """Yield the changes of a case by their places in the table, after those of the table itself."""
    for name, place in _PLACES.items():
        for owner, own in ((case, f"{at}/{name}"), (table, f"/{name}")):
            value = getattr(owner, name)
            if value is not None:
                yield own, Override(name=name, at=place, value=value)
                break
    for owner, own in ((table, "/set"), (case, f"{at}/set")):
        for fact, value in owner.set.items():
            place = f"{own}{pointer([fact])}"
            try:
                yield place, Override(name=fact, at=fact_pointer(fact), value=value)
            except ContextPlaneError as error:
                raise _invalid(file, [(place, error.message, error.hint or "name a fact")]) from error


_PLACES = {
    "intent": "/request/input/intent",
    "message": "/request/input/message",
    "role": "/run_context/user/role",
    "safety_mode": "/run_context/safety_mode",
    "as_of": "/as_of",
}
"""The place in a compile case of each short form."""


# --- What a case is compared by ---


def _unknown_names(pack: ContextPack, table: CaseTable) -> Iterator[tuple[str, str, str]]:
    """Yield the names in expectations that the pack does not have."""
    known = {
        "tools": set(_tools(pack)),
        "gates": {gate.gate_id for gate in pack.policy_layer.approval_gates},
        "rules": set(_rule_names(pack)),
        "guardrails": set(guardrail_labels(pack)),
    }
    for n, case in enumerate(table.cases):
        for kind, names in known.items():
            expected: Names | None = getattr(case.expect, kind)
            for name in _names_of(expected):
                if name not in names:
                    place = f"/cases/{n}/expect/{kind}"
                    words = f"the pack has no {kind.removesuffix('s')} {name[:80]}"
                    yield place, words, did_you_mean(name, names, f"name one of its {kind}")


def _unnamed_intents(pack: ContextPack, table: CaseTable, base: NamedFile | None) -> Iterator[tuple[str, str, str]]:
    """Yield the cases whose intent is unknown: there is no base, and the rules of the pack name several."""
    intents = {intent for bundle in pack.policy_layer.policy_bundles for intent in _intents(bundle)}
    for n, case in enumerate(table.cases):
        facts = {*table.set, *case.set}
        if base is None and len(intents) != 1 and not (case.intent or table.intent or "intent" in facts):
            yield f"/cases/{n}", "it names no intent", did_you_mean("", intents, "add intent")


def _names_of(names: Names | None) -> tuple[str, ...]:
    if names is None:
        return ()
    return (*names.has, *names.lacks) if isinstance(names, NameExpectation) else names


def _tools(pack: ContextPack) -> Iterator[str]:
    for adapter in pack.tooling_layer.adapter_registry:
        yield from (f"{adapter.adapter_id}.{capability}" for capability in adapter.capabilities)


def _rule_names(pack: ContextPack) -> Iterator[str]:
    for bundle in pack.policy_layer.policy_bundles:
        for rule in bundle.policy_dsl.rules:
            yield rule.rule_id
            yield f"{bundle.bundle_id}#{rule.rule_id}"


def _differences(expect: CaseExpectation, draft: Draft) -> Iterator[str]:
    verdict = draft.policy.verdict
    if expect.allowed is not None and verdict.allowed is not expect.allowed:
        yield f"allowed: {str(expect.allowed).lower()} was expected, and it is {_verdict_words(draft)}"
    reasons = "; ".join((*verdict.denials, verdict.reason or ""))
    if expect.reason is not None and expect.reason not in reasons:
        yield f"reason: {expect.reason!r} was expected, and it is {_verdict_words(draft)}"
    manifests = draft.assemble.manifests
    tools = [f"{adapter.adapter_id}.{name}" for adapter in manifests.tool_manifest for name in adapter.capabilities]
    left_out = [omission for omission in manifests.omission_manifest if omission.kind == "tool"]
    why = {omission.id: omission.reason for omission in left_out}
    dropped = {omission.id for omission in left_out if omission.stage == "budget"}
    yield from _name_differences("tools", expect.tools, tools, why)
    yield from _dropped_differences(expect.tools, dropped)
    yield from _name_differences("gates", expect.gates, draft.assemble.controls.approval_gates_active)
    rules = [name for row in manifests.policy_manifest for name in row.rule_ids]
    yield from _name_differences("rules", expect.rules, rules)
    yield from _name_differences("guardrails", expect.guardrails, (*verdict.refused, *verdict.escalated))


def _verdict_words(draft: Draft) -> str:
    verdict = draft.policy.verdict
    if verdict.allowed:
        return f"allowed, {verdict.reason}" if verdict.reason else "allowed"
    return f"denied: {'; '.join(verdict.denials) or verdict.reason or 'without a reason'}"


_STATES = {"tools": "surfaced", "gates": "active", "rules": "in effect", "guardrails": "triggered"}


def _name_differences(
    kind: str, expected: Names | None, actual: Iterable[str], why: Mapping[str, str] | None = None
) -> Iterator[str]:
    if expected is None:
        return
    state, own, reasons = _STATES[kind], set(actual), why or {}
    if isinstance(expected, NameExpectation):
        has, lacks = set(map(_short, expected.has)), own & set(map(_short, expected.lacks))
    else:
        has = set(map(_short, expected))
        lacks = own - has
    for name in sorted(has - own):
        reason = f" ({reasons[name]})" if name in reasons else ""
        yield f"{kind}: {name} was expected, and is not {state}{reason}"
    for name in sorted(lacks):
        yield f"{kind}: {name} is {state}, and was not expected"


def _dropped_differences(expected: Names | None, dropped: set[str]) -> Iterator[str]:
    """Yield the tools that only the budget keeps away: with another budget they would be there."""
    if isinstance(expected, NameExpectation):
        dropped &= set(expected.lacks)
    elif expected is not None:
        dropped -= set(expected)
    for name in sorted(dropped) if expected is not None else ():
        yield f"tools: {name} is left out for its tokens only, and was not expected"


def _short(name: str) -> str:
    """Return the id of a rule without its bundle; other names have no bundle."""
    return name.rpartition("#")[2]
