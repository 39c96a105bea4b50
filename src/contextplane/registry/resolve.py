"""The decision whether a run may have a pack, as numbered steps. The pack comes out of the last one, and of no other.

    1-8  each document is admitted                                       admitting.py
    9    what the pack requires is here                                  trust/compatibility.py
    10   it is of this tenant, or shared with it                         trust/tenancy.py
    11   it is pinned in this environment, when it is for new traffic    here
    12   overlays are admitted like packs, and only constrain            here, authoring/overlays.py
    13   all of this stands in the log under its newest checkpoint, which is not older than one seen before, nor stale

It reads a shelf and no clock. Nothing is remembered here: `cache.py` does that.
"""

from typing import ClassVar

import msgspec

from contextplane.authoring.overlay.apply import resolved_view
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.artifact import Overlay
from contextplane.model.context_pack import ContextPack
from contextplane.model.ids import PackRef
from contextplane.model.value import Value
from contextplane.registry.admit import Admitted, ArtifactMismatch, admitted
from contextplane.registry.errors import WrongKind
from contextplane.registry.events import Happened, Pin
from contextplane.registry.log import CheckpointMissing, Entry, Standing, entry_body
from contextplane.registry.merge import Given, merged
from contextplane.registry.pin_state import PinState, is_doubtful, ref_of
from contextplane.registry.resolution import Asked, Proof, Proved, Resolved, Shelf
from contextplane.registry.streams import CHECKPOINTS, pins_stream
from contextplane.trust.checkpoint import Checkpoint, advanced
from contextplane.trust.clock import seconds_behind
from contextplane.trust.compatibility import Present, check_compatibility
from contextplane.trust.errors import ClockWentBackwards
from contextplane.trust.merkle import InclusionRefuted, leaf_hash, verify_inclusion
from contextplane.trust.tenancy import IssuerNotForTenant, check_issuer, check_tenant
from contextplane.trust.verify import Grounds

__all__ = [
    "NotPinned",
    "OverlayNotAsked",
    "OverlayOfOtherEnvironment",
    "PinDoubtful",
    "RegistryFrozen",
    "Standpoint",
    "proved",
    "resolve",
]


class NotPinned(ContextPlaneError):
    """A version that this environment does not pin: only what is pinned takes new traffic."""

    code: ClassVar[str] = "not_pinned"
    family: ClassVar[Family] = "refused"


class PinDoubtful(ContextPlaneError):
    """A pin by a key which, as is known now, was not to be trusted then."""

    code: ClassVar[str] = "pin_doubtful"
    family: ClassVar[Family] = "untrusted"


class OverlayNotAsked(ContextPlaneError):
    """Overlays that somebody names for new traffic: it gets those that its environment pins, and no others."""

    code: ClassVar[str] = "overlay_not_asked"
    family: ClassVar[Family] = "refused"


class OverlayOfOtherEnvironment(ContextPlaneError):
    """An overlay that was made for another environment."""

    code: ClassVar[str] = "overlay_of_other_environment"
    family: ClassVar[Family] = "refused"


class RegistryFrozen(ContextPlaneError):
    """The newest checkpoint is older than is allowed: what happened since, a revocation perhaps, is kept from us."""

    code: ClassVar[str] = "registry_frozen"
    family: ClassVar[Family] = "untrusted"


class Standpoint(Value, frozen=True):
    """Where whoever resolves stands: whom he trusts, what is here, and what he saw of the log before.

    `max_age`: how many seconds old the newest checkpoint may be for new traffic; None: as old as it is.
    """

    grounds: Grounds
    present: Present
    seen: Checkpoint | None = None
    max_age: int | None = None


def resolve(asked: Asked, shelf: Shelf, standpoint: Standpoint) -> Resolved:
    """Hand out the documents of an invocation; every other end is a refusal with its own code."""
    return _Resolution(asked=asked, shelf=shelf, standpoint=standpoint).resolved()


