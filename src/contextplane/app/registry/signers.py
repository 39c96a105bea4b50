"""Opens the signer that `CTX_SIGNER` names: a command, or a key on a token.

Its forms are `command:PROGRAM ARGS` and `pkcs11:MODULE?token=LABEL&object=LABEL`.
What a signer returns is checked in any case: no signature that does not verify is stored.
"""

import shlex
from collections.abc import Callable, Mapping
from typing import ClassVar
from urllib.parse import parse_qsl

from contextplane.adapters.ed25519 import Ed25519Check
from contextplane.adapters.signers.external import CheckedSigner
from contextplane.errors import ContextPlaneError, Family
from contextplane.ports.keys import Signer

__all__ = ["SignerSettingInvalid", "SignerUnavailable", "open_external_signer"]

_AT = "CTX_SIGNER"


class SignerSettingInvalid(ContextPlaneError):
    """A value of `CTX_SIGNER` in no form that is known. No other key signs in its place."""

    code: ClassVar[str] = "signer_setting_invalid"
    family: ClassVar[Family] = "usage"


class SignerUnavailable(ContextPlaneError):
    """A kind of signer that needs an extra package, which is not installed."""

    code: ClassVar[str] = "signer_unavailable"
    family: ClassVar[Family] = "refused"


def open_external_signer(setting: str, pin: Callable[[], bytes | None], environment: Mapping[str, str]) -> Signer:
    """Open a signer outside of this program.

    `pin`: asks for the PIN of a token. `environment`: the variables that a command gets.
    """
    kind, _, rest = setting.partition(":")
    match kind:
        case "command":
            return _command_signer(rest, environment)
        case "pkcs11":
            return _token_signer(rest, pin)
        case _:
            raise SignerSettingInvalid("not a signer", at=_AT, hint="write command:PROGRAM ARGS, or pkcs11:MODULE?...")


def _command_signer(text: str, environment: Mapping[str, str]) -> Signer:
    from contextplane.adapters.signers.command import CommandSigner

    try:
        command = shlex.split(text)
    except ValueError as error:
        raise SignerSettingInvalid(f"not a command: {error}", at=_AT, hint="quote it as in a shell") from error
    if not command:
        raise SignerSettingInvalid("it names no program", at=_AT, hint="write command:PROGRAM ARGS")
    at = f"command:{command[0]}"  # not its arguments, which may be secret
    return CheckedSigner(CommandSigner(command, environment, at=at), Ed25519Check(), at)


def _token_signer(text: str, pin: Callable[[], bytes | None]) -> Signer:
    module, _, query = text.partition("?")
    labels = parse_qsl(query, keep_blank_values=True)
    if not module or sorted(name for name, _ in labels) != ["object", "token"] or not all(label for _, label in labels):
        raise SignerSettingInvalid(
            "a module, the label of its token and the label of a key are needed",
            at=_AT,
            hint="write pkcs11:MODULE?token=LABEL&object=LABEL",
        )
    from contextplane.adapters.signers.token import TokenSigner

    at, names = f"pkcs11:{module}", dict(labels)
    try:
        signer = TokenSigner(module, token=names["token"], label=names["object"], pin=pin, at=at)
    except ImportError as error:
        raise SignerUnavailable(
            f"PKCS #11 needs the package python-pkcs11: {error.msg}", at=_AT, hint="pip install 'contextplane[pkcs11]'"
        ) from error
    return CheckedSigner(signer, Ed25519Check(), at)
