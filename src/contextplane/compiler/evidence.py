"""Stage `evidence`: what may be shown of what was gathered, and what of it can close a gate.

Whether a piece of evidence or a memory may be shown. Each that may not be has one reason.

Attachments of a request: evidence of which only a reference and a digest are known. Their content is not opened.

Contradictions between pieces of evidence: which are open, and what a resolved one leaves standing.
"""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from msgspec.structs import replace

from contextplane.compiler.draft import Admitted, Draft, EvidencePart
from contextplane.compiler.errors import EvidenceOfAnotherTenant
from contextplane.compiler.hashing import text_digest
from contextplane.compiler.prompt import data_block
from contextplane.compiler.quoting import quoted_json
from contextplane.model.compiled_context import ContextBlock, IntelligenceScope, Omission
from contextplane.model.evidence import (
    Evidence,
    EvidenceConflict,
    EvidenceConflictMarker,
    EvidenceInput,
    Freshness,
    Trust,
    Unanswering,
)
from contextplane.model.ids import EvidenceRef
from contextplane.model.terms import DataClassification
from contextplane.model.timestamp import InvalidTimestamp, Timestamp
from contextplane.model.value import Value

if TYPE_CHECKING:
    from contextplane.model.invoke import Attachment

__all__ = [
    "Age",
    "Attached",
    "Conflicts",
    "age",
    "attachments",
    "classified_above",
    "conflicts_among",
    "evidence",
    "evidence_refused",
    "is_altered",
    "out_of_scope",
    "says_nothing",
]

Age = Literal["current", "stale", "not_yet", "unknown"]

_LEVELS: dict[DataClassification, int] = {"PUBLIC": 0, "INTERNAL": 1, "CONFIDENTIAL": 2, "RESTRICTED": 3}
_SNAPSHOT = "snapshot_"

# What shows nothing: blanks of every kind, controls, marks without width; written down, as in `quoting`. And what JSON
# is made of besides names and values, in whatever nesting. Each run is taken whole or not at all, so that a long one
# costs no more than its length.
_SAYS_NOTHING = (
    "\x00-\x20\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f\u2000-\u200f\u2028-\u202f\u205f-\u206f"
    "\u2800\u3000\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    r'\U000e0000-\U000e0fff\[\]{}",'
)
_EMPTY = re.compile(rf"(?:[{_SAYS_NOTHING}]++|null)*+")


def evidence_refused(
    item: Evidence, scope: IntelligenceScope, ceiling: DataClassification, as_of: Timestamp | None
) -> str | None:
    """Why this piece is not shown, whatever the others say; None when it may be.

    One that says nothing, not even where it is JSON, answers nothing: no result is not a result.
    """
    if is_altered(item):
        return "content_altered"
    if says_nothing(item.content):
        return "empty"
    reason = out_of_scope(item.evidence_ref, scope)
    if reason is not None:
        return reason
    if classified_above(item.classification, ceiling):
        return "classification_above_pack"
    how_old = age(item.freshness, as_of)
    return {"stale": "stale", "not_yet": "observed_later"}.get(how_old)


def is_altered(item: Evidence) -> bool:
    """Whether its content is another than the one that it was given its hash for."""
    return item.content_hash is not None and item.content_hash != text_digest(item.content)


def says_nothing(text: str) -> bool:
    return _EMPTY.fullmatch(text) is not None


def out_of_scope(ref: str, scope: IntelligenceScope) -> str | None:
    """Of the graph, only what the pack's namespaces and the one snapshot of this run hold is in scope."""
    kind, _, rest = ref.partition(":")
    if kind != "kg":
        return None
    thing, _, part = rest.partition("#")
    if thing.partition(":")[0] not in scope.ceid_namespaces:
        return "namespace_not_in_scope"
    if scope.snapshot is None:
        return "snapshot_unresolved"
    return None if part == _SNAPSHOT + scope.snapshot else "other_snapshot"


def classified_above(classification: DataClassification, ceiling: DataClassification) -> bool:
    return _LEVELS.get(classification, len(_LEVELS)) > _LEVELS[ceiling]


def age(freshness: Freshness | None, as_of: Timestamp | None) -> Age:
    """How old it is at the moment of the compile. Without a moment, or without times, nobody knows."""
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


_DIGEST = re.compile(r"(?:sha256:)?([0-9a-f]{64})")


