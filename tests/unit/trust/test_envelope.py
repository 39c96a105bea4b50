"""Envelopes and statements are read strictly, in one spelling, or not at all."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.errors import ContextPlaneError
from contextplane.trust.dsse import (
    IN_TOTO,
    MAX_ENVELOPE,
    Base64Refused,
    Envelope,
    EnvelopeInvalid,
    PayloadTypeWrong,
    Statement,
    StatementInvalid,
    decode_base64,
    encode_base64,
    make_envelope,
    pae,
)
from tests.support.cases import cases
from tests.unit.trust.world import key_of, statement

SIGNED = make_envelope(IN_TOTO, statement().to_bytes(), key_of("a"), key_of("b")).to_bytes()


def test_the_encoding_that_is_signed_is_the_one_of_dsse() -> None:
    # The example of the DSSE specification.
    assert pae("http://example.com/HelloWorld", b"hello world") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


@given(st.text(max_size=20), st.binary(max_size=20), st.text(max_size=20), st.binary(max_size=20))
def test_no_two_payloads_with_their_types_are_signed_alike(first: str, a: bytes, second: str, b: bytes) -> None:
    assert (pae(first, a) == pae(second, b)) == ((first, a) == (second, b))


@given(st.binary(max_size=60), st.lists(st.sampled_from("abc"), max_size=3))
def test_what_was_written_is_read_again(payload: bytes, names: list[str]) -> None:
    envelope = make_envelope("t", payload, *map(key_of, names))
    assert Envelope.parse(envelope.to_bytes(), payload_type="t") == envelope
    assert len(envelope.signatures) == len(set(names))


def changed(**members: object) -> bytes:
    return json.dumps({**json.loads(SIGNED), **members}).encode()


@cases(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        SIGNED[:-1],
        SIGNED + b"x",
        changed(unknown=1),
        changed(signatures=[{"sig": encode_base64(bytes(64)), "keyid": "k", "extra": 1}]),
        changed(signatures=[{"keyid": "k"}]),
        changed(signatures=[{"sig": encode_base64(bytes(63))}]),
        changed(signatures=[{"sig": encode_base64(bytes(64))}] * 17),
        changed(payload=None),
        SIGNED.replace(b'{"payload":', b'{"payload":"","payload":', 1),
        b" " * (MAX_ENVELOPE + 1),
    ],
    ids=range(14),
)
def test_what_is_no_envelope_is_refused(data: bytes) -> None:
    with pytest.raises(EnvelopeInvalid):
        Envelope.parse(data, payload_type=IN_TOTO)


def test_an_envelope_with_a_swapped_payload_type_is_refused() -> None:
    with pytest.raises(PayloadTypeWrong):
        Envelope.parse(changed(payloadType="application/json"), payload_type=IN_TOTO)


@given(st.binary(max_size=40))
def test_base64_has_one_spelling(data: bytes) -> None:
    assert decode_base64(encode_base64(data), at="/x") == data


@cases(
    "text", ["YQ", "YQ=", "YR==", "YWI", "YWJ=", "YQ==\n", " YQ==", "YQ== ", "Y Q==", "-_-_", "YQ==YQ==", "====", "é"]
)
def test_base64_in_another_spelling_is_refused(text: str) -> None:
    with pytest.raises(Base64Refused) as refused:
        decode_base64(text, at="/x")
    assert refused.value.at == "/x"


def test_a_malleable_signature_or_payload_is_refused() -> None:
    payload = json.loads(SIGNED)["payload"]
    signature = json.loads(SIGNED)["signatures"][0]
    # Two bits of the last character are left over after 64 bytes: another spelling of the same signature.
    other = {**signature, "sig": signature["sig"][:-3] + chr(ord(signature["sig"][-3]) ^ 1) + "=="}
    for data in (changed(payload=payload + "\n"), changed(signatures=[other])):
        with pytest.raises(Base64Refused):
            Envelope.parse(data, payload_type=IN_TOTO)


@given(st.binary(max_size=80) | st.text(max_size=40).map(str.encode))
def test_nothing_but_a_refusal_comes_of_arbitrary_bytes(data: bytes) -> None:
    with pytest.raises(ContextPlaneError) as refused:
        Envelope.parse(data, payload_type=IN_TOTO)
    assert refused.value.family == "untrusted"


def test_a_statement_is_in_toto_and_is_read_again() -> None:
    signed = statement()
    document = json.loads(signed.to_bytes())
    assert document["_type"] == "https://in-toto.io/Statement/v1"
    assert document["subject"] == [{"name": "refunds@1.0.0", "digest": {"sha256": signed.digest.hex}}]
    assert Statement.parse(signed.to_bytes()) == signed


@cases(
    "change",
    [
        {"_type": "https://in-toto.io/Statement/v0.1"},
        {"predicateType": "https://slsa.dev/provenance/v1"},
        {"subject": []},
        {"subject": [{"name": "n", "digest": {"sha256": "0" * 64}}] * 2},
        {"subject": [{"name": "n", "digest": {"sha256": "0" * 63}}]},
        {"subject": [{"name": "n", "digest": {"sha512": "0" * 64}}]},
        {"subject": [{"name": "n", "digest": {"sha256": "0" * 64, "sha1": "0"}}]},
        {"predicate": {"kind": "context_pack"}},
        {"predicate": {"kind": "context_pack", "issuer": "acme", "more": 1}},
        {"unknown": 1},
    ],
    ids=range(10),
)
def test_a_statement_of_another_form_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(StatementInvalid):
        Statement.parse(json.dumps({**json.loads(statement().to_bytes()), **change}).encode())
