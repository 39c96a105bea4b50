"""No identity exists unchecked: what `parse` refuses, the constructor and a decoder refuse too."""

import hashlib
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import (
    DecisionRecordId,
    Digest,
    EvidenceRef,
    ExecutionRef,
    HandoffId,
    InvalidId,
    PackRef,
    RunId,
    UnpinnedRef,
)
from contextplane.testing.proofs import proves
from tests.support.cases import cases

HEX = "0123456789abcdef" * 4
SHORT = "[0-9a-f]{64}"

Identity = Digest | ExecutionRef | PackRef | HandoffId | RunId | DecisionRecordId | EvidenceRef
# Each kind, and the form of its text. The forms are written out here: they must not follow the code.
FORMS: dict[type[Identity], str] = {
    Digest: f"sha256:{SHORT}",
    ExecutionRef: f"ctx://{SHORT}",
    PackRef: r"[A-Za-z0-9_.:-]+@(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})",
    HandoffId: "pk_[a-z2-7]{8}",
    RunId: "run_[0-9a-f]{16}",
    DecisionRecordId: "dr_[a-z0-9_]{1,96}",
    EvidenceRef: r"(kg|tool|policy|session):[!-\"$-~]{1,512}(#[!-\"$-~]{1,256})?",
}
KINDS = pytest.mark.parametrize("kind", FORMS, ids=lambda kind: kind.__name__)


def valid(kind: type[Identity]) -> st.SearchStrategy[str]:
    return st.from_regex(re.compile(FORMS[kind], re.ASCII), fullmatch=True)


@KINDS
@given(st.data())
def test_a_text_of_the_form_is_read_and_written_the_same(kind: type[Identity], data: st.DataObject) -> None:
    text = data.draw(valid(kind))
    assert str(kind.parse(text)) == text
    assert kind.parse(text) == kind.parse(str(kind.parse(text)))
    assert hash(kind.parse(text)) == hash(kind.parse(text))


@KINDS
@given(st.data())
def test_any_other_text_is_refused_with_the_form_as_a_hint(kind: type[Identity], data: st.DataObject) -> None:
    text = data.draw(st.text(max_size=80) | valid(kind).flatmap(slightly_wrong))
    if re.fullmatch(FORMS[kind], text, re.ASCII):
        return
    with pytest.raises((InvalidId, UnpinnedRef)) as refused:
        kind.parse(text)
    assert refused.value.hint
    assert len(refused.value.message) < 200


def slightly_wrong(text: str) -> st.SearchStrategy[str]:
    """A right text with something before, behind or within it, in capitals, or cut short."""
    stain = st.sampled_from(["\n", " ", "\0", "x", "@", ":", "#", "\u0660", "\ud800", "/", "..", "-"])
    stained = st.tuples(st.integers(0, len(text)), stain).map(lambda cut: text[: cut[0]] + cut[1] + text[cut[0] :])
    return stained | st.sampled_from([text.upper(), text[1:], text[:-1], text + text, text.capitalize()])


CONSTRUCTED: list[tuple[Callable[..., Identity], str]] = [
    (Digest, "hex"),
    (HandoffId, "text"),
    (RunId, "text"),
    (DecisionRecordId, "text"),
    (EvidenceRef, "text"),
]


class Text(str):
    """A text that may say one thing to a check and another to whoever uses it."""

    __slots__ = ()


HOSTILE = [None, 7, b"a" * 64, [HEX], {"hex": HEX}, object(), True, 1.5, Text(HEX), Text("pk_abcd2345"), ("a",), Digest]


@cases("wrong", ["", " ", "\n", HEX + "\n", HEX[:-1], HEX + "0", HEX.upper(), "run_", "pk_", *HOSTILE])
@cases("kind", [kind for kind, _ in CONSTRUCTED], ids=lambda kind: kind.__name__)
def test_a_constructor_refuses_what_parse_refuses(kind: Callable[..., Identity], wrong: object) -> None:
    with pytest.raises(InvalidId):
        kind(wrong)


@cases("wrong", [None, 7, HEX, f"sha256:{HEX}", f"ctx://{HEX}", b"", object()])
def test_an_execution_pack_is_named_by_a_digest_and_nothing_else(wrong: Any) -> None:  # noqa: ANN401
    with pytest.raises(InvalidId):
        ExecutionRef(wrong)


