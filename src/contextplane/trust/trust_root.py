"""The trust root of a client: what a user got by another way than the store, and holds the store to.

It has two forms, which may be combined:

- ids of keys. One of them must have signed an event of the keyring. Every event names the digest of the one before it,
  so this signature vouches for all earlier events. That the keyring merely trusts the key proves nothing: each
  keyring can trust the public half of each key.
- a checkpoint of the registry, which the registry must continue. Unlike a key it also shows that nothing is missing
  that was there when the checkpoint was signed.

Without a root a client trusts the first keyring that it sees. These are rules over values: nothing is read here.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.ids import Digest, is_sha256
from contextplane.model.keys import PublicKey
from contextplane.model.value import Value
from contextplane.ports.keys import SignatureCheck
from contextplane.trust.checkpoint import Checkpoint
from contextplane.trust.dsse import Envelope, decode_base64
from contextplane.trust.keyring_events import (
    KEYRING,
    KeyringEvent,
    KeyRotation,
    KeyTrust,
    proposal_message,
    read_keyring_event,
)

__all__ = [
    "TrustRoot",
    "TrustRootInvalid",
    "TrustRootMismatch",
    "check_root",
    "founder_key",
    "merge_trust_roots",
    "parse_trust_root",
]

_MOST_BYTES = 64 * 1024
_SIGNATURES = "\n\n"
"""A blank line stands before the signatures of a checkpoint."""
_HINT = "ids of keys (64 hex digits each, as in 'ctx keys list --json'), or a file with a checkpoint"


class TrustRootInvalid(ContextPlaneError):
    """A trust root that is neither ids of keys nor a file with a checkpoint, or is two checkpoints."""

    code: ClassVar[str] = "trust_root_invalid"
    family: ClassVar[Family] = "refused"


class TrustRootMismatch(ContextPlaneError):
    """No key of the trust root signed an event of this keyring: it is not the one that the user trusts."""

    code: ClassVar[str] = "trust_root_mismatch"
    family: ClassVar[Family] = "untrusted"


class TrustRoot(Value, frozen=True):
    """Ids of keys, sorted, and at most one checkpoint; at least one of the two."""

    key_ids: tuple[str, ...] = ()
    checkpoint: Checkpoint | None = None

    @property
    def entries(self) -> tuple[str, ...]:
        """The root as texts, which a client stores: the ids, then the text of the checkpoint."""
        return self.key_ids if self.checkpoint is None else (*self.key_ids, self.checkpoint.text)

    @classmethod
    def from_entries(cls, entries: Iterable[str]) -> "TrustRoot":
        """Read stored texts."""
        return merge_trust_roots(
            [cls(key_ids=(entry,)) if is_sha256(entry) else cls(checkpoint=_checkpoint(entry)) for entry in entries]
        )


def parse_trust_root(text: str, read_file: Callable[[str], bytes]) -> TrustRoot:
    """Read what a user typed: ids of keys, separated by commas or spaces, or the path of a checkpoint.

    A text of which not every part is an id is a path, so that a mistyped id is refused and not left out.
    """
    words = text.replace(",", " ").split()
    if not words:
        raise TrustRootInvalid("empty", hint=_HINT)
    if all(map(is_sha256, words)):
        return merge_trust_roots([TrustRoot(key_ids=tuple(words))])
    try:
        data = read_file(text)
    except (ContextPlaneError, OSError, ValueError) as error:
        reason = error.message if isinstance(error, ContextPlaneError) else str(error)
        raise TrustRootInvalid(f"neither ids of keys nor a file: {reason}", at=text, hint=_HINT) from error
    try:
        return TrustRoot(checkpoint=_parse_file(data))
    except TrustRootInvalid as error:
        raise error.under(text) from None


def merge_trust_roots(roots: Sequence[TrustRoot]) -> TrustRoot:
    """Combine several roots. Two different checkpoints are refused: each demands its own log."""
    checkpoints = {root.checkpoint.text: root.checkpoint for root in roots if root.checkpoint is not None}
    if len(checkpoints) > 1:
        raise TrustRootInvalid("two checkpoints", hint="name the newest one that you trust")
    key_ids = tuple(sorted({key_id for root in roots for key_id in root.key_ids}))
    if not key_ids and not checkpoints:
        raise TrustRootInvalid("empty", hint=_HINT)
    return TrustRoot(key_ids=key_ids, checkpoint=next(iter(checkpoints.values()), None))


def check_root(root: TrustRoot, bodies: Sequence[bytes], check: SignatureCheck) -> None:
    """Refuse a keyring of which no event is signed by a key of the root. `bodies`: its events, in order.

    A keyring without events trusts no key, and is not refused. The caller folds the events as well: this function does
    not check who may make a change. A root without keys is not about the keyring.

    Events of the first format name no store: in a keyring that was sealed they vouch for nothing, for they could be
    those of another store.
    """
    if not root.key_ids or not bodies:
        return
    envelopes = [Envelope.parse(body, payload_type=KEYRING) for body in bodies]
    events = [read_keyring_event(envelope.payload) for envelope in envelopes]
    is_sealed = any(event.origin for event in events)
    keys: dict[str, PublicKey] = {}
    head = ""
    for body, envelope, event in zip(bodies, envelopes, events, strict=True):
        if event.previous != head:
            break  # a signature from here on vouches for other events than these
        if (key := _named_key(event)) is not None and key.key_id in root.key_ids:
            keys[key.key_id] = key
        if (event.origin or not is_sealed) and _is_signed(envelope, event, keys.values(), check):
            return
        head = Digest.of(body).hex
    raise TrustRootMismatch(
        "no key of your trust root signed an event of this keyring",
        at="trust/keyring",
        hint="do not trust this store, or name its own root: --trust-root of 'ctx init', 'import' or 'pull'",
        details={"trust_root": list(root.key_ids)},
    )


def founder_key(bodies: Sequence[bytes]) -> str:
    """Return the id of the key that founded a keyring; empty if it has no events."""
    if not bodies:
        return ""
    key = _named_key(read_keyring_event(Envelope.parse(bodies[0], payload_type=KEYRING).payload))
    return "" if key is None else key.key_id


def _named_key(event: KeyringEvent) -> PublicKey | None:
    """Return the public key that an event adds. Its id is its hash, so it is that key in each event."""
    match event.change:
        case KeyTrust(key=key) | KeyRotation(key=key):
            return PublicKey(decode_base64(key, at="/change/key"))
        case _:
            return None


def _is_signed(envelope: Envelope, event: KeyringEvent, keys: Iterable[PublicKey], check: SignatureCheck) -> bool:
    """Whether one of the keys signed the event, or approved it before: both name the event before it."""
    for key in keys:
        if any(check.holds(key, signature.value, envelope.pae) for signature in envelope.signatures):
            return True
        for approval in event.approvals:
            if check.holds(key, decode_base64(approval.signature, at="/approvals"), proposal_message(event)):
                return True
    return False


def _parse_file(data: bytes) -> Checkpoint:
    if len(data) > _MOST_BYTES:
        raise TrustRootInvalid(f"{len(data)} bytes", hint=f"a checkpoint has at most {_MOST_BYTES}")
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        raise TrustRootInvalid("not a checkpoint: not UTF-8", hint=_HINT) from error
    return _checkpoint(text.rpartition(_SIGNATURES)[0] + "\n" if _SIGNATURES in text else text)


def _checkpoint(text: str) -> Checkpoint:
    try:
        return Checkpoint.parse(text)
    except ContextPlaneError as error:
        raise TrustRootInvalid(f"not a checkpoint: {error.message}", hint=_HINT) from error
