"""The laws of the `Signer` and `SignatureCheck` ports, for any adapter of them."""

from hypothesis import given
from hypothesis import strategies as st

from contextplane.model.keys import PublicKey
from contextplane.ports.keys import SignatureCheck, Signer

__all__ = ["SignerLaw"]


class SignerLaw:
    """A signature is valid for one key and one message, in one form. Subclasses make the signer."""

    def signer(self) -> Signer:
        raise NotImplementedError

    def check(self) -> SignatureCheck:
        raise NotImplementedError

    @given(st.binary(max_size=200))
    def test_a_signature_holds_and_is_the_same_each_time(self, message: bytes) -> None:
        signer = self.signer()
        signature = signer.sign(message)
        assert len(signature) == 64
        assert signer.sign(message) == signature
        assert self.check().holds(signer.public_key, signature, message)

    @given(st.binary(max_size=50), st.binary(max_size=50))
    def test_it_holds_for_no_other_message(self, message: bytes, other: bytes) -> None:
        signer = self.signer()
        holds = self.check().holds(signer.public_key, signer.sign(message), other)
        assert holds == (message == other)

    @given(st.integers(min_value=0, max_value=511))
    def test_no_bit_of_it_can_be_changed(self, bit: int) -> None:
        signer = self.signer()
        signature = int.from_bytes(signer.sign(b"m")) ^ 1 << bit
        assert not self.check().holds(signer.public_key, signature.to_bytes(64), b"m")

    def test_it_has_one_form_only(self) -> None:
        """A scalar plus the order of the group would be a second form of the signature: it is refused."""
        signer = self.signer()
        signature = signer.sign(b"m")
        scalar = int.from_bytes(signature[32:], "little") + 2**252 + 27742317777372353535851937790883648493
        assert not self.check().holds(signer.public_key, signature[:32] + scalar.to_bytes(32, "little"), b"m")

    def test_it_holds_for_no_other_key(self) -> None:
        signer, other = self.signer(), self.signer()
        assert signer.public_key != other.public_key
        assert not self.check().holds(other.public_key, signer.sign(b"m"), b"m")

    @given(st.integers(min_value=2, max_value=2**250), st.binary(max_size=80), st.binary(max_size=20))
    def test_nothing_that_is_given_to_the_check_raises(self, key: int, signature: bytes, message: bytes) -> None:
        assert self.check().holds(PublicKey(key.to_bytes(32, "little")), signature, message) in {True, False}
