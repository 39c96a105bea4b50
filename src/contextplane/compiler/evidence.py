"""Stage `evidence`: what may be shown of what was gathered, and what of it can close a gate."""

from collections.abc import Iterable
from typing import get_args

from msgspec.structs import replace

from contextplane.compiler.admission import age, evidence_refused, out_of_scope
from contextplane.compiler.attachments import Attached, attachments
from contextplane.compiler.blocks import data_block
from contextplane.compiler.conflicts import conflicts_among
from contextplane.compiler.draft import Admitted, Draft, EvidencePart
from contextplane.compiler.refusals import EvidenceOfAnotherTenant
from contextplane.model.compiled_context import Omission
from contextplane.model.context_block import ContextBlock
from contextplane.model.evidence import Evidence, EvidenceInput, Trust
from contextplane.model.evidence_gate import Unanswering
from contextplane.model.ids import EvidenceRef

__all__ = ["evidence"]

_TRUSTS: tuple[Trust, ...] = get_args(Trust)
_CLOSING = frozenset({"authoritative", "verified"})
_SHOWN = 120


def evidence(draft: Draft) -> Draft:
    """Every piece, and every attachment of the request, is admitted, or omitted with its reason.

    What can close a gate comes first, then the rest as given, attachments last.
    """
    items = draft.inputs.evidence
    required = tuple(dict.fromkeys((*draft.intent.required_evidence, *draft.decision.requires)))
    names = frozenset(required)
    _refuse_other_tenants(items, draft.inputs.run_context.tenant_id)
    conflicts = conflicts_among((one for one in items if isinstance(one, Evidence)), names)
    typed, clashing = _by_reference(items)
    admitted: list[tuple[EvidenceInput | Attached, Admitted]] = []
    omitted: list[Omission] = []
    seen: set[str] = set()
    doubtful: dict[str, list[Unanswering]] = {}
    refused: dict[str, list[Unanswering]] = {}
    for n, one in enumerate(items):
        ref, at = _ref(one), f"evidence#/{n}"
        name = one.type if isinstance(one, Evidence) and one.type in names else None
        reason = _refused(one, draft) or conflicts.against.get(ref)
        if reason is None and ref in clashing:
            reason = "same_reference_twice"
        elif reason is None and (ref in seen or (isinstance(one, str) and ref in typed)):
            reason = "duplicate"
        if reason is not None:
            # A reference is told whole, because others look for it; what is none may be of any length.
            told = ref[:_SHOWN] if reason == "not_a_reference" else ref
            omitted.append(Omission(kind="evidence", id=told, stage="evidence", reason=reason, at=at))
            _note(refused, name, ref, reason, at)
            continue
        seen.add(ref)
        doubt = _doubt(one, draft)
        _note(doubtful, name, ref, doubt, at)
        admitted.append((one, Admitted(evidence_ref=ref, source=_source(one), at=at, closes=None if doubt else name)))
    # A stable sort: those that close a gate keep their order, and so do the rest.
    admitted.sort(key=lambda pair: pair[1].closes is None)
    for attached in attachments(draft):
        if isinstance(attached, Omission):
            omitted.append(attached)
        else:
            admitted.append((attached, attached.admitted))
    part = EvidencePart(
        required=required,
        admitted=tuple(one for _, one in admitted),
        blocks=_blocks(draft, [one for one, _ in admitted]),
        conflicts=conflicts.markers,
        doubtful={name: tuple(pieces) for name, pieces in doubtful.items()},
        refused={name: tuple(pieces) for name, pieces in refused.items()},
        omitted=tuple(omitted),
        notes=tuple(
            f"{' and '.join(one.evidence_refs)} contradict each other" for one in conflicts.markers if not one.selected
        ),
    )
    return replace(draft, evidence=part)


def _refuse_other_tenants(items: Iterable[EvidenceInput], tenant_id: str) -> None:
    for n, one in enumerate(items):
        if isinstance(one, Evidence) and one.tenant_id != tenant_id:
            raise EvidenceOfAnotherTenant(
                f"this evidence is of {one.tenant_id}, the run of {tenant_id}",
                at=f"evidence#/{n}/tenant_id",
                hint="gather evidence within the tenant of the run",
            )


def _by_reference(items: Iterable[EvidenceInput]) -> tuple[dict[str, Evidence], frozenset[str]]:
    """The typed pieces, and references under which different ones were given: nobody knows which of them is meant."""
    first: dict[str, Evidence] = {}
    clashing = set()
    for one in items:
        if isinstance(one, Evidence) and first.setdefault(one.evidence_ref, one) != one:
            clashing.add(one.evidence_ref)
    return first, frozenset(clashing)


def _refused(one: EvidenceInput, draft: Draft) -> str | None:
    """Why this piece is not shown, by itself."""
    scope = draft.scope.scope
    if EvidenceRef.PATTERN.fullmatch(_ref(one)) is None:
        return "not_a_reference"
    if isinstance(one, Evidence):
        ceiling = draft.inputs.view.pack.pack_meta.data_classification
        return evidence_refused(one, scope, ceiling, draft.inputs.as_of)
    return out_of_scope(one, scope)


def _doubt(one: EvidenceInput, draft: Draft) -> str | None:
    """Why this piece cannot close a gate; None when it can."""
    if not isinstance(one, Evidence):
        return "untyped"
    if one.trust not in _CLOSING:
        return f"trust_{one.trust}"
    return None if age(one.freshness, draft.inputs.as_of) == "current" else "freshness_unknown"


def _note(found: dict[str, list[Unanswering]], name: str | None, ref: str, reason: str | None, at: str) -> None:
    """Remember of a required name that this piece does not answer it."""
    if name is not None and reason is not None:
        found.setdefault(name, []).append(Unanswering(evidence_ref=ref, reason=reason, at=at))


def _ref(one: EvidenceInput) -> str:
    return one.evidence_ref if isinstance(one, Evidence) else one


def _source(one: EvidenceInput) -> str | None:
    return one.source if isinstance(one, Evidence) else None


def _blocks(draft: Draft, shown: list[EvidenceInput | Attached]) -> tuple[ContextBlock, ...]:
    tokens, ceiling = draft.inputs.tokens, draft.inputs.view.pack.pack_meta.data_classification
    blocks = []
    for n, one in enumerate(shown):
        name = f"ev_{n}"
        if isinstance(one, Evidence):
            block = data_block(
                name,
                "evidence",
                one.content,
                tokens,
                classification=one.classification,
                refs=(one.evidence_ref,),
                evidence_type=one.type,
                trust=one.trust if one.trust in _TRUSTS else "unknown",
            )
        else:
            ref, content = (one, one) if isinstance(one, str) else (one.admitted.evidence_ref, one.content)
            block = data_block(name, "evidence", content, tokens, classification=ceiling, refs=(ref,), trust="unknown")
        blocks.append(block)
    return tuple(blocks)
