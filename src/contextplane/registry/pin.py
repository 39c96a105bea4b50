"""Rules for pinning, rolling back and promoting versions in environments. Pure, over states."""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from contextplane.authoring.overlay.resolved_view import resolve_view
from contextplane.authoring.texts import Identify
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import Overlay
from contextplane.model.ids import PackRef
from contextplane.model.value import Value
from contextplane.ports.keys import Keyring
from contextplane.registry.admit import admit
from contextplane.registry.artifact_state import refuse_transition
from contextplane.registry.artifacts import Candidate
from contextplane.registry.claims import ClaimsJudgement
from contextplane.registry.errors import VersionDeprecated, VersionRevoked, VersionUnknown
from contextplane.registry.events import Pin, PinChange, RolledBack
from contextplane.registry.pin_state import PinNotFound, PinState, ref_of
from contextplane.registry.reader import RegistryReader
from contextplane.registry.reports import EvaluationReport
from contextplane.registry.resolution import RegistrySnapshot
from contextplane.registry.streams import pins_stream
from contextplane.registry.version_state import VersionState
from contextplane.trust.errors import KeyRevoked
from contextplane.trust.tenancy import check_issuer
from contextplane.trust.verify import TrustContext, VerifiedArtifact

__all__ = [
    "IncidentOpen",
    "NeverPinned",
    "NotObserved",
    "OverlayElsewhere",
    "PassedOver",
    "PromotionWithoutEvaluation",
    "RefreshOpen",
    "RollbackChoice",
    "check_fit",
    "check_overlay_issuer",
    "check_pin",
    "check_promotion",
    "check_usable",
    "choose_rollback",
    "find_pin",
    "rollback_target",
    "serving_problem",
]


class RefreshOpen(ContextPlaneError):
    """A version that must be looked at again before it is newly pinned in a protected environment."""

    code: ClassVar[str] = "refresh_open"
    family: ClassVar[Family] = "refused"


class OverlayElsewhere(ContextPlaneError):
    """An overlay for another environment, or for a pack that is not pinned there."""

    code: ClassVar[str] = "overlay_elsewhere"
    family: ClassVar[Family] = "refused"


class NeverPinned(ContextPlaneError):
    """A rollback to a version that was never pinned there, or to none: no version before it can serve."""

    code: ClassVar[str] = "rollback_never_pinned"
    family: ClassVar[Family] = "refused"


class PromotionWithoutEvaluation(ContextPlaneError):
    """A promotion without a report that the release gates passed."""

    code: ClassVar[str] = "promotion_without_evaluation"
    family: ClassVar[Family] = "refused"


class NotObserved(ContextPlaneError):
    """A promotion of a version that no run has used there."""

    code: ClassVar[str] = "promotion_not_observed"
    family: ClassVar[Family] = "refused"


class IncidentOpen(ContextPlaneError):
    """A promotion while an incident of this version is open."""

    code: ClassVar[str] = "promotion_incident_open"
    family: ClassVar[Family] = "refused"


def check_usable(version: VersionState, *, deprecated: bool = False) -> None:
    """Refuse a version that may not be pinned.

    `deprecated`: a deprecated version is accepted, for acts that no new run depends on.
    """
    if not version.is_published:
        raise VersionUnknown("it was never published", at=str(version.ref), hint="'ctx packs' lists published versions")
    if version.stage == "revoked":
        raise VersionRevoked(f"it is revoked: {version.reason}", at=str(version.ref), hint="use another version")
    if version.stage == "deprecated" and not deprecated:
        raise VersionDeprecated(
            f"it is deprecated: {version.reason}", at=str(version.ref), hint="only replay may use it; pin a newer one"
        )
    if version.doubtful:
        raise KeyRevoked(
            f"the key that published it, {version.published_by[:16]}, is revoked from before that time",
            at=str(version.ref),
            hint="publish a new version with another key",
        )
    refuse_transition("alias_set" if deprecated else "pinned", version.stage, at=str(version.ref))


def check_pin(version: VersionState, *, protected: bool) -> None:
    """Refuse a version that may not be newly pinned in an environment."""
    check_usable(version)
    open_refreshes = version.open_refreshes
    if protected and open_refreshes:
        refresh = open_refreshes[0]
        raise RefreshOpen(
            f"{refresh.trigger} ({refresh.dependency}) asks for: {', '.join(refresh.outstanding)}",
            at=str(version.ref),
            hint=f"'ctx refresh run {version.ref}' runs what can be run",
            details={"refreshes": [{"opened": r.opened, "outstanding": list(r.outstanding)} for r in open_refreshes]},
        )


def check_fit(
    base: Candidate, overlays: Sequence[Candidate], environment: str, *, identify: Identify | None = None
) -> None:
    """Refuse overlays that do not apply to a pack, or that would permit more than it does."""
    typed = [overlay.document for overlay in overlays if isinstance(overlay.document, Overlay)]
    for overlay in typed:
        target, here = (overlay.base_pack_id, overlay.environment), (base.ref.pack_id, environment)
        if target != here:
            raise OverlayElsewhere(f"it is for {' in '.join(target)}, not for {' in '.join(here)}", at=str(overlay.ref))
    resolve_view(base.value, typed, identify=identify)