class _Resolution(Value, frozen=True):
    """One question, the shelf that is read for it, and who asks."""

    asked: Asked
    shelf: Shelf
    standpoint: Standpoint

    def resolved(self) -> Resolved:
        asked = self.asked
        if asked.overlays and self.is_new:
            raise OverlayNotAsked(f"{asked.overlays[0]} is named", hint="pin it in the environment: ctx pin")
        # (1) to (8) and (10), each document by itself; then all of them together, and (9) what the pack requires
        documents = [self._document(ref) for ref in asked.refs]
        whole = merged(
            [
                Given(document=document.document, value=document.value, alone=document.alone)
                for document in documents
                if not isinstance(document.document, Overlay)
            ]
        )
        check_compatibility(whole.pack, self.standpoint.present)
        # (11) each is pinned here
        base = next(document for document in documents if isinstance(document.document, ContextPack))
        pins = [self._pinned(document) for document in documents] if self.is_new else []
        # (12) overlays, in their order
        pinned = [(ref_of(pin), pin.digest) for state, _ in pins for pin in state.pins.overlays]
        named = pinned if self.is_new else [(ref, None) for ref in asked.overlays]
        overlays = sorted((self._overlay(ref, digest, base) for ref, digest in named), key=_order)
        view = resolved_view(
            whole.value, [overlay.document for overlay in overlays if isinstance(overlay.document, Overlay)]
        )
        # (13) every event that this stands on is in the log
        events = [event for document in (*documents, *overlays) for event in document.events] + [
            event for _, event in pins
        ]
        return Resolved(
            packs=tuple(document.used for document in documents),
            overlays=tuple(overlay.used for overlay in overlays),
            view=msgspec.convert(view.value, ContextPack) if overlays else whole.pack,
            value=view.value,
            intents=whole.intents,
            parts=whole.parts,
            applied=view.applied,
            proof=self._proof(events),
        )

    @property
    def is_new(self) -> bool:
        return self.asked.purpose == "new_traffic"

    def _admitted(self, ref: PackRef) -> Admitted:
        return admitted(ref, self.asked.purpose, shelf=self.shelf, grounds=self.standpoint.grounds)

    def _document(self, ref: PackRef) -> Admitted:
        # (1) to (6), and (8)
        found = self._admitted(ref)
        if isinstance(found.document, Overlay):
            raise WrongKind("it is an overlay", at=str(ref), hint="name the pack; its environment pins its overlays")
        tenant = found.document.pack_meta.tenant if isinstance(found.document, ContextPack) else found.document.tenant
        # (7) its issuer speaks for its tenant, (10) which is the one that asks, or shares it
        found = self._for_tenant(found, tenant.tenant_id)
        check_tenant(tenant, self.asked.tenant, at=str(ref))
        return found

    def _for_tenant(self, found: Admitted, tenant_id: str) -> Admitted:
        """(7) Its issuer speaks for a tenant; or, for replay, did so when it was published."""
        try:
            check_issuer(found.verified, tenant_id, self.standpoint.grounds.keyring)
        except IssuerNotForTenant:
            if self.is_new:
                raise
            check_issuer(found.verified, tenant_id, self.shelf.keyring(found.keyring))
            return found.marked("of an issuer that may not publish for this tenant now")
        return found

    def _pinned(self, found: Admitted) -> tuple[PinState, Happened]:
        """(11) What is pinned here under the id of a document, if it is this version, and the event that says so."""
        environment, ref = self.asked.environment, found.used.ref
        event = self.shelf.last(pins_stream(environment, ref.pack_id))
        if event is None:
            raise _not_pinned(ref, environment, None)
        state = PinState(environment=environment, base_id=ref.pack_id).at_event(event)
        pin = state.pins.base
        if pin is None or ref_of(pin) != ref:
            raise _not_pinned(ref, environment, pin)
        for overlay in (pin, *state.pins.overlays):
            self._refuse_doubtful(overlay, event)
        _refuse_other_digest(found, pin.digest)
        return state, event

    def _refuse_doubtful(self, pin: Pin, event: Happened) -> None:
        if is_doubtful(pin, event, self.standpoint.grounds.keyring.issuers):
            raise PinDoubtful(
                f"{ref_of(pin)} was pinned by a key that is revoked", at=event.event.subject, hint="pin it anew"
            )

    def _overlay(self, ref: PackRef, digest: str | None, base: Admitted) -> Admitted:
        """(12) One overlay, admitted like a pack; its issuer speaks for the tenant of the pack that it changes."""
        found = self._admitted(ref)
        document = found.document
        if not isinstance(document, Overlay) or not isinstance(base.document, ContextPack):
            raise WrongKind("it is no overlay", at=str(ref), hint="overlays are what was applied to the pack")
        if digest is not None:
            _refuse_other_digest(found, digest)
        found = self._for_tenant(found, base.document.pack_meta.tenant.tenant_id)
        if document.environment != self.asked.environment:
            raise OverlayOfOtherEnvironment(
                f"it is for {document.environment}, not for {self.asked.environment}",
                at=str(ref),
                hint="unpin it there",
            )
        return found

    def _proof(self, events: list[Happened]) -> Proof:
        """(13) Every event is in the log of the newest checkpoint, and that one is as new as it must be."""
        standing = self.shelf.standing()
        if standing is None:
            raise CheckpointMissing("there is no checkpoint of the log", at=CHECKPOINTS)
        self._refuse_stale(standing)
        seen, shown = self.standpoint.seen, standing.checkpoint
        proof = () if seen is None or seen.size > shown.size else self.shelf.consistency(seen.size, shown.size)
        advanced(seen, shown, proof)
        return Proof(
            checkpoint=shown, note=standing.note, events=tuple(proved(event, shown, self.shelf) for event in events)
        )

    def _refuse_stale(self, standing: Standing) -> None:
        now, max_age = self.standpoint.grounds.now, self.standpoint.max_age
        if not self.is_new or max_age is None:
            return
        if seconds_behind(now, standing.time):
            raise ClockWentBackwards(
                f"the clock shows {now}, and {standing.time} is on record: how old that is cannot be told",
                at=CHECKPOINTS,
                hint="set the clock; if it is right, another was ahead: docs/registry.md, 'When a clock was wrong'",
            )
        age = now.seconds - standing.time.seconds
        if age > max_age:
            raise RegistryFrozen(
                f"the newest checkpoint is of {standing.time}, {age} seconds ago, and {max_age} are allowed",
                at=CHECKPOINTS,
                hint="ask the operator: 'ctx verify --registry --sign' signs a new one",
            )


