"""What we sign, securesystemslib verifies; what it signs, we verify."""

import json

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from securesystemslib.dsse import Envelope as TheirEnvelope
from securesystemslib.exceptions import VerificationError
from securesystemslib.signer import CryptoSigner, SSlibKey  # type: ignore[attr-defined]

from contextplane.model.keys import PublicKey
from contextplane.trust.dsse import IN_TOTO, encode_base64
from contextplane.trust.errors import KeyUnknown
from contextplane.trust.keyring_events import KeyTrust
from contextplane.trust.verify import sign, verify
from tests.unit.trust.world import PACK, day, key_of, keyring, statement, trust_context


def theirs(key: PublicKey) -> SSlibKey:
    return SSlibKey.from_crypto(Ed25519PublicKey.from_public_bytes(key.raw), keyid=key.key_id)


def test_an_envelope_of_ours_verifies_with_securesystemslib() -> None:
    first, second = key_of("one"), key_of("two")
    envelope = TheirEnvelope.from_dict(json.loads(sign(statement(), first, second)))
    accepted = envelope.verify([theirs(first.public_key), theirs(second.public_key)], threshold=2)
    assert sorted(accepted) == sorted([first.public_key.key_id, second.public_key.key_id])
    assert envelope.payload == statement().to_bytes()
    envelope.payload += b" "
    with pytest.raises(VerificationError):
        envelope.verify([theirs(first.public_key)], threshold=1)


@pytest.mark.parametrize("named_as_theirs", [True, False])
def test_an_envelope_of_theirs_verifies_here(*, named_as_theirs: bool) -> None:
    private = Ed25519PrivateKey.generate()
    key = PublicKey(private.public_key().public_bytes_raw())
    signer = CryptoSigner(private, None if named_as_theirs else theirs(key))
    envelope = TheirEnvelope(statement().to_bytes(), IN_TOTO, {})
    envelope.sign(signer)
    data = json.dumps(envelope.to_dict()).encode()
    keys = keyring(
        KeyTrust(issuer="acme", key=encode_base64(key.raw), roles=(), valid_from=str(day(1)), valid_until=None)
    )
    assert verify(data, PACK, issuer="acme", trust_context=trust_context(keys, day(2))).signed_by == (key.key_id,)
    with pytest.raises(KeyUnknown):
        verify(data, PACK, issuer="acme", trust_context=trust_context(keyring(), day(2)))
