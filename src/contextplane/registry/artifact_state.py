"""The lifecycle, as a table and as a fold. Before publication, a state belongs to a digest: new bytes start at draft.

    draft -> linted -> reviewed -> signed -> published -> pinned -> observed -> promoted | rolled back
                                             published -> deprecated -> revoked

It reads nothing: events that were checked come in, a state comes out. The same events always give the same state.

A key that is revoked from before an event on takes away what that event made possible. What others did upon it is on
record and stays readable, and stands for nothing: the state as it looked before is kept beside the one of today.

Who is whose key is that of the time of an event, so that a rotation later on unmakes nothing that was done; whoever
goes on from a state asks what was known by then (`as_known`).
"""

from collections.abc import Callable
from typing import Literal

from msgspec.structs import replace

from contextplane.model.artifact import ArtifactKind
from contextplane.model.ids import Digest, PackRef
from contextplane.model.value import Value
from contextplane.registry.errors import ArtifactUnknown, TransitionRefused
from contextplane.registry.events import (
    Actor,
    Change,
    Drafted,
    EventInvalid,
    Happened,
    JudgedWith,
    Linted,
    Review,
    Signed,
    Verdict,
    kind_of,
)

__all__ = ["FOUR", "FROM", "REVIEWS", "ArtifactState", "Kin", "Reviewed", "Stage", "allowed", "refuse_transition"]

FOUR = ("architecture", "security", "data", "evaluation")
"""The roles of reviewers. Whoever reviews in one of them counts for that one and no other of them."""

REVIEWS: dict[ArtifactKind, tuple[str, ...]] = {
    "context_pack": FOUR,
    "overlay": ("architecture", "security"),
    "decision_catalog": ("architecture", "security"),
}
"""Which of them every artifact of a kind needs, whatever changed."""

Kin = Callable[[str], frozenset[str]]
"""The keys of whoever has a key, itself among them."""

Stage = Literal["unknown", "draft", "linted", "reviewed", "signed", "published", "deprecated", "revoked"]

