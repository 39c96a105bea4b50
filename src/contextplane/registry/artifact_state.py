"""The lifecycle before publication, as a table and as a fold.

A state belongs to a digest: new bytes start at draft.

    draft -> linted -> reviewed -> signed -> published -> pinned -> observed -> promoted | rolled back
    draft | linted | reviewed | signed -> withdrawn -> draft
                                             published -> deprecated -> revoked

The fold is pure: verified events in, a state out. The same events always give the same state.

If the key of an event is revoked from a time before it, the event loses its effect. What others built on it stays
readable and has no effect either. The state that ignores revocations is carried beside the current one.

Rotations count as of the time of an event, so that a later rotation undoes nothing. `after_rotations` applies those
that are known by the time of the caller.
"""

from collections.abc import Callable
from typing import Literal

from msgspec.structs import replace

from contextplane.model.artifact import ArtifactKind
from contextplane.model.ids import Digest, PackRef
from contextplane.model.keys import OWNER
from contextplane.model.value import Value
from contextplane.registry.authority import PUBLISHER
from contextplane.registry.errors import ActorNotAllowed, ArtifactUnknown, TransitionRefused
from contextplane.registry.events import (
    CatalogReference,
    Change,
    Drafted,
    DraftListed,
    EventInvalid,
    Linted,
    Review,
    Signed,
    Verdict,
    Withdrawn,
    kind_of,
)
from contextplane.registry.verified_event import Actor, Scope, VerifiedEvent

__all__ = [
    "ALLOWED_STAGES",
    "REQUIRED_REVIEWS",
    "REVIEW_ROLES",
    "ArtifactState",
    "DraftsState",
    "ReviewRecord",
    "RotationLookup",
    "Stage",
    "is_allowed",
    "refuse_transition",
]

REVIEW_ROLES = ("architecture", "security", "data", "evaluation")
"""The roles of reviewers. A reviewer counts for one of them only."""

REQUIRED_REVIEWS: dict[ArtifactKind, tuple[str, ...]] = {
    "context_pack": REVIEW_ROLES,
    "overlay": ("architecture", "security"),
    "decision_catalog": ("architecture", "security"),
}
"""The roles that must review every artifact of a kind, whatever changed."""

RotationLookup = Callable[[str], frozenset[str]]
"""Maps a key id to all keys linked to it by rotation, itself included."""

Stage = Literal["unknown", "draft", "linted", "reviewed", "signed", "withdrawn", "published", "deprecated", "revoked"]

ALLOWED_STAGES: dict[str, tuple[Stage, ...]] = {
    "drafted": ("unknown", "withdrawn"),
    "linted": ("draft", "linted", "reviewed", "signed"),
    "reviewed": ("linted", "reviewed", "signed"),
    "signed": ("reviewed", "signed"),
    "draft_withdrawn": ("draft", "linted", "reviewed", "signed"),
    "published": ("signed",),
    "deprecated": ("published",),
    "revoked": ("published", "deprecated"),
    "refresh_required": ("published", "deprecated"),
    "refresh_reported": ("published", "deprecated"),
    "incident_opened": ("published", "deprecated", "revoked"),
    "incident_closed": ("published", "deprecated", "revoked"),
    "observed": ("published", "deprecated"),
    "pinned": ("published",),
    "rolled_back": ("published", "deprecated"),
    "promoted": ("published",),
    "alias_set": ("published", "deprecated"),
}
"""Maps a change to the stages in which it may be made. A change that is not listed does not depend on the stage."""


def is_allowed(kind: str, stage: Stage) -> bool:
    """Whether a change may be made in a stage."""
    return kind not in ALLOWED_STAGES or stage in ALLOWED_STAGES[kind]


def refuse_transition(kind: str, stage: Stage, *, at: str, hint: str = "") -> None:
    """Refuse a change that this stage does not allow."""
    if not is_allowed(kind, stage):
        raise TransitionRefused(
            f"it is {stage}, and the step '{kind}' is possible only from {' or '.join(ALLOWED_STAGES[kind])}",
            at=at,
            hint=hint or "the order is draft, linted, reviewed, signed, published, pinned",
            details={"change": kind, "stage": stage, "allowed_in": list(ALLOWED_STAGES[kind])},
        )


