"""A signer that is a key on a token: a smart card, a USB key or an HSM, through its PKCS #11 module.

The private key never leaves the token. The module is native code of its vendor, which runs within this process.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from contextplane.adapters.signers.external import (
    SignerFailed,
    SignerNotFound,
    SignerPinNeeded,
    SignerPinWrong,
    SignerResponseInvalid,
    printable,
)
from contextplane.model.keys import PublicKey, PublicKeyInvalid

if TYPE_CHECKING:
    from pkcs11 import Object, ObjectClass, Session

__all__ = ["TokenSigner"]

_Found = TypeVar("_Found")
_OCTET_STRING = bytes.fromhex("0420")
_SPELLED = 34


class TokenSigner:
    """One Ed25519 key of a token. The token is open only while it reads or signs.

    A login holds for the whole process, so that a signer that stayed open would lend its key to others.

    `token` and `label` are the labels of the token and of both halves of the key. `pin` is asked once. `at` names the
    signer in errors.
    """

    def __init__(self, module: str, *, token: str, label: str, pin: Callable[[], bytes | None], at: str) -> None:
        import pkcs11  # noqa: PLC0415  an extra

        self._at = at
        self._label = label
        with self._errors():
            try:
                library = pkcs11.lib(module)
            except pkcs11.PKCS11Error as error:
                raise SignerNotFound(
                    f"the module cannot be loaded: {printable(str(error).encode())}",
                    at=at,
                    hint="check the path of the module in CTX_SIGNER",
                ) from error
            self._token = self._only(library.get_tokens(token_label=token), f"token labelled {token!r}")
        self._pin = self._ask(pin)
        with self._errors(), self._token.open(user_pin=self._pin) as session:
            self._key(session, pkcs11.ObjectClass.PRIVATE_KEY)
            point = self._key(session, pkcs11.ObjectClass.PUBLIC_KEY)[pkcs11.Attribute.EC_POINT]
        self.public_key = self._public_key(bytes(point))

    def sign(self, message: bytes) -> bytes:
        from pkcs11 import Mechanism, ObjectClass  # noqa: PLC0415  an extra

        with self._errors(), self._token.open(user_pin=self._pin) as session:
            key: Any = self._key(session, ObjectClass.PRIVATE_KEY)
            return bytes(key.sign(message, mechanism=Mechanism.EDDSA))

    def _key(self, session: "Session", half: "ObjectClass") -> "Object":
        from pkcs11 import Attribute, KeyType  # noqa: PLC0415  an extra

        attributes = {Attribute.LABEL: self._label, Attribute.KEY_TYPE: KeyType.EC_EDWARDS, Attribute.CLASS: half}
        return self._only(
            session.get_objects(attributes), f"Ed25519 key labelled {self._label!r} ({half.name.lower()})"
        )

    def _ask(self, pin: Callable[[], bytes | None]) -> str:
        data = pin()
        if not data:
            raise SignerPinNeeded(
                "the token asks for a PIN", at=self._at, hint="set CTX_PKCS11_PIN, or use --passphrase-fd"
            )
        try:
            return data.decode()
        except UnicodeDecodeError:
            raise SignerPinWrong("the PIN is not UTF-8 text", at=self._at, hint="type it again") from None

    def _only(self, candidates: Iterable[_Found], what: str) -> _Found:
        """Return the only one of them: a choice between several would be a guess."""
        matches = list(candidates)
        if len(matches) != 1:
            raise SignerNotFound(
                f"there is no {what}" if not matches else f"there are {len(matches)} of: {what}",
                at=self._at,
                hint="compare the labels in CTX_SIGNER with those that 'pkcs11-tool --list-objects --login' prints",
            )
        return matches[0]

    def _public_key(self, point: bytes) -> PublicKey:
        """Read the point of a public key: a DER octet string, and on some tokens the 32 bytes themselves."""
        raw = point[2:] if len(point) == _SPELLED and point.startswith(_OCTET_STRING) else point
        try:
            return PublicKey(raw)
        except PublicKeyInvalid as error:
            raise SignerResponseInvalid(
                f"its public key: {error.message}", at=self._at, hint="the key must be an Ed25519 key"
            ) from error

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn the errors of a token into ours."""
        from pkcs11 import exceptions  # noqa: PLC0415  an extra

        try:
            yield
        except (
            exceptions.PinExpired,
            exceptions.PinIncorrect,
            exceptions.PinInvalid,
            exceptions.PinLenRange,
            exceptions.PinLocked,
        ) as error:
            raise SignerPinWrong(
                f"the token refused the PIN ({type(error).__name__})",
                at=self._at,
                hint="a token is locked after a few wrong PINs: make sure of it before you try again",
            ) from None
        except exceptions.PKCS11Error as error:
            detail = printable(str(error).encode())
            raise SignerFailed(
                f"the token failed: {type(error).__name__}" + (f" ({detail})" if detail else ""),
                at=self._at,
                hint="its mechanism must be CKM_EDDSA with an Ed25519 key; see the manual of its vendor",
            ) from error
