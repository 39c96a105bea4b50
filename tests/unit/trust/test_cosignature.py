"""Cosignatures in the C2SP form, against another implementation that is written out here."""

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.model.keys import PublicKey
from contextplane.trust.cosignature import Cosignature, sign_cosignature, witness_name, witnesses_among
from tests.support.cases import cases
from tests.unit.trust.world import CHECK, key_of

TEXT = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n"
TIME = 1679315147
NAME = "witness.example.com/w1"
SEED = bytes(range(32))
DASH = "\u2014 "
ALICE, BOB = key_of("alice"), key_of("bob")


def other_line(name: str = NAME, text: str = TEXT, time: int = TIME, kind: bytes = b"\x04") -> str:
    """A cosignature as the specification describes it, made with nothing of ours."""
    private = Ed25519PrivateKey.from_private_bytes(SEED)
    public = private.public_key().public_bytes_raw()
    key_id = hashlib.sha256(name.encode() + b"\n" + kind + public).digest()[:4]
    message = b"cosignature/v1\ntime " + str(time).encode("ascii") + b"\n" + text.encode()
    blob = key_id + time.to_bytes(8, "big") + private.sign(message)
    return f"{DASH}{name} {base64.b64encode(blob).decode()}"


OTHER = PublicKey(Ed25519PrivateKey.from_private_bytes(SEED).public_key().public_bytes_raw())


def test_a_cosignature_of_another_implementation_holds_and_is_written_back_as_it_was() -> None:
    line = other_line()
    cosignature = Cosignature.parse(line)
    assert (cosignature.name, cosignature.time, cosignature.line) == (NAME, TIME, line)
    assert cosignature.holds(TEXT, OTHER, CHECK)
    assert not cosignature.holds(TEXT, ALICE.public_key, CHECK)
    assert not cosignature.holds(TEXT.replace("20852163", "20852164"), OTHER, CHECK)


def test_another_implementation_verifies_ours() -> None:
    line = sign_cosignature(TEXT, signer=ALICE, time=TIME).line
    mark, name, value = line.split(" ")
    blob = base64.b64decode(value)
    raw = ALICE.public_key.raw
    assert (mark, name) == (DASH.strip(), witness_name(ALICE.public_key))
    assert blob[:4] == hashlib.sha256(name.encode() + b"\n\x04" + raw).digest()[:4]
    assert blob[4:12] == TIME.to_bytes(8, "big")
    message = f"cosignature/v1\ntime {TIME}\n{TEXT}".encode()
    Ed25519PublicKey.from_public_bytes(raw).verify(blob[12:], message)  # raises if it does not hold


def test_the_signature_of_a_note_is_no_cosignature() -> None:
    """Another algorithm byte, and another message: neither is taken for the other."""
    assert not Cosignature.parse(other_line(kind=b"\x01")).holds(TEXT, OTHER, CHECK)


@cases("change", [{"time": TIME + 1}, {"name": "x"}, {"signature": bytes(64)}, {"key_hash": bytes(4)}])
def test_nothing_in_it_can_be_changed(change: dict[str, object]) -> None:
    assert not replace(Cosignature.parse(other_line()), **change).holds(TEXT, OTHER, CHECK)


@cases(
    "line",
    [
        "",
        "x",
        other_line().removeprefix(DASH),
        other_line() + "=",
        other_line(name="a b"),
        f"{DASH}{NAME} {base64.b64encode(bytes(75)).decode()}",
        f"{DASH}{NAME} {base64.b64encode(bytes(77)).decode()}",
        f"{DASH}{NAME} {base64.b64encode(bytes(4) + bytes([255] * 8) + bytes(64)).decode()}",
    ],
)
def test_what_is_no_cosignature_is_refused(line: str) -> None:
    with pytest.raises(ContextPlaneError) as error:
        Cosignature.parse(line)
    assert error.value.code == "cosignature_invalid"


def test_each_key_is_found_once_and_what_does_not_hold_is_ignored() -> None:
    lines = [
        other_line(),
        other_line(time=TIME + 5),
        other_line(text="another\n1\n"),
        sign_cosignature(TEXT, signer=ALICE, time=TIME).line,
    ]
    keys = [OTHER, ALICE.public_key, BOB.public_key]
    assert witnesses_among(map(Cosignature.parse, lines), TEXT, keys, CHECK) == {OTHER.key_id, ALICE.public_key.key_id}
