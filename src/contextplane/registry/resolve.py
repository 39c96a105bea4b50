"""The decision whether a run may use a pack, as numbered steps. Only the last step returns the pack.

    1-8  each document is admitted                                       admit.py
    9    the requirements of the pack are met                            trust/compatibility.py
    10   it is of this tenant, or shared with it                         trust/tenancy.py
    11   it is pinned in this environment, if it is for new traffic      _check_pinned
    12   overlays are admitted like packs, and only constrain            _overlay, authoring/overlay
    13   every event that this depends on is in the log under its newest checkpoint, which is neither older than one
         seen before, nor stale, and which enough witnesses cosigned

It reads a snapshot and no clock. Nothing is cached here: `resolution.ResolutionCache` does that.
"""

from typing import ClassVar

import msgspec

from contextplane.authoring.overlay.resolved_view import resolve_view
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import Overlay
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import PackRef
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.model.value import Value
from contextplane.registry.admit import AdmittedDocument, ArtifactMismatch, admit
from contextplane.registry.claims import ClaimsJudgement
from contextplane.registry.cosignatures import CheckpointNotWitnessed, Witnesses
from contextplane.registry.errors import WrongKind
from contextplane.registry.events import Pin
from contextplane.registry.merge import MergeInput, merge_documents
from contextplane.registry.pin_state import DEFAULT_MAX_AGE, EnvironmentState, PinState, is_doubtful, ref_of
from contextplane.registry.resolution import Proof, RegistrySnapshot, Resolution, ResolveRequest, prove_event
from contextplane.registry.streams import CHECKPOINTS, environment_stream, pins_stream
from contextplane.registry.verified_event import VerifiedEvent
from contextplane.trust.checkpoint import Checkpoint, advance_checkpoint
from contextplane.trust.clock import tolerated_lag
from contextplane.trust.compatibility import RuntimeCapabilities, check_compatibility
from contextplane.trust.errors import ClockWentBackwards
from contextplane.trust.merkle_log import CheckpointMissing, VerifiedCheckpoint
from contextplane.trust.tenancy import IssuerNotForTenant, check_issuer, check_tenant
from contextplane.trust.verify import TrustContext

__all__ = [
    "NotPinned",
    "OverlayNotAsked",
    "OverlayOfOtherEnvironment",
    "PinDoubtful",
    "RegistryFrozen",
    "ResolveContext",
    "resolve",
]


class NotPinned(ContextPlaneError):
    """A version that this environment does not pin. New runs use pinned versions only."""

    code: ClassVar[str] = "not_pinned"
    family: ClassVar[Family] = "refused"


class PinDoubtful(ContextPlaneError):
    """A pin by a key which, as is known now, was not to be trusted then."""

    code: ClassVar[str] = "pin_doubtful"
    family: ClassVar[Family] = "untrusted"


class OverlayNotAsked(ContextPlaneError):
    """Overlays that are named for new traffic: it gets those that its environment pins, and no others."""

    code: ClassVar[str] = "overlay_not_asked"
    family: ClassVar[Family] = "refused"


class OverlayOfOtherEnvironment(ContextPlaneError):
    """An overlay that was made for another environment."""

    code: ClassVar[str] = "overlay_of_other_environment"
    family: ClassVar[Family] = "refused"


class RegistryFrozen(ContextPlaneError):
    """The newest checkpoint is older than is allowed.

    What happened since, a revocation perhaps, is kept from us.
    """

    code: ClassVar[str] = "registry_frozen"
    family: ClassVar[Family] = "untrusted"


class ResolveContext(Value, frozen=True):
    """What the client trusts, what its runtime has, and what it saw of the log before.

    `judgement`: judges what publishers claim, and knows what was judged before. `max_age`: how many seconds old the
    newest checkpoint may be for new traffic; None: any age.
    """

    trust_context: TrustContext
    capabilities: RuntimeCapabilities
    judgement: ClaimsJudgement
    seen: Checkpoint | None = None
    max_age: int | None = None


def resolve(request: ResolveRequest, snapshot: RegistrySnapshot, context: ResolveContext) -> Resolution:
    """Return the documents of a request, or refuse it with a code of its own."""
    return _Resolver(request=request, snapshot=snapshot, context=context).resolve()


