"""Whether a client trusts a bundle: by its trust root, and by what it imported before.

Verifying a bundle shows that it is consistent. Everybody can make a consistent bundle of a store of their own, with any
names in it. So a client asks who vouches for its keyring, and never goes back to an older state of the same store.
"""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest
from contextplane.model.timestamp import NO_TIME
from contextplane.ports.keys import SignatureCheck
from contextplane.registry.bundle import OpenBundle
from contextplane.trust.checkpoint import Checkpoint, advance_checkpoint
from contextplane.trust.keyring_stream import STREAM as KEYRING_STREAM
from contextplane.trust.keyring_stream import KeyringRewritten
from contextplane.trust.merkle import TreeDamaged
from contextplane.trust.trust_root import TrustRoot, check_root, founder_key

__all__ = ["BundleOlder", "BundleUnproved", "TrustRootMissing", "check_bundle_age", "check_bundle_root"]


class TrustRootMissing(ContextPlaneError):
    """A bundle of a store for which this client has no trust root."""

    code: ClassVar[str] = "trust_root_missing"
    family: ClassVar[Family] = "untrusted"


class BundleOlder(ContextPlaneError):
    """A bundle whose checkpoint is older than one that was imported from the same store before."""

    code: ClassVar[str] = "bundle_older"
    family: ClassVar[Family] = "untrusted"


class BundleUnproved(ContextPlaneError):
    """A bundle without the proof that its log continues the checkpoint of the trust root."""

    code: ClassVar[str] = "bundle_unproved"
    family: ClassVar[Family] = "untrusted"


def check_bundle_root(opened: OpenBundle, root: TrustRoot | None, check: SignatureCheck) -> None:
    """Refuse a bundle that the trust root of a client does not vouch for.

    A root of keys vouches for the keyring of the bundle, a checkpoint of its store for its log and its keyring.
    """
    origin = opened.bundle.origin
    shown = root.checkpoint if root is not None else None
    is_checkpoint_of_it = shown is not None and shown.origin == origin
    if root is None or not (root.key_ids or is_checkpoint_of_it):
        founder = founder_key(opened.keyring)
        raise TrustRootMissing(
            f"no trust root for {origin}; its keyring was founded by key {founder}",
            at=opened.bundle.ref,
            hint=f"ask its owner whether that is their key, then name it: --trust-root {founder}",
            details={"origin": origin, "founder": founder},
        )
    check_root(root, opened.keyring, check)
    if shown is not None and is_checkpoint_of_it:
        if shown.keyring is None and not root.key_ids:
            raise TrustRootMissing(
                "the checkpoint of the trust root names no keyring",
                at=opened.bundle.ref,
                hint="name a newer checkpoint, or the id of a key",
                details={"origin": origin},
            )
        _check_continues(opened, shown)


def _check_continues(opened: OpenBundle, known: Checkpoint) -> None:
    """Refuse a bundle whose log and keyring do not continue those of a checkpoint."""
    shown = opened.newest.checkpoint
    try:
        proof = opened.consistency(known.size) if known.size < shown.size else ()
    except TreeDamaged as error:
        raise BundleUnproved(
            f"it does not prove that its log continues the {known.size} entries of the trust root",
            at=opened.bundle.ref,
            hint=f"export it with --since {known.size}",
        ) from error
    advance_checkpoint(known, shown, proof)
    _check_keyring(opened, known)


def _check_keyring(opened: OpenBundle, known: Checkpoint) -> None:
    position = known.keyring
    if position is None or not position.seq:
        return
    bodies = opened.keyring[position.seq - 1 : position.seq]
    if not bodies or Digest.of(bodies[0]).hex != position.head:
        raise KeyringRewritten(
            f"event {position.seq} is another one than before", at=KEYRING_STREAM, hint="do not trust this bundle"
        )


def check_bundle_age(opened: OpenBundle, seen: Checkpoint | None) -> None:
    """Refuse a bundle that is older than one that was imported from its store before, or of another log."""
    shown = opened.newest.checkpoint
    if seen is None:
        return
    if (shown.size, shown.time or NO_TIME) < (seen.size, seen.time or NO_TIME):
        raise BundleOlder(
            f"its checkpoint is of {shown.time}, and one of {seen.time} was imported before",
            at=opened.bundle.ref,
            hint="export it again: what happened since, a revocation perhaps, is not in this file",
            details={"origin": opened.bundle.origin},
        )
    if seen.size in {shown.size, opened.bundle.since}:
        _check_continues(opened, seen)
    _check_keyring(opened, seen)
