"""The evidence gate: which required names are answered, by what, and whether a decision may rest on it."""

from collections.abc import Iterable, Mapping

from contextplane.authoring.evidence import POLICY_EVAL
from contextplane.compiler.draft import Admitted, EvidencePart
from contextplane.model.compiled_context import Omission
from contextplane.model.evidence_gate import (
    EvidenceGate,
    RejectedEvidence,
    Satisfied,
    Sufficiency,
    Unanswering,
    Unresolved,
)
from contextplane.model.value import Value

__all__ = ["Answers", "evidence_gate"]


class Answers(Value, frozen=True):
    """What can answer a name: the request, policy that was evaluated without error, evidence; and tools, later on."""

    said: Mapping[str, object]
    policy_evaluated: bool
    evidence: tuple[Admitted, ...]
    obtainable: Mapping[str, tuple[str, ...]]


def evidence_gate(part: EvidencePart, answers: Answers, omitted: Iterable[Omission]) -> EvidenceGate:
    """A name is satisfied by a true value of the request, by the policy engine, or by evidence that closes it.

    No request speaks for the policy engine. A tool that can produce a name does not satisfy it: only its result will.
    """
    by_name = {one.closes: one.evidence_ref for one in reversed(answers.evidence) if one.closes is not None}
    satisfied: list[Satisfied] = []
    unresolved: list[Unresolved] = []
    lost = _lost(part, omitted)
    for name in part.required:
        if name == POLICY_EVAL and answers.policy_evaluated:
            satisfied.append(Satisfied(name=name, by="policy"))
        elif name != POLICY_EVAL and answers.said.get(name) is True:
            satisfied.append(Satisfied(name=name, by="request"))
        elif name in by_name:
            satisfied.append(Satisfied(name=name, by=by_name[name]))
        else:
            unresolved.append(_unresolved(name, part, lost, answers))
    is_open = any(one.required and one.selected is None for one in part.conflicts)
    return EvidenceGate(
        required=part.required,
        satisfied=tuple(satisfied),
        unresolved=tuple(unresolved),
        rejected=tuple(
            RejectedEvidence(evidence_ref=one.id, reason=one.reason) for one in omitted if one.kind == "evidence"
        ),
        conflicts=part.conflicts,
        sufficiency=_sufficiency(unresolved, is_open=is_open),
        commit_allowed=not unresolved and not is_open,
    )


def _unresolved(name: str, part: EvidencePart, lost: Mapping[str, list[Unanswering]], answers: Answers) -> Unresolved:
    """Why nothing answers a name. What came nearest to it gives the reason, and every piece of that name its own."""
    nearest = (*part.doubtful.get(name, ()), *lost.get(name, ()))
    pieces = (*nearest, *part.refused.get(name, ()))
    if nearest:
        reason = nearest[0].reason
    elif pieces:
        reason = "refused"
    elif name == POLICY_EVAL:
        reason = "policy_failed"
    else:
        reason = "not_true" if name in answers.said else "no_evidence"
    return Unresolved(name=name, reason=reason, obtainable_by=answers.obtainable.get(name, ()), evidence=pieces)


def _lost(part: EvidencePart, omitted: Iterable[Omission]) -> dict[str, list[Unanswering]]:
    """Names that evidence would have closed, had it not been left out afterwards, and that evidence."""
    gone = {one.at: one.reason for one in omitted if one.kind == "evidence"}
    found: dict[str, list[Unanswering]] = {}
    for one in part.admitted:
        if one.closes is not None and one.at in gone:
            piece = Unanswering(evidence_ref=one.evidence_ref, reason=gone[one.at], at=one.at)
            found.setdefault(one.closes, []).append(piece)
    return found


def _sufficiency(unresolved: list[Unresolved], *, is_open: bool) -> Sufficiency:
    if not unresolved and not is_open:
        return "sufficient"
    return "obtainable" if not is_open and all(one.obtainable_by for one in unresolved) else "insufficient"