class _Resolver(Value, frozen=True):
    """One request, the snapshot that is read for it, and the context of the client."""

    request: ResolveRequest
    snapshot: RegistrySnapshot
    context: ResolveContext

    def resolve(self) -> Resolution:
        request = self.request
        if request.overlays and self.is_new:
            raise OverlayNotAsked(f"{request.overlays[0]} is named", hint="pin it in the environment: ctx pin")
        # (1) to (8) and (10), each document by itself; then all of them together, and (9) the requirements
        documents = [self._document(ref) for ref in request.refs]
        merged = merge_documents(
            [
                MergeInput(document=document.document, value=document.value, alone=document.alone)
                for document in documents
                if not isinstance(document.document, Overlay)
            ]
        )
        check_compatibility(merged.pack, self.context.capabilities)
        # (11) each is pinned here
        base = next(document for document in documents if isinstance(document.document, ContextPack))
        pins = [self._check_pinned(document) for document in documents] if self.is_new else []
        # (12) overlays, in their order
        pinned = [(ref_of(pin), pin.digest) for state, _ in pins for pin in state.pins.overlays]
        requested = pinned if self.is_new else [(ref, None) for ref in request.overlays]
        overlays = sorted((self._overlay(ref, digest, base) for ref, digest in requested), key=_overlay_order)
        view = resolve_view(
            merged.value, [overlay.document for overlay in overlays if isinstance(overlay.document, Overlay)]
        )
        # (13) every event that this depends on is in the log
        events = [event for document in (*documents, *overlays) for event in document.events] + [
            event for _, event in pins
        ]
        max_age = self._max_age()
        proof = self._proof(events, max_age)
        return Resolution(
            packs=tuple(document.resolved for document in documents),
            overlays=tuple(overlay.resolved for overlay in overlays),
            view=msgspec.convert(view.value, ContextPack) if overlays else merged.pack,
            value=view.value,
            intents=merged.intents,
            parts=merged.parts,
            applied=view.applied,
            proof=proof,
            judged=tuple(document.judged for document in (*documents, *overlays) if document.judged),
            fresh_until=None if max_age is None else _first_stale_moment(proof.checkpoint, max_age),
        )

    @property
    def is_new(self) -> bool:
        return self.request.purpose == "new_traffic"

    def _admit(self, ref: PackRef) -> AdmittedDocument:
        return admit(
            ref,
            self.request.purpose,
            snapshot=self.snapshot,
            trust_context=self.context.trust_context,
            judgement=self.context.judgement,
        )

    def _document(self, ref: PackRef) -> AdmittedDocument:
        # (1) to (6), and (8)
        admitted = self._admit(ref)
        if isinstance(admitted.document, Overlay):
            raise WrongKind("it is an overlay", at=str(ref), hint="name the pack; its environment pins its overlays")
        tenant = (
            admitted.document.pack_meta.tenant
            if isinstance(admitted.document, ContextPack)
            else admitted.document.tenant
        )
        # (7) its issuer may publish for its tenant, (10) which is the requesting tenant, or shares it
        _refuse_other_tenant(admitted, tenant.tenant_id)
        admitted = self._for_tenant(admitted, tenant.tenant_id)
        check_tenant(tenant, self.request.tenant, at=str(ref))
        return admitted

    def _for_tenant(self, admitted: AdmittedDocument, tenant_id: str) -> AdmittedDocument:
        """(7) Refuse an issuer that may not publish for a tenant. A replay accepts one that might back then."""
        try:
            check_issuer(admitted.verified, tenant_id, self.context.trust_context.keyring)
        except IssuerNotForTenant:
            if self.is_new:
                raise
            check_issuer(admitted.verified, tenant_id, self.snapshot.past_keyring(admitted.keyring))
            return admitted.with_mark("of an issuer that may not publish for this tenant now")
        return admitted

    def _check_pinned(self, admitted: AdmittedDocument) -> tuple[PinState, VerifiedEvent]:
        """(11) Refuse a document that is not pinned here. Returns the pins and the event that set them."""
        environment, ref = self.request.environment, admitted.resolved.ref
        event = self.snapshot.last(pins_stream(environment, ref.pack_id))
        if event is None:
            raise _not_pinned_error(ref, environment, None)
        state = PinState(environment=environment, base_id=ref.pack_id).after_event(event)
        pin = state.pins.base
        if pin is None or ref_of(pin) != ref:
            raise _not_pinned_error(ref, environment, pin)
        for overlay in (pin, *state.pins.overlays):
            self._refuse_doubtful(overlay, event)
        _refuse_other_digest(admitted, pin.digest)
        return state, event

    def _refuse_doubtful(self, pin: Pin, event: VerifiedEvent) -> None:
        if is_doubtful(pin, event, self.context.trust_context.keyring.issuers):
            raise PinDoubtful(
                f"{ref_of(pin)} was pinned by a key that is revoked", at=event.event.subject, hint="pin it again"
            )

    def _overlay(self, ref: PackRef, digest: str | None, base: AdmittedDocument) -> AdmittedDocument:
        """(12) Admit an overlay like a pack. Its issuer must be able to publish for the tenant of the pack."""
        admitted = self._admit(ref)
        document = admitted.document
        if not isinstance(document, Overlay) or not isinstance(base.document, ContextPack):
            raise WrongKind("it is no overlay", at=str(ref), hint="overlays are what was applied to the pack")
        if digest is not None:
            _refuse_other_digest(admitted, digest)
        tenant_id = base.document.pack_meta.tenant.tenant_id
        _refuse_other_tenant(admitted, tenant_id)
        admitted = self._for_tenant(admitted, tenant_id)
        if document.environment != self.request.environment:
            raise OverlayOfOtherEnvironment(
                f"it is for {document.environment}, not for {self.request.environment}",
                at=str(ref),
                hint="unpin it there",
            )
        return admitted

    def _proof(self, events: list[VerifiedEvent], max_age: int | None) -> Proof:
        """(13) Prove that every event is in the log of the newest checkpoint, and refuse a stale checkpoint."""
        newest = self.snapshot.newest()
        if newest is None:
            raise CheckpointMissing("there is no checkpoint of the log", at=CHECKPOINTS)
        if max_age is not None:
            self._refuse_stale(newest, max_age)
        self._refuse_unwitnessed(newest)
        seen, shown = self.context.seen, newest.checkpoint
        proof = () if seen is None or seen.size > shown.size else self.snapshot.consistency(seen.size, shown.size)
        advance_checkpoint(seen, shown, proof)
        return Proof(
            checkpoint=shown,
            note=newest.note,
            events=tuple(prove_event(event, shown, self.snapshot) for event in events),
        )

    def _environment(self) -> EnvironmentState:
        """The signed state of the environment. Its last event suffices."""
        state = EnvironmentState(environment=self.request.environment)
        last = self.snapshot.last(environment_stream(self.request.environment)) if self.is_new else None
        return state if last is None else state.after_event(last)

    def _max_age(self) -> int | None:
        """How many seconds old the checkpoint may be, by the environment or by the client; None: any age.

        Where neither says an age, a protected environment allows the default.
        """
        environment = self._environment()
        asked = [age for age in (environment.max_age, self.context.max_age) if age is not None]
        if not self.is_new or not (asked or environment.protected):
            return None
        return min(asked, default=DEFAULT_MAX_AGE)

    def _refuse_stale(self, newest: VerifiedCheckpoint, max_age: int) -> None:
        """Refuse a checkpoint that is too old, or of the future: that would never be too old."""
        now = self.context.trust_context.now
        age = now.seconds - newest.time.seconds
        if -age > tolerated_lag(max_age):
            raise ClockWentBackwards(
                f"the clock shows {now}, and the registry has {newest.time}: its age is unknown",
                at=CHECKPOINTS,
                hint="set the clock; if it is right, another was ahead: docs/registry.md, 'When a clock was wrong'",
            )
        if age > max_age or not max_age:  # an age of nothing allows nothing, not even within a second
            raise RegistryFrozen(
                f"the newest checkpoint is of {newest.time}, {age} seconds ago, and {max_age} are allowed",
                at=CHECKPOINTS,
                hint="ask the operator: 'ctx verify --registry --sign' signs a new one",
            )

    def _refuse_unwitnessed(self, newest: VerifiedCheckpoint) -> None:
        """Refuse a checkpoint for new traffic that fewer witnesses cosigned than the keyring asks for."""
        witnesses = self.snapshot.witnesses() if self.is_new else Witnesses()
        if witnesses.missing:
            raise CheckpointNotWitnessed(
                f"the checkpoint of {newest.time} has cosignatures of {witnesses.people} of the {witnesses.required}"
                " witnesses that it needs",
                at=CHECKPOINTS,
                hint="ask a witness to run 'ctx witness --key KEY'",
            )