class Version:
    """Not a text, though it looks like one when it is written into one."""

    def __str__(self) -> str:
        return "1.0.0"


@proves("api-contracts:pack-ref:format")
@cases(
    ("pack_id", "version"),
    [
        ("", "1.0.0"),
        ("refunds", ""),
        ("refunds", "latest"),
        ("refunds", "^1.0.0"),
        ("refunds", "1.0"),
        ("refunds", "1.0.0-rc.1"),
        ("refunds", "1.0.0+build"),
        ("refunds", "01.0.0"),
        ("refunds", "1.0.0\n"),
        ("refunds", "1.0.0@1.0.0"),
        ("refunds@1.0.0", "1.0.0"),
        ("a b", "1.0.0"),
        ("a/b", "1.0.0"),
        ("re\u00e9", "1.0.0"),
        ("refunds", "1.0.1234567890"),
        ("refunds", "\u0661.0.0"),
        (7, "1.0.0"),
        (None, None),
        (b"refunds", "1.0.0"),
        (Text("refunds"), "1.0.0"),
        ("refunds", Text("1.0.0")),
        ("refunds", Version()),
        ("refunds", (1, 0, 0)),
    ],
)
def test_an_unpinned_reference_cannot_exist(pack_id: Any, version: Any) -> None:  # noqa: ANN401
    with pytest.raises(UnpinnedRef):
        PackRef(pack_id, version)


@KINDS
def test_an_identity_never_changes(kind: type[Identity]) -> None:
    text = {
        Digest: f"sha256:{HEX}",
        ExecutionRef: f"ctx://{HEX}",
        PackRef: "refunds@1.2.3",
        HandoffId: "pk_abcd2345",
        RunId: "run_0123456789abcdef",
        DecisionRecordId: "dr_1",
        EvidenceRef: "kg:order:1",
    }[kind]
    identity = kind.parse(text)
    for field in identity.__struct_fields__:
        with pytest.raises(AttributeError):
            setattr(identity, field, "x")
        with pytest.raises(AttributeError):
            delattr(identity, field)
    assert str(identity) == text


@cases(
    ("kind", "text"),
    [
        (Digest, b'{"hex": "zz"}'),
        (Digest, b'{"hex": 5}'),
        (ExecutionRef, b'{"digest": {"hex": "zz"}}'),
        (ExecutionRef, b'{"digest": "zz"}'),
        (PackRef, b'{"pack_id": "refunds", "version": "latest"}'),
        (HandoffId, b'{"text": "pk_"}'),
        (RunId, b'{"text": "run_"}'),
    ],
)
def test_decoding_makes_no_unchecked_identity(kind: type[Identity], text: bytes) -> None:
    with pytest.raises((ContextPlaneError, msgspec.ValidationError)):
        msgspec.json.decode(text, type=kind)


@given(st.binary(max_size=100))
@example(b"")
def test_the_digest_of_bytes_is_the_one_that_others_compute(data: bytes) -> None:
    assert str(Digest.of(data)) == f"sha256:{hashlib.sha256(data).hexdigest()}"


def test_the_digest_of_nothing_is_the_well_known_one() -> None:
    assert Digest.of(b"").hex == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@given(st.lists(st.from_regex(re.compile(SHORT, re.ASCII), fullmatch=True), max_size=8))
def test_digests_sort_as_their_digits_do(texts: list[str]) -> None:
    assert [digest.hex for digest in sorted(map(Digest, texts))] == sorted(texts)


def test_releases_sort_as_numbers() -> None:
    refs = [PackRef.parse(f"refunds@{version}") for version in ("10.0.0", "9.0.0", "9.0.10", "9.0.9")]
    assert [ref.version for ref in sorted(refs)] == ["9.0.0", "9.0.9", "9.0.10", "10.0.0"]
    assert sorted(refs, key=lambda ref: ref.release) == sorted(refs)


@cases("source", ["kg", "tool", "policy", "session"])
def test_evidence_tells_its_kind_of_source(source: str) -> None:
    assert EvidenceRef(f"{source}:order:ord_881#snapshot_1").source == source


def test_a_refusal_of_something_huge_stays_short() -> None:
    with pytest.raises(InvalidId) as refused:
        Digest("x" * 1_000_000)
    assert len(str(refused.value)) < 300
