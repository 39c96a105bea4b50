"""Compares and verifies revisions of handoff packs."""

from contextplane.app.handoff.revisions import select_revision
from contextplane.app.handoff.session import HandoffSession
from contextplane.audit.handoff import HandoffChange, HandoffVerdict, diff_handoffs, verify_handoff
from contextplane.handoff.reader import SelectedPack
from contextplane.model.reference import HandoffRef

__all__ = ["HandoffChange", "HandoffVerdict", "SelectedPack", "diff_handoffs", "select_pair", "verify_revisions"]


def select_pair(session: HandoffSession, a: HandoffRef, b: HandoffRef) -> tuple[SelectedPack, SelectedPack]:
    return select_revision(session, str(a)), select_revision(session, str(b))


def verify_revisions(session: HandoffSession, ref: HandoffRef) -> HandoffVerdict:
    """Hash every kept revision of a pack again, or the named one, and check its history."""
    platform = session.require_store(str(ref.id))
    return verify_handoff(ref.id, ref.revision, catalog=platform.catalog, objects=platform.objects)