def _first_stale_moment(checkpoint: Checkpoint, max_age: int) -> Timestamp:
    """The first moment at which a checkpoint is older than an age in whole seconds."""
    return Timestamp(seconds=(checkpoint.time or NO_TIME).seconds + max_age + 1, nanos=0)


def _not_pinned_error(ref: PackRef, environment: str, pin: Pin | None) -> NotPinned:
    now = "no version of it is" if pin is None else f"{ref_of(pin)} is"
    return NotPinned(f"it is not pinned in {environment}: {now}", at=str(ref), hint=f"ctx pin {environment} {ref}")


def _refuse_other_digest(admitted: AdmittedDocument, pinned: str) -> None:
    if pinned != str(admitted.resolved.digest):
        raise ArtifactMismatch(
            f"{pinned} is pinned under this name, and {admitted.resolved.digest} was published",
            at=str(admitted.resolved.ref),
            hint="see 'ctx verify --registry'",
        )


def _refuse_other_tenant(admitted: AdmittedDocument, tenant_id: str) -> None:
    """Refuse a publication that names another tenant than its document: others would operate it."""
    if admitted.tenant not in {"", tenant_id}:
        raise ArtifactMismatch(
            f"published for {admitted.tenant}, and it is of {tenant_id}",
            at=str(admitted.resolved.ref),
            hint="a publisher named another tenant; see 'ctx verify --registry'",
        )


def _overlay_order(admitted: AdmittedDocument) -> tuple[int, str]:
    document = admitted.document
    return (document.order, document.overlay_id) if isinstance(document, Overlay) else (0, "")
