"""Stage `evidence`: selects the evidence that may be shown, and what of it can close a gate.

Every piece is admitted, or omitted with one reason. Attachments of a request are evidence of which only a reference and
a digest are known: their content is not opened. A declared conflict between two pieces omits the one that lost, or both
if it is required and unresolved.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, NamedTuple, assert_never, get_args

from msgspec.structs import replace

from contextplane.compiler.digests import text_digest
from contextplane.compiler.draft import AdmittedEvidence, Draft, EvidencePart
from contextplane.compiler.errors import EvidenceOfAnotherTenant
from contextplane.compiler.prompt import data_block
from contextplane.compiler.quotation import quote_json
from contextplane.model.compiled_context import ContextBlock, IntelligenceScope, Omission
from contextplane.model.evidence import (
    Evidence,
    EvidenceConflict,
    EvidenceConflictMarker,
    EvidenceFreshness,
    EvidenceInput,
    Trust,
    Unanswering,
)
from contextplane.model.ids import EvidenceRef
from contextplane.model.invisible_characters import CONTROLS, EMOJI_STYLE, FORMATTING, JOINERS, LINE_SEPARATORS
from contextplane.model.terms import DataClassification
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.model.value import Value

if TYPE_CHECKING:
    from contextplane.model.invoke import Attachment

__all__ = [
    "AttachedEvidence",
    "ConflictSummary",
    "EvidenceAge",
    "admit_attachments",
    "admit_evidence",
    "evidence_age",
    "find_conflicts",
    "is_altered",
    "is_blank",
    "is_classified_above",
    "rejection_reason",
    "scope_rejection",
]

EvidenceAge = Literal["current", "stale", "not_yet", "unknown"]

_TRUSTS: tuple[Trust, ...] = get_args(Trust)
_CLOSING_TRUSTS = frozenset({"authoritative", "verified"})
"""Who is trusted so may close a gate, and resolve a conflict."""

_ID_LENGTH = 120
_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})")
# Not a `match`: a piece may be built without being validated, and a level that is not listed counts as the highest.
_LEVELS: dict[DataClassification, int] = {"PUBLIC": 0, "INTERNAL": 1, "CONFIDENTIAL": 2, "RESTRICTED": 3}
_SNAPSHOT = "snapshot_"

# Text that shows nothing: invisible characters and blanks of every kind, and what JSON is made of besides names and
# values, at any nesting. Each run is taken whole or not at all, so that a long one costs no more than its length.
_BLANK_CHARACTERS = (
    f"{CONTROLS}{FORMATTING}{LINE_SEPARATORS}{JOINERS}{EMOJI_STYLE}"
    "\t\n\r \xa0\u1680\u2000-\u200a\u202f\u205f\u2800\u3000\U0001d159"
    r'\[\]{}",'
)
_BLANK = re.compile(rf"(?:[{_BLANK_CHARACTERS}]++|null)*+")


# --- admission --------------------------------------------------------------------------------------------------------


def rejection_reason(
    item: Evidence, scope: IntelligenceScope, ceiling: DataClassification, as_of: Timestamp | None
) -> str | None:
    """Why a piece is not shown, regardless of the other pieces; None if it may be.

    A blank piece, also one of JSON without values, answers nothing: no result is not a result.
    """
    if is_altered(item):
        return "content_altered"
    if is_blank(item.content):
        return "empty"
    reason = scope_rejection(item.evidence_ref, scope)
    if reason is not None:
        return reason
    if is_classified_above(item.classification, ceiling):
        return "classification_above_pack"
    return _age_rejection(evidence_age(item.freshness, as_of))


def _age_rejection(age: EvidenceAge) -> str | None:
    match age:
        case "stale":
            return "stale"
        case "not_yet":
            return "observed_later"
        case "current" | "unknown":
            return None
        case unreachable:
            assert_never(unreachable)


def is_altered(item: Evidence) -> bool:
    """Whether the content of a piece does not match its hash."""
    return item.content_hash is not None and item.content_hash != text_digest(item.content)


def is_blank(text: str) -> bool:
    return _BLANK.fullmatch(text) is not None


def scope_rejection(ref: str, scope: IntelligenceScope) -> str | None:
    """Why a reference into the graph is out of scope; None if it is in scope, or not into the graph.

    In scope is what the pack's namespaces and the snapshot of this run hold.
    """
    kind, _, target = ref.partition(":")
    if kind != "kg":
        return None
    entity, _, part = target.partition("#")
    if scope.snapshot_pin_rule is None:
        return "no_knowledge_graph"
    if entity.partition(":")[0] not in scope.ceid_namespaces:
        return "namespace_not_in_scope"
    if scope.snapshot is None:
        return "snapshot_unresolved"
    return None if part == _SNAPSHOT + scope.snapshot else "other_snapshot"


def is_classified_above(classification: DataClassification, ceiling: DataClassification) -> bool:
    return _LEVELS.get(classification, len(_LEVELS)) > _LEVELS[ceiling]


def evidence_age(freshness: EvidenceFreshness | None, as_of: Timestamp | None) -> EvidenceAge:
    """The age at the moment of the compile; "unknown" without a moment or without valid times."""
    if freshness is None or as_of is None:
        return "unknown"
    try:
        observed = Timestamp.parse(freshness.observed_at)
        expires = None if freshness.expires_at is None else Timestamp.parse(freshness.expires_at)
    except InvalidTimestamp:
        return "unknown"
    if expires is not None and expires <= as_of:
        return "stale"
    return "not_yet" if observed > as_of else "current"


# --- attachments ------------------------------------------------------------------------------------------------------


class AttachedEvidence(NamedTuple):
    """An attachment that may be shown, and its shown content."""

    admitted: AdmittedEvidence
    content: str


def admit_attachments(draft: Draft) -> Iterator[AttachedEvidence | Omission]:
    """Admit or omit every attachment of the request, in the given order.

    The shown content never holds the address: it may be signed, and gives access to the attachment.
    """
    attachments = draft.inputs.request.attachments
    first: dict[str, Attachment] = {}
    seen: set[str] = set()
    ambiguous = {
        attachment.artifact_id
        for attachment in attachments
        if first.setdefault(attachment.artifact_id, attachment) != attachment
    }
    for n, (attachment, masked) in enumerate(zip(attachments, draft.shown.request.attachments, strict=True)):
        ref, at = f"attachment:{masked.artifact_id}", f"request#/attachments/{n}"
        digest = _DIGEST.fullmatch(attachment.sha256)
        reason = None
        if digest is None:
            reason = "not_a_digest"
        elif attachment.artifact_id in ambiguous:
            reason = "same_reference_twice"
        elif attachment.artifact_id in seen:
            reason = "duplicate"
        if digest is None or reason is not None:
            yield Omission(kind="evidence", id=ref, stage="evidence", reason=reason or "", at=at)
            continue
        seen.add(attachment.artifact_id)
        content_hash = f"sha256:{digest[1]}"
        yield AttachedEvidence(
            admitted=AdmittedEvidence(evidence_ref=ref, source=None, at=at, closes=None, hash=content_hash),
            content=quote_json(
                {"artifact_id": masked.artifact_id, "media_type": masked.media_type, "sha256": content_hash}
            ),
        )


# --- conflicts --------------------------------------------------------------------------------------------------------


class ConflictSummary(Value, frozen=True):
    """Every declared conflict, and the reason to omit each piece that lost or is in an open conflict."""

    markers: tuple[EvidenceConflictMarker, ...]
    reasons: dict[str, str]


def find_conflicts(items: Iterable[Evidence], required: frozenset[str]) -> ConflictSummary:
    """Find the declared conflicts. Either side may declare one; different resolutions leave it open."""
    declared: dict[tuple[str, str], set[tuple[str | None, str | None]]] = {}
    needed: set[str] = set()
    for item in items:
        if item.type in required:
            needed.add(item.evidence_ref)
        for conflict in item.conflicts:
            first, second = sorted((item.evidence_ref, conflict.evidence_ref))
            declared.setdefault((first, second), set()).add(_resolution(conflict, item))
    markers: list[EvidenceConflictMarker] = []
    reasons: dict[str, str] = {}
    for pair, resolutions in declared.items():
        selected, by = resolutions.pop() if len(resolutions) == 1 else (None, None)
        is_required = not needed.isdisjoint(pair)
        if selected in pair and by is not None:
            loser = pair[0] if selected == pair[1] else pair[1]
            # A self-conflict has no loser.
            if loser != selected:
                reasons.setdefault(loser, "superseded")
        else:
            selected = by = None
            if is_required:
                reasons.update(dict.fromkeys(pair, "conflict_unresolved"))
        markers.append(
            EvidenceConflictMarker(evidence_refs=pair, required=is_required, selected=selected, resolution_ref=by)
        )
    return ConflictSummary(markers=tuple(markers), reasons=reasons)


def _resolution(conflict: EvidenceConflict, item: Evidence) -> tuple[str | None, str | None]:
    """The selected piece and the reference of the resolution; None for both without a valid one.

    A valid one names both, and a trusted piece declares it. An altered piece is not trusted, and a blank is no name.
    """
    selected, by = conflict.selected, conflict.resolution_ref
    if selected is None or by is None or item.trust not in _CLOSING_TRUSTS or is_blank(by) or is_altered(item):
        return None, None
    return selected, by


# --- the stage --------------------------------------------------------------------------------------------------------


def admit_evidence(draft: Draft) -> Draft:
    """Admit or omit every piece of evidence and every attachment, each omission with its reason.

    Pieces that can close a gate come first, then the others in the given order, attachments last.
    """
    items = draft.inputs.evidence
    required = tuple(dict.fromkeys((*draft.intent.required_evidence, *draft.decision.requires)))
    names = frozenset(required)
    _refuse_other_tenants(items, draft.inputs.run_context.tenant_id)
    conflicts = find_conflicts((item for item in items if isinstance(item, Evidence)), names)
    typed, ambiguous = _by_reference(items)
    admitted: list[tuple[EvidenceInput | AttachedEvidence, AdmittedEvidence]] = []
    omitted: list[Omission] = []
    seen: set[str] = set()
    doubtful: dict[str, list[Unanswering]] = {}
    refused: dict[str, list[Unanswering]] = {}
    for n, (evidence, masked) in enumerate(zip(items, draft.shown.evidence, strict=True)):
        ref, at = _ref(evidence), f"evidence#/{n}"
        shown_ref = ref if masked is evidence else _ref(masked)
        name = evidence.type if isinstance(evidence, Evidence) and evidence.type in names else None
        reason = _own_rejection(evidence, ref, draft) or conflicts.reasons.get(ref)
        if reason is None and ref in ambiguous:
            reason = "same_reference_twice"
        elif reason is None and (ref in seen or (ref in typed and isinstance(evidence, str))):
            reason = "duplicate"
        if reason is not None:
            # A reference is shown whole, because readers look it up; a text that is none may have any length.
            listed_ref = shown_ref[:_ID_LENGTH] if reason == "not_a_reference" else shown_ref
            omitted.append(Omission(kind="evidence", id=listed_ref, stage="evidence", reason=reason, at=at))
            _add_unanswering(refused, name, shown_ref, reason, at)
            continue
        seen.add(ref)
        doubt = _doubt_reason(evidence, draft)
        _add_unanswering(doubtful, name, shown_ref, doubt, at)
        source = masked.source if isinstance(masked, Evidence) else None
        entry = AdmittedEvidence(evidence_ref=shown_ref, source=source, at=at, closes=None if doubt else name)
        admitted.append((masked, entry))
    # A stable sort: pieces that close a gate keep their order, and so do the others.
    admitted.sort(key=lambda pair: pair[1].closes is None)
    for attached in admit_attachments(draft):
        if isinstance(attached, Omission):
            omitted.append(attached)
        else:
            admitted.append((attached, attached.admitted))
    markers = tuple(_mask_marker(marker, draft.masked_refs) for marker in conflicts.markers)
    part = EvidencePart(
        required=required,
        admitted=tuple(entry for _, entry in admitted),
        blocks=_blocks(draft, [piece for piece, _ in admitted]),
        conflicts=markers,
        doubtful={name: tuple(pieces) for name, pieces in doubtful.items()},
        refused={name: tuple(pieces) for name, pieces in refused.items()},
        omitted=tuple(omitted),
        notes=tuple(
            f"{' and '.join(marker.evidence_refs)} contradict each other" for marker in markers if not marker.selected
        ),
    )
    return replace(draft, evidence=part)


def _mask_marker(marker: EvidenceConflictMarker, refs: Mapping[str, str]) -> EvidenceConflictMarker:
    """The marker of a conflict with masked references."""
    if not refs:
        return marker
    first, second = marker.evidence_refs
    selected, by = marker.selected, marker.resolution_ref
    return replace(
        marker,
        evidence_refs=(refs.get(first, first), refs.get(second, second)),
        selected=selected and refs.get(selected, selected),
        resolution_ref=by and refs.get(by, by),
    )


def _refuse_other_tenants(items: Iterable[EvidenceInput], tenant_id: str) -> None:
    for n, evidence in enumerate(items):
        if isinstance(evidence, Evidence) and evidence.tenant_id != tenant_id:
            raise EvidenceOfAnotherTenant(
                f"this evidence is of {evidence.tenant_id}, the run of {tenant_id}",
                at=f"evidence#/{n}/tenant_id",
                hint="gather evidence within the tenant of the run",
            )


def _by_reference(items: Iterable[EvidenceInput]) -> tuple[dict[str, Evidence], frozenset[str]]:
    """The typed pieces by reference, and the references that different pieces share, which are ambiguous."""
    first: dict[str, Evidence] = {}
    ambiguous = set()
    for item in items:
        if isinstance(item, Evidence) and first.setdefault(item.evidence_ref, item) != item:
            ambiguous.add(item.evidence_ref)
    return first, frozenset(ambiguous)


def _own_rejection(evidence: EvidenceInput, ref: str, draft: Draft) -> str | None:
    """Why a piece is not shown, regardless of the other pieces; None if it may be."""
    scope = draft.scope.scope
    if not EvidenceRef.has_form(ref):
        return "not_a_reference"
    if isinstance(evidence, Evidence):
        ceiling = draft.inputs.view.pack.pack_meta.data_classification
        return rejection_reason(evidence, scope, ceiling, draft.inputs.as_of)
    return scope_rejection(evidence, scope)


def _doubt_reason(evidence: EvidenceInput, draft: Draft) -> str | None:
    """Why a piece cannot close a gate; None if it can."""
    match evidence:
        case str():
            return "untyped"
        case Evidence() if evidence.trust not in _CLOSING_TRUSTS:
            return f"trust_{evidence.trust}"
        case Evidence() if evidence_age(evidence.freshness, draft.inputs.as_of) != "current":
            return "freshness_unknown"
        case Evidence():
            return None if _fits_reference(evidence, draft) else "other_source"
        case unreachable:
            assert_never(unreachable)


def _fits_reference(evidence: Evidence, draft: Draft) -> bool:
    """Whether the reference of a piece agrees with its type: a result is of a tool that produces it."""
    kind, _, target = evidence.evidence_ref.partition(":")
    if kind != "tool":
        return True
    call, _, part = target.partition("#")
    producers = draft.inputs.view.evidence_producers
    is_of_another = part != evidence.type and part in producers.names
    return not is_of_another and producers.may_be_result(evidence.type, call.partition(":")[0])


def _add_unanswering(
    pieces: dict[str, list[Unanswering]], name: str | None, ref: str, reason: str | None, at: str
) -> None:
    """Add a piece to those that have a required name but do not answer it."""
    if name is not None and reason is not None:
        pieces.setdefault(name, []).append(Unanswering(evidence_ref=ref, reason=reason, at=at))


def _ref(evidence: EvidenceInput) -> str:
    return evidence.evidence_ref if isinstance(evidence, Evidence) else evidence


def _blocks(draft: Draft, shown: list[EvidenceInput | AttachedEvidence]) -> tuple[ContextBlock, ...]:
    tokens, ceiling = draft.inputs.tokens, draft.inputs.view.pack.pack_meta.data_classification
    blocks = []
    for n, piece in enumerate(shown):
        kind: str | None = None
        trust: Trust = "unknown"
        match piece:
            case Evidence():
                ref, content, classification, kind = piece.evidence_ref, piece.content, piece.classification, piece.type
                trust = piece.trust if piece.trust in _TRUSTS else "unknown"
            case AttachedEvidence():
                ref, content, classification = piece.admitted.evidence_ref, piece.content, ceiling
            case str():
                ref, content, classification = piece, piece, ceiling
            case unreachable:
                assert_never(unreachable)
        block = data_block(
            f"ev_{n}",
            "evidence",
            content,
            tokens,
            classification=classification,
            refs=(ref,),
            evidence_type=kind,
            trust=trust,
        )
        blocks.append(block)
    return tuple(blocks)