def _not_pinned(ref: PackRef, environment: str, pin: Pin | None) -> NotPinned:
    now = "nothing of it is" if pin is None else f"{ref_of(pin)} is"
    return NotPinned(f"it is not pinned in {environment}: {now}", at=str(ref), hint=f"ctx pin {environment} {ref}")


def _refuse_other_digest(found: Admitted, pinned: str) -> None:
    if pinned != str(found.used.digest):
        raise ArtifactMismatch(
            f"{pinned} is pinned under this name, and {found.used.digest} was published",
            at=str(found.used.ref),
            hint="'ctx verify --registry' tells more",
        )


def _order(found: Admitted) -> tuple[int, str]:
    document = found.document
    return (document.order, document.overlay_id) if isinstance(document, Overlay) else (0, "")


def proved(happened: Happened, checkpoint: Checkpoint, shelf: Shelf) -> Proved:
    """An event, with the way from the entry that it names to the root of a checkpoint; refused where there is none."""
    event = happened.event
    try:
        path = shelf.inclusion(event.entry, checkpoint.size) if event.entry < checkpoint.size else ()
        leaf = leaf_hash(entry_body(Entry(event=happened.digest, seq=event.seq, stream=event.subject)))
        verify_inclusion(leaf, event.entry, checkpoint.size, root=checkpoint.root, proof=path)
    except InclusionRefuted as error:
        raise error.under(f"{event.subject}@{event.seq}") from None
    return Proved(stream=event.subject, seq=event.seq, event=happened.digest, entry=event.entry, path=path)