class ReviewRecord(Value, frozen=True):
    """The last verdict of a reviewer, and its role. `roles`: all that the key had then.

    It `counts` unless the key is the author's, or was revoked by then.
    """

    key_id: str
    role: str
    verdict: Verdict
    roles: tuple[str, ...]
    reason: str
    at: str
    counts: bool


class DraftsState(Value, frozen=True):
    """The digests that were listed as drafts of one version, in order."""

    ref: PackRef
    seq: int = 0
    head: str = ""
    digests: tuple[Digest, ...] = ()

    def scope_of(self, change: Change) -> Scope:  # noqa: ARG002  anybody may list a draft
        return Scope()

    def after_event(self, verified: VerifiedEvent) -> "DraftsState":
        change = verified.change
        if not isinstance(change, DraftListed):
            raise EventInvalid(f"{kind_of(change)} is no change of drafts", at=verified.event.subject)
        digests = tuple(dict.fromkeys((*self.digests, Digest.parse(change.digest))))
        return replace(self, seq=verified.event.seq, head=verified.digest, digests=digests)


class ArtifactState(Value, frozen=True):
    """A digest before publication.

    `author`: the key that recorded it first, also if it was withdrawn and recorded again.
    `needed`: the roles that must review it. `signers`: the keys that signed it.
    `unrevoked`: the state that ignores revocations; None if it is the same.
    """

    digest: Digest
    stage: Stage = "unknown"
    seq: int = 0
    head: str = ""
    kind: ArtifactKind = "context_pack"
    ref: PackRef | None = None
    issuer: str = ""
    author: str = ""
    needed: tuple[str, ...] = ()
    report: str = ""
    catalogs: tuple[CatalogReference, ...] = ()
    reviews: tuple[ReviewRecord, ...] = ()
    envelope: str = ""
    threshold: int = 1
    signers: tuple[str, ...] = ()
    unrevoked: "ArtifactState | None" = None

    @property
    def ignoring_revocations(self) -> "ArtifactState":
        """The state as if no key had been revoked since."""
        return self.unrevoked or self

    @property
    def name(self) -> PackRef:
        """The reference under which its author recorded it."""
        if self.ref is None:
            raise ArtifactUnknown("it is not recorded", at=str(self.digest), hint="'ctx lint FILE --record' records it")
        return self.ref

    @property
    def missing(self) -> tuple[str, ...]:
        """The roles whose review is still needed. A reviewer with several roles counts for the one named.

        The owner's role of a DecisionSpec is satisfied by any reviewer who has it.
        """
        named = {approval.role for approval in self.approvals}
        held = {role for approval in self.approvals for role in approval.roles}
        return tuple(role for role in self.needed if role not in (named if role in REVIEW_ROLES else held))

    @property
    def approvals(self) -> tuple[ReviewRecord, ...]:
        """The approvals that count."""
        return tuple(review for review in self.reviews if review.verdict == "approve" and review.counts)

    @property
    def rejected(self) -> tuple[ReviewRecord, ...]:
        """Rejections that stand until their reviewer approves. Those of untrusted keys do not stand."""
        rejections = (review for review in self.reviews if review.verdict == "reject" and review.counts)
        return tuple(review for review in rejections if review.role in self.needed)

    def after_rotations(self, rotated_keys: RotationLookup) -> "ArtifactState":
        """Attribute keys to people: of several reviews of one person the last counts, of the author none."""
        reviews: list[ReviewRecord] = []
        for review in self.reviews:
            linked = rotated_keys(review.key_id)
            counts = review.counts and self.author not in linked
            reviews = [*(other for other in reviews if other.key_id not in linked), replace(review, counts=counts)]
        unrevoked = None if self.unrevoked is None else self.unrevoked.after_rotations(rotated_keys)
        if tuple(reviews) == self.reviews:
            return replace(self, unrevoked=unrevoked)
        return _with_review_stage(replace(self, reviews=tuple(reviews), unrevoked=unrevoked))

    def scope_of(self, change: Change) -> Scope:
        """The issuer of the artifact that a change is about."""
        return Scope(issuer=change.issuer if isinstance(change, Drafted) else self.issuer)

    def after_event(self, verified: VerifiedEvent) -> "ArtifactState":
        """Fold one more event, or refuse it."""
        if self.unrevoked is None and not verified.by.revoked:
            return self._after(verified)
        # It was allowed when it was written if it is allowed in one of the two: revocations only grow.
        trusted = replace(verified, by=replace(verified.by, revoked=False))
        now, unrevoked = _after_or_none(self, verified), _after_or_none(self.ignoring_revocations, trusted)
        if now is None and unrevoked is None:
            return self._after(verified)
        now = now or replace(self, seq=verified.event.seq, head=verified.digest)
        return replace(now, unrevoked=unrevoked or self.ignoring_revocations)

    def _after(self, verified: VerifiedEvent) -> "ArtifactState":
        change = verified.change
        if not isinstance(change, Drafted | Linted | Review | Signed | Withdrawn):
            raise EventInvalid(f"{kind_of(change)} is no change of an artifact", at=verified.event.subject)
        refuse_transition(kind_of(change), self.stage, at=str(self.ref or self.digest))
        state = replace(self, seq=verified.event.seq, head=verified.digest)
        match change:
            case Drafted():
                return ArtifactState(
                    digest=self.digest,
                    stage="draft",
                    seq=state.seq,
                    head=state.head,
                    kind=change.kind,
                    ref=PackRef(change.id, change.version),
                    issuer=change.issuer,
                    author=self.author or verified.by.key_id,
                )
            case Linted():
                needed = tuple(dict.fromkeys((*REQUIRED_REVIEWS[self.kind], *change.roles)))
                return _with_review_stage(replace(state, report=change.report, needed=needed, catalogs=change.catalogs))
            case Review():
                return _with_review_stage(replace(state, reviews=_with_review(self, change, verified)))
            case Signed():
                return _with_signature(state, change, verified.by)
            case Withdrawn():
                self._check_withdrawal(verified.by)
                return state if verified.by.revoked else replace(state, stage="withdrawn")

    def _check_withdrawal(self, actor: Actor) -> None:
        """Refuse a withdrawal by a key that is neither the author's nor of a publisher of the issuer."""
        is_publisher = actor.holds(PUBLISHER, self.issuer) or actor.holds(OWNER, self.issuer)
        if self.author not in actor.rotated_keys and not is_publisher:
            raise ActorNotAllowed(
                f"key {actor.key_id[:16]} may not withdraw it: this needs its author, or a publisher of {self.issuer}",
                at=str(self.ref),
                hint="'ctx keys list' shows the roles of keys",
                details={"key_id": actor.key_id, "change": "draft_withdrawn", "issuer": self.issuer},
            )