def check_overlay_issuer(verified: VerifiedArtifact, base: Candidate, keyring: Keyring) -> None:
    """Refuse an overlay whose issuer may not publish for the tenant of its pack."""
    if base.tenant is not None:
        check_issuer(verified, base.tenant.tenant_id, keyring)


def find_pin(state: PinState, base_id: str) -> Pin:
    """Find the pin of an id: the pack itself, or one of its overlays."""
    pins = [*([state.pins.base] if state.pins.base is not None else []), *state.pins.overlays]
    pin = next((pin for pin in pins if pin.id == base_id), None)
    if pin is None:
        raise PinNotFound(
            f"no version of {base_id} is pinned in {state.environment}", at=base_id, hint="'ctx packs' lists the pins"
        )
    return pin


class PassedOver(Value, frozen=True):
    """A version that a rollback passed over: no new run would get it. `code` and `reason` say why."""

    ref: PackRef
    code: str
    reason: str


class RollbackChoice(Value, frozen=True):
    """The pin that a rollback returns to, and the versions that it passed over, newest first."""

    pin: Pin
    passed_over: tuple[PassedOver, ...] = ()


PinProblem = Callable[[Pin], ContextPlaneError | None]
"""Returns why no new run would get a version, or None."""


def choose_rollback(
    state: PinState, earlier: Iterable[PinChange], version: str | None, problem_of: PinProblem
) -> RollbackChoice:
    """Choose the pin to go back to. `earlier`: the changes of the pins, newest first.

    Without a `version` it is the last other version that new runs would get and that was not rolled back from since it
    was pinned: of two concurrent rollbacks, the second must not restore what the first one removed. A `version` that no
    run would get is refused.
    """
    now, left, passed_over = state.pins.base, set[str](), dict[str, PassedOver]()
    for change in earlier:
        before = change.pins.base
        if before is not None and (now is None or before.version != now.version):
            is_candidate = before.version not in left and before.version not in passed_over
            if version == before.version or (version is None and is_candidate):
                problem = problem_of(before)
                if problem is None:
                    return RollbackChoice(pin=before, passed_over=tuple(passed_over.values()))
                if version is not None:
                    raise problem
                passed_over[before.version] = PassedOver(ref=ref_of(before), code=problem.code, reason=problem.message)
        if isinstance(change, RolledBack):
            left.add(change.away)
    raise _no_target_error(state, version, left - {""}, tuple(passed_over.values()))


def _no_target_error(
    state: PinState, version: str | None, left: set[str], passed_over: tuple[PassedOver, ...]
) -> NeverPinned:
    now = state.base
    if version is not None and now is not None and version == now.version:
        return NeverPinned(f"{now} is what is pinned now", at=state.base_id)
    if passed_over:
        return NeverPinned(
            "no new run would get what was pinned before: "
            + "; ".join(f"{other.ref} is passed over ({other.code}: {other.reason})" for other in passed_over),
            at=state.base_id,
            hint="nothing changed; 'ctx pin' pins any published version",
            details={"passed_over": [{"ref": str(other.ref), "code": other.code} for other in passed_over]},
        )
    if version is None and left:
        return NeverPinned(
            f"it was rolled back from {', '.join(sorted(left))} already, and nothing else was pinned before",
            at=state.base_id,
            hint="name the version to go back to",
        )
    which = f"{state.base_id}@{version}" if version else f"no other version of {state.base_id}"
    return NeverPinned(
        f"{which} was {'never ' if version else ''}pinned in {state.environment} before",
        at=state.base_id,
        hint="'ctx pin' pins any published version",
    )


def check_promotion(state: PinState, version: VersionState, report: EvaluationReport | None) -> EvaluationReport:
    """Refuse a promotion before a run used it, during an incident, or without passed release gates."""
    check_usable(version)
    if version.open_incidents:
        raise IncidentOpen(
            f"open: {', '.join(version.open_incidents)}",
            at=str(version.ref),
            hint="close it first: ctx refresh settle",
        )
    if state.environment not in version.observed:
        raise NotObserved(
            f"no run in {state.environment} used it yet",
            at=str(version.ref),
            hint="a governed run must use it there first, and governed runs are not implemented yet",
        )
    if report is None:
        raise PromotionWithoutEvaluation(
            f"no evaluation of it in {state.environment} is stored",
            at=str(version.ref),
            hint="release gates are judged by evaluations of runs, which are not there yet",
        )
    if not report.passed:
        raise PromotionWithoutEvaluation(f"its release gates did not pass: {report.words}", at=str(version.ref))
    return report


def rollback_target(
    reader: RegistryReader, state: PinState, version: str | None, problem_of: PinProblem
) -> RollbackChoice:
    """Return the pin that a rollback returns to: the one before, or that of `version`."""
    changes = (event.change for event in reader.history_reversed(pins_stream(state.environment, state.base_id)))
    earlier = (change for change in changes if isinstance(change, PinChange))
    return choose_rollback(state, earlier, version, problem_of)


def serving_problem(
    ref: PackRef, snapshot: RegistrySnapshot, trust_context: TrustContext, judgement: ClaimsJudgement
) -> ContextPlaneError | None:
    """Return why no new run gets a version, wherever it is pinned; None if runs get it."""
    try:
        admit(ref, "new_traffic", snapshot=snapshot, trust_context=trust_context, judgement=judgement)
    except ContextPlaneError as error:
        return error
    return None
