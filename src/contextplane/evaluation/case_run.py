"""Runs the cases of a table: compiles their requests, and compares the outcomes with expected ones."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec.structs import replace

from contextplane.authoring.evidence import EvidenceProducers
from contextplane.authoring.source_file import AuthorFile, NamedFile
from contextplane.compiler.case import CompileCase, read_case
from contextplane.compiler.draft import Draft
from contextplane.compiler.envelope import complete_case
from contextplane.compiler.overrides import (
    Override,
    OverrideInvalid,
    apply_overrides,
    fact_pointer,
    guardrail_labels,
    known_places,
    put_value,
    value_at,
)
from contextplane.compiler.source import PackSource
from contextplane.errors import ContextPlaneError
from contextplane.evaluation.case_table import (
    CaseExpectation,
    CaseTable,
    NameExpectation,
    Names,
    TableCase,
    TableEvidence,
    table_error,
)
from contextplane.model.context_pack import ContextPack
from contextplane.model.json.canonical import Json, canonical
from contextplane.model.json.pointer import pointer
from contextplane.model.pack_layers import PolicyBundle
from contextplane.model.suggestion import did_you_mean
from contextplane.model.value import Value

__all__ = ["CaseOutcome", "run_table"]


class CaseOutcome(Value, frozen=True):
    """The outcome of a case: its place in the table, and every difference from what it expects.

    `draft`: all that was compiled; None if the case was refused. `warnings`: facts of it that the pack does not read.
    """

    name: str
    at: str
    differences: tuple[str, ...]
    refused: str = ""
    draft: Draft | None = None
    warnings: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return not self.differences


def run_table(source: PackSource, file: NamedFile, table: CaseTable, base: NamedFile | None) -> Iterator[CaseOutcome]:
    """Compile every case of a table, and compare it with what it expects."""
    problems = [*_unknown_names(source.pack, table), *_unnamed_intents(source.pack, table, base)]
    if problems:
        raise table_error(file, problems)
    known = known_places(source.pack)
    producers = EvidenceProducers.of_pack(source.pack)
    whole = _base_case(source, base)
    for n, case in enumerate(table.cases):
        at = f"/cases/{n}"
        changes = dict(_changes(table, case, file, at))
        warnings: list[str] = []
        try:
            value = _apply_changes(whole, changes.values(), known, warnings)
            pieces = table.evidence if case.evidence is None else case.evidence
            if pieces is not None:
                tenant = source.pack.pack_meta.tenant.tenant_id
                moment = value_at(value, "/as_of")
                written = [_written_evidence(piece, m, tenant, moment, producers) for m, piece in enumerate(pieces)]
                value = put_value(value, "/evidence", written)
            compile_case = read_case(value)
        except ContextPlaneError as error:
            raise _change_error(error, changes, file, at) from error
        yield replace(_outcome(source, case, at, compile_case), warnings=tuple(warnings))


def _apply_changes(value: Json, changes: Iterable[Override], known: frozenset[str], warnings: list[str]) -> Json:
    """Apply the changes of a case. A fact that the pack does not read gives a warning."""
    for change in changes:
        try:
            value = apply_overrides(value, [change], known)
        except OverrideInvalid as error:
            # A place that no request can have is refused again.
            value = apply_overrides(value, [change], None)
            warnings.append(f"the pack does not read {change.name[:80]}; {error.hint}")
    return value


def _written_evidence(
    piece: TableEvidence, n: int, tenant: str, moment: object, producers: EvidenceProducers
) -> dict[str, Json]:
    """Write out a piece of evidence as a compile case has it."""
    tool = next(iter(producers.tools.get(piece.type, ())), None)
    ref = piece.evidence_ref or (f"tool:{tool}:test_{n}" if tool else f"session:test_{n}#{piece.type}")
    observed = piece.observed_at or (moment if isinstance(moment, str) else None)
    freshness: dict[str, Json] = {"observed_at": observed}
    if piece.expires_at is not None:
        freshness["expires_at"] = piece.expires_at
    written: dict[str, Json] = {
        "evidence_ref": ref,
        "type": piece.type,
        "tenant_id": tenant,
        "source": tool or "test",
        "trust": piece.trust,
        "content": piece.content if isinstance(piece.content, str) else canonical(piece.content).decode(),
        "classification": piece.classification,
    }
    return {**written, "freshness": freshness} if observed is not None else written


def _change_error(
    error: ContextPlaneError, changes: dict[str, Override], file: NamedFile, at: str
) -> ContextPlaneError:
    """Return the error for a change that is refused, at the place of that change in the table."""
    for place, override in changes.items():
        if error.at == f"--set {override.name[:80]}" or (error.at or "").startswith(override.at):
            return table_error(file, [(place, f"{override.name[:80]} {error.message}", error.hint or "change it")])
    return table_error(file, [(at, f"its request is wrong: {error.at}: {error.message}", error.hint or "change it")])


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
                raise table_error(file, [(place, error.message, error.hint or "name a fact")]) from error


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
        "unresolved": set(_required_names(pack)),
    }
    for n, case in enumerate(table.cases):
        for kind, names in known.items():
            expected: Names | None = getattr(case.expect, kind)
            for name in _names_of(expected):
                if name not in names:
                    place = f"/cases/{n}/expect/{kind}"
                    words = f"the pack has no {_SINGULAR.get(kind, kind.removesuffix('s'))} {name[:80]}"
                    yield place, words, did_you_mean(name, names, f"name one of its {kind}")


_SINGULAR = {"unresolved": "required evidence"}


def _required_names(pack: ContextPack) -> Iterator[str]:
    for spec in pack.decision_layer.decision_specs:
        yield from spec.required_evidence
    for bundle in pack.policy_layer.policy_bundles:
        for rule in bundle.policy_dsl.rules:
            yield from (*rule.then.requires, *(rule.otherwise.requires if rule.otherwise is not None else ()))


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
    unresolved = [entry.name for entry in draft.assemble.gate.unresolved]
    yield from _name_differences("unresolved", expect.unresolved, unresolved)


def _verdict_words(draft: Draft) -> str:
    verdict = draft.policy.verdict
    if verdict.allowed:
        return f"allowed, {verdict.reason}" if verdict.reason else "allowed"
    return f"denied: {'; '.join(verdict.denials) or verdict.reason or 'without a reason'}"


_STATES = {
    "tools": "surfaced",
    "gates": "active",
    "rules": "in effect",
    "guardrails": "triggered",
    "unresolved": "open",
}


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