class Attached(NamedTuple):
    """An attachment that may be shown, and what is shown of it."""

    admitted: Admitted
    content: str


def attachments(draft: Draft) -> Iterator[Attached | Omission]:
    """Every attachment, in the given order: it is shown, or omitted with its reason.

    What is shown never holds the address: that may be signed, and whoever has it can read what it leads to.
    """
    attachments = draft.inputs.request.attachments
    first: dict[str, Attachment] = {}
    seen: set[str] = set()
    clashing = {one.artifact_id for one in attachments if first.setdefault(one.artifact_id, one) != one}
    for n, attachment in enumerate(attachments):
        ref, at, digest = (
            f"attachment:{attachment.artifact_id}",
            f"request#/attachments/{n}",
            _DIGEST.fullmatch(attachment.sha256),
        )
        reason = None
        if digest is None:
            reason = "not_a_digest"
        elif attachment.artifact_id in clashing:
            reason = "same_reference_twice"
        elif attachment.artifact_id in seen:
            reason = "duplicate"
        if digest is None or reason is not None:
            yield Omission(kind="evidence", id=ref, stage="evidence", reason=reason or "", at=at)
            continue
        seen.add(attachment.artifact_id)
        named = f"sha256:{digest[1]}"
        yield Attached(
            admitted=Admitted(evidence_ref=ref, source=None, at=at, closes=None, hash=named),
            content=quoted_json(
                {"artifact_id": attachment.artifact_id, "media_type": attachment.media_type, "sha256": named}
            ),
        )


_DECIDING = frozenset({"authoritative", "verified"})


class Conflicts(Value, frozen=True):
    """Every conflict that was declared, and the reason to leave out a piece that lost, or that nobody decided on."""

    markers: tuple[EvidenceConflictMarker, ...]
    against: dict[str, str]


def conflicts_among(items: Iterable[Evidence], required: frozenset[str]) -> Conflicts:
    """A conflict concerns both sides, whichever declares it. Two sides that resolve it differently leave it open."""
    said: dict[tuple[str, str], set[tuple[str | None, str | None]]] = {}
    needed: set[str] = set()
    for item in items:
        if item.type in required:
            needed.add(item.evidence_ref)
        for conflict in item.conflicts:
            first, second = sorted((item.evidence_ref, conflict.evidence_ref))
            said.setdefault((first, second), set()).add(_resolution(conflict, item))
    markers: list[EvidenceConflictMarker] = []
    against: dict[str, str] = {}
    for pair, resolutions in said.items():
        selected, by = resolutions.pop() if len(resolutions) == 1 else (None, None)
        is_required = not needed.isdisjoint(pair)
        if selected in pair and by is not None:
            loser = pair[0] if selected == pair[1] else pair[1]
            # A self-conflict has no loser.
            if loser != selected:
                against.setdefault(loser, "superseded")
        else:
            selected = by = None
            if is_required:
                against.update(dict.fromkeys(pair, "conflict_unresolved"))
        markers.append(
            EvidenceConflictMarker(evidence_refs=pair, required=is_required, selected=selected, resolution_ref=by)
        )
    return Conflicts(markers=tuple(markers), against=against)


def _resolution(conflict: EvidenceConflict, item: Evidence) -> tuple[str | None, str | None]:
    """Only one that names both is one, and that a trusted piece declares: no other can take the place of anything.

    A piece that was altered is trusted by nobody, and who decided is not told by blanks.
    """
    selected, by = conflict.selected, conflict.resolution_ref
    if selected is None or by is None or item.trust not in _DECIDING or says_nothing(by) or is_altered(item):
        return None, None
    return selected, by


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
    conflicts = conflicts_among((item for item in items if isinstance(item, Evidence)), names)
    typed, clashing = _by_reference(items)
    admitted: list[tuple[EvidenceInput | Attached, Admitted]] = []
    omitted: list[Omission] = []
    seen: set[str] = set()
    doubtful: dict[str, list[Unanswering]] = {}
    refused: dict[str, list[Unanswering]] = {}
    for n, evidence in enumerate(items):
        ref, at = _ref(evidence), f"evidence#/{n}"
        name = evidence.type if isinstance(evidence, Evidence) and evidence.type in names else None
        reason = _refused(evidence, draft) or conflicts.against.get(ref)
        if reason is None and ref in clashing:
            reason = "same_reference_twice"
        elif reason is None and (ref in seen or (isinstance(evidence, str) and ref in typed)):
            reason = "duplicate"
        if reason is not None:
            # A reference is told whole, because others look for it; what is none may be of any length.
            told = ref[:_SHOWN] if reason == "not_a_reference" else ref
            omitted.append(Omission(kind="evidence", id=told, stage="evidence", reason=reason, at=at))
            _note(refused, name, ref, reason, at)
            continue
        seen.add(ref)
        doubt = _doubt(evidence, draft)
        _note(doubtful, name, ref, doubt, at)
        admitted.append(
            (evidence, Admitted(evidence_ref=ref, source=_source(evidence), at=at, closes=None if doubt else name))
        )
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
            f"{' and '.join(marker.evidence_refs)} contradict each other"
            for marker in conflicts.markers
            if not marker.selected
        ),
    )
    return replace(draft, evidence=part)


