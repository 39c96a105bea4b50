"""Reviews: which roles must approve an artifact, and who may review in a role. Pure rules."""

from typing import ClassVar

from msgspec.structs import replace

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import DecisionCatalog
from contextplane.model.context_pack import ContextPack, DecisionSpec
from contextplane.registry.artifact_state import REQUIRED_REVIEWS, ArtifactState
from contextplane.registry.artifacts import Candidate

__all__ = [
    "RecordedOtherwise",
    "ReviewIncomplete",
    "ReviewRejected",
    "ReviewRoleUnneeded",
    "ReviewerHasRole",
    "ReviewerIsAuthor",
    "check_recorded",
    "check_rejections",
    "check_reviewer",
    "check_reviews",
    "needed_roles",
]


class RecordedOtherwise(ContextPlaneError):
    """Bytes with another kind, name or issuer than they were recorded with, or than the command names."""

    code: ClassVar[str] = "artifact_recorded_otherwise"
    family: ClassVar[Family] = "refused"


class ReviewerIsAuthor(ContextPlaneError):
    """A review by the author, or with a key that was rotated from or into the author's."""

    code: ClassVar[str] = "reviewer_is_author"
    family: ClassVar[Family] = "refused"


class ReviewerHasRole(ContextPlaneError):
    """A reviewer who spoke in one role already wants to speak in another: each role is another person."""

    code: ClassVar[str] = "reviewer_counts_once"
    family: ClassVar[Family] = "refused"


class ReviewRoleUnneeded(ContextPlaneError):
    """A review in a role that is not needed."""

    code: ClassVar[str] = "review_role_unneeded"
    family: ClassVar[Family] = "refused"


class ReviewIncomplete(ContextPlaneError):
    """Roles are missing that must have approved. `details.missing` names them."""

    code: ClassVar[str] = "review_incomplete"
    family: ClassVar[Family] = "refused"


class ReviewRejected(ContextPlaneError):
    """A reviewer rejected these bytes, and did not change his mind."""

    code: ClassVar[str] = "review_rejected"
    family: ClassVar[Family] = "refused"


def needed_roles(new: Candidate, before: Candidate | None) -> tuple[str, ...]:
    """The roles that must review an artifact.

    Those of its kind, and the owners of every decision that is new, changed or removed since the version before.
    """
    old, now = _specs(before), _specs(new)
    changed = sorted(key for key in {*old, *now} if old.get(key) != now.get(key))
    owners = sorted({specs[key].owner_role for key in changed for specs in (old, now) if key in specs})
    return tuple(dict.fromkeys((*REQUIRED_REVIEWS[new.kind], *owners)))


def check_recorded(state: ArtifactState, artifact: Candidate) -> None:
    """Refuse bytes whose record does not match them: reviewers and signers rely on the record."""
    recorded, actual = (state.ref, state.kind, state.issuer), (artifact.ref, artifact.kind, artifact.issuer)
    if recorded != actual:
        raise RecordedOtherwise(
            f"recorded by {state.author[:16]} as {state.ref}, a {state.kind} of {state.issuer}",
            at=f"{artifact.ref}, a {artifact.kind} of {artifact.issuer}",
            hint="ask the owner of that key; other bytes, such as another version, can be recorded again",
        )


def check_reviewer(state: ArtifactState, keys: frozenset[str], role: str) -> None:
    """Refuse a review in this role by a person with these keys."""
    if state.author in keys:
        raise ReviewerIsAuthor(
            "an author cannot review the same artifact", at=str(state.ref), hint="ask another reviewer"
        )
    if state.needed and role not in state.needed:
        raise ReviewRoleUnneeded(
            f"no review is needed as {role}", at=str(state.ref), hint=f"needed: {', '.join(state.needed)}"
        )
    other = next((review.role for review in state.reviews if review.key_id in keys and review.role != role), None)
    if other is not None:
        raise ReviewerHasRole(
            f"this reviewer spoke as {other}, and counts once",
            at=str(state.ref),
            hint=f"ask another reviewer to review as {role}",
        )


def check_rejections(state: ArtifactState) -> None:
    """Refuse an artifact that a reviewer rejected."""
    for review in state.rejected:
        raise ReviewRejected(
            f"rejected as {review.role}: {review.reason}",
            at=str(state.ref),
            hint="record a better one, or let this reviewer approve it",
        )


def check_reviews(state: ArtifactState, needed: tuple[str, ...]) -> None:
    """Refuse an artifact unless every needed role approved it, and none rejected it.

    `needed` is computed from the bytes and from what is published now. The recorded roles may be fewer, if another
    version came between or the record is wrong.
    """
    state = replace(state, needed=needed)
    check_rejections(state)
    missing = state.missing
    if missing:
        raise ReviewIncomplete(
            f"not approved as {', '.join(missing)}",
            at=str(state.ref),
            hint=f"ctx review {state.ref} --role {missing[0]} --approve",
            details={"missing": list(missing)},
        )


def _specs(artifact: Candidate | None) -> dict[str, DecisionSpec]:
    match artifact.document if artifact is not None else None:
        case ContextPack() as pack:
            return {decision_spec.decision_key: decision_spec for decision_spec in pack.decision_layer.decision_specs}
        case DecisionCatalog() as catalog:
            return {decision_spec.decision_key: decision_spec for decision_spec in catalog.decision_specs}
        case _:
            return {}