FROM: dict[str, tuple[Stage, ...]] = {
    "drafted": ("unknown",),
    "linted": ("draft", "linted", "reviewed", "signed"),
    "reviewed": ("linted", "reviewed", "signed"),
    "signed": ("reviewed", "signed"),
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
"""In which stages of a digest or a version a change may be made. What is not in it does not depend on the stage."""


def allowed(kind: str, stage: Stage) -> bool:
    return kind not in FROM or stage in FROM[kind]


def refuse_transition(kind: str, stage: Stage, *, at: str, hint: str = "") -> None:
    """Refuse a change that this stage does not allow."""
    if not allowed(kind, stage):
        raise TransitionRefused(
            f"{kind} takes {' or '.join(FROM[kind])}, and it is {stage}",
            at=at,
            hint=hint or "the order is draft, linted, reviewed, signed, published, pinned",
            details={"change": kind, "stage": stage, "allowed_in": list(FROM[kind])},
        )


class Reviewed(Value, frozen=True):
    """What a reviewer last said, and in which role. `roles`: all that the key had then.

    It `counts` unless the key is the author's, or was not to be trusted any more.
    """

    key_id: str
    role: str
    verdict: Verdict
    roles: tuple[str, ...]
    reason: str
    at: str
    counts: bool


class ArtifactState(Value, frozen=True):
    """A digest before publication. `needed` are the roles that must review it, `signers` the keys that signed it.

    `then`: the same, had no key been revoked since; None where that is no other state.
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
    catalogs: tuple[JudgedWith, ...] = ()
    reviews: tuple[Reviewed, ...] = ()
    envelope: str = ""
    threshold: int = 1
    signers: tuple[str, ...] = ()
    then: "ArtifactState | None" = None

    @property
    def as_it_was(self) -> "ArtifactState":
        """The state, had no key been revoked since."""
        return self.then or self

    @property
    def name(self) -> PackRef:
        """What it calls itself, as its author recorded it."""
        if self.ref is None:
            raise ArtifactUnknown("nobody recorded it", at=str(self.digest), hint="'ctx lint FILE --record' does")
        return self.ref

    @property
    def missing(self) -> tuple[str, ...]:
        """The roles whose review is still needed. A reviewer who has several counts for the one he named.

        An owner's role of a DecisionSpec is satisfied by any reviewer who has it.
        """
        named = {approval.role for approval in self.approvals}
        held = {role for approval in self.approvals for role in approval.roles}
        return tuple(role for role in self.needed if role not in (named if role in FOUR else held))

    @property
    def approvals(self) -> tuple[Reviewed, ...]:
        """The approvals that count."""
        return tuple(review for review in self.reviews if review.verdict == "approve" and review.counts)

    @property
    def rejected(self) -> tuple[Reviewed, ...]:
        """Rejections that stand until their reviewer approves. Those of keys that are not trusted do not."""
        standing = (review for review in self.reviews if review.verdict == "reject" and review.counts)
        return tuple(one for one in standing if one.role in self.needed)

    def as_known(self, kin: Kin) -> "ArtifactState":
        """The state by whose keys they are: of several reviews of one person the last counts, of the author's none."""
        reviews: list[Reviewed] = []
        for review in self.reviews:
            family = kin(review.key_id)
            counts = review.counts and self.author not in family
            reviews = [*(other for other in reviews if other.key_id not in family), replace(review, counts=counts)]
        then = None if self.then is None else self.then.as_known(kin)
        if tuple(reviews) == self.reviews:
            return replace(self, then=then)
        return _settled(replace(self, reviews=tuple(reviews), then=then))

    def issuer_of(self, change: Change) -> str:
        """Whose artifact a change is about."""
        return change.issuer if isinstance(change, Drafted) else self.issuer

    def after_event(self, happened: Happened) -> "ArtifactState":
        """The state after one more event, or a refusal."""
        if self.then is None and not happened.by.revoked:
            return self._after(happened)
        # It was allowed when it was written if it is allowed in one of the two: what is known of keys only grew since.
        trusted = replace(happened, by=replace(happened.by, revoked=False))
        now, then = _after_or_none(self, happened), _after_or_none(self.as_it_was, trusted)
        if now is None and then is None:
            return self._after(happened)
        now = now or replace(self, seq=happened.event.seq, head=happened.digest)
        return replace(now, then=then or self.as_it_was)

    def _after(self, happened: Happened) -> "ArtifactState":
        change = happened.change
        if not isinstance(change, Drafted | Linted | Review | Signed):
            raise EventInvalid(f"{kind_of(change)} is no change of an artifact", at=happened.event.subject)
        refuse_transition(kind_of(change), self.stage, at=str(self.ref or self.digest))
        state = replace(self, seq=happened.event.seq, head=happened.digest)
        match change:
            case Drafted():
                ref = PackRef(change.id, change.version)
                return replace(
                    state, stage="draft", kind=change.kind, ref=ref, issuer=change.issuer, author=happened.by.key_id
                )
            case Linted():
                needed = tuple(dict.fromkeys((*REVIEWS[self.kind], *change.roles)))
                return _settled(replace(state, report=change.report, needed=needed, catalogs=change.catalogs))
            case Review():
                return _settled(replace(state, reviews=_reviews(self, change, happened)))
            case Signed():
                return _signed(state, change, happened.by)


def _after_or_none(state: ArtifactState, happened: Happened) -> ArtifactState | None:
    try:
        return state._after(happened)  # noqa: SLF001  the same class
    except TransitionRefused:
        return None


def _reviews(state: ArtifactState, change: Review, happened: Happened) -> tuple[Reviewed, ...]:
    """What a reviewer says last, with whichever of his keys, is what he says."""
    by = happened.by
    said = Reviewed(
        key_id=by.key_id,
        role=change.role,
        verdict=change.verdict,
        roles=tuple(sorted({role for grant in by.grants for role in grant.roles})),
        reason=happened.event.reason,
        at=happened.event.at,
        counts=not by.revoked and state.author not in by.family,
    )
    return (*(review for review in state.reviews if review.key_id not in by.family), said)


def _settled(state: ArtifactState) -> ArtifactState:
    """Reviewed when every role is there and no rejection stands; else no signature holds any longer."""
    if state.missing or state.rejected:
        return replace(state, stage="linted", signers=(), envelope="")
    return state if state.stage == "signed" else replace(state, stage="reviewed")


def _signed(state: ArtifactState, change: Signed, actor: Actor) -> ArtifactState:
    signers = state.signers if actor.revoked else tuple(dict.fromkeys((*state.signers, actor.key_id)))
    enough = len(signers) >= change.threshold
    return replace(
        state,
        stage="signed" if enough else "reviewed",
        signers=signers,
        threshold=change.threshold,
        envelope=change.envelope,
    )