def _refuse_other_tenants(items: Iterable[EvidenceInput], tenant_id: str) -> None:
    for n, evidence in enumerate(items):
        if isinstance(evidence, Evidence) and evidence.tenant_id != tenant_id:
            raise EvidenceOfAnotherTenant(
                f"this evidence is of {evidence.tenant_id}, the run of {tenant_id}",
                at=f"evidence#/{n}/tenant_id",
                hint="gather evidence within the tenant of the run",
            )


def _by_reference(items: Iterable[EvidenceInput]) -> tuple[dict[str, Evidence], frozenset[str]]:
    """The typed pieces, and references under which different ones were given: nobody knows which of them is meant."""
    first: dict[str, Evidence] = {}
    clashing = set()
    for item in items:
        if isinstance(item, Evidence) and first.setdefault(item.evidence_ref, item) != item:
            clashing.add(item.evidence_ref)
    return first, frozenset(clashing)


def _refused(evidence: EvidenceInput, draft: Draft) -> str | None:
    """Why this piece is not shown, by itself."""
    scope = draft.scope.scope
    if EvidenceRef.PATTERN.fullmatch(_ref(evidence)) is None:
        return "not_a_reference"
    if isinstance(evidence, Evidence):
        ceiling = draft.inputs.view.pack.pack_meta.data_classification
        return evidence_refused(evidence, scope, ceiling, draft.inputs.as_of)
    return out_of_scope(evidence, scope)


def _doubt(evidence: EvidenceInput, draft: Draft) -> str | None:
    """Why this piece cannot close a gate; None when it can."""
    if not isinstance(evidence, Evidence):
        return "untyped"
    if evidence.trust not in _CLOSING:
        return f"trust_{evidence.trust}"
    return None if age(evidence.freshness, draft.inputs.as_of) == "current" else "freshness_unknown"


def _note(found: dict[str, list[Unanswering]], name: str | None, ref: str, reason: str | None, at: str) -> None:
    """Remember of a required name that this piece does not answer it."""
    if name is not None and reason is not None:
        found.setdefault(name, []).append(Unanswering(evidence_ref=ref, reason=reason, at=at))


def _ref(evidence: EvidenceInput) -> str:
    return evidence.evidence_ref if isinstance(evidence, Evidence) else evidence


def _source(evidence: EvidenceInput) -> str | None:
    return evidence.source if isinstance(evidence, Evidence) else None


def _blocks(draft: Draft, shown: list[EvidenceInput | Attached]) -> tuple[ContextBlock, ...]:
    tokens, ceiling = draft.inputs.tokens, draft.inputs.view.pack.pack_meta.data_classification
    blocks = []
    for n, evidence in enumerate(shown):
        name = f"ev_{n}"
        if isinstance(evidence, Evidence):
            block = data_block(
                name,
                "evidence",
                evidence.content,
                tokens,
                classification=evidence.classification,
                refs=(evidence.evidence_ref,),
                evidence_type=evidence.type,
                trust=evidence.trust if evidence.trust in _TRUSTS else "unknown",
            )
        else:
            ref, content = (
                (evidence, evidence)
                if isinstance(evidence, str)
                else (evidence.admitted.evidence_ref, evidence.content)
            )
            block = data_block(name, "evidence", content, tokens, classification=ceiling, refs=(ref,), trust="unknown")
        blocks.append(block)
    return tuple(blocks)