def _after_or_none(state: ArtifactState, verified: VerifiedEvent) -> ArtifactState | None:
    try:
        return state._after(verified)  # noqa: SLF001  the same class
    except (TransitionRefused, ActorNotAllowed):
        return None


def _with_review(state: ArtifactState, change: Review, verified: VerifiedEvent) -> tuple[ReviewRecord, ...]:
    """Add a review. It replaces earlier ones of the same person, by any key of that person."""
    by = verified.by
    latest = ReviewRecord(
        key_id=by.key_id,
        role=change.role,
        verdict=change.verdict,
        roles=_review_roles(state, verified),
        reason=verified.event.reason,
        at=verified.event.at,
        counts=not by.revoked and state.author not in by.rotated_keys,
    )
    return (*(review for review in state.reviews if review.key_id not in by.rotated_keys), latest)


def _review_roles(state: ArtifactState, verified: VerifiedEvent) -> tuple[str, ...]:
    """The roles that a reviewer has with the issuer of the artifact; in the first format, with any issuer."""
    grants = verified.by.grants
    return tuple(
        sorted(
            {
                role
                for grant in grants
                if verified.is_first_format or grant.issuer == state.issuer
                for role in grant.roles
            }
        )
    )


def _with_review_stage(state: ArtifactState) -> ArtifactState:
    """Set the stage: reviewed if no role is missing and no rejection stands; else signatures are void."""
    if state.stage == "withdrawn":
        return state
    if state.missing or state.rejected:
        return replace(state, stage="linted", signers=(), envelope="")
    return state if state.stage == "signed" else replace(state, stage="reviewed")


def _with_signature(state: ArtifactState, change: Signed, actor: Actor) -> ArtifactState:
    # A person counts once, however many keys they have.
    others = tuple(signer for signer in state.signers if signer not in actor.rotated_keys)
    signers = state.signers if actor.revoked else (*others, actor.key_id)
    enough = len(signers) >= change.threshold
    return replace(
        state,
        stage="signed" if enough else "reviewed",
        signers=signers,
        threshold=change.threshold,
        envelope=change.envelope,
    )
