"""Contradictions between pieces of evidence: which are open, and what a resolved one leaves standing."""

from collections.abc import Iterable

from contextplane.compiler.admission import is_altered, says_nothing
from contextplane.model.evidence import Evidence, EvidenceConflict
from contextplane.model.evidence_gate import EvidenceConflictMarker
from contextplane.model.value import Value

__all__ = ["Conflicts", "conflicts_among"]

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
