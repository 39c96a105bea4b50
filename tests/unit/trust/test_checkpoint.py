"""Checkpoints are signed notes that other programs read; histories that were tampered with end in their own codes."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.errors import ContextPlaneError
from contextplane.model.keys import PublicKey
from contextplane.testing.standalone_verifier import proves_consistency, proves_inclusion
from contextplane.trust.checkpoint import (
    Checkpoint,
    CheckpointInvalid,
    NoteInvalid,
    NoteKey,
    NoteUnsigned,
    advance_checkpoint,
    consistency_text,
    inclusion_text,
    open_checkpoint,
    open_note,
    signed_checkpoint,
    signed_note,
)
from contextplane.trust.merkle import consistency_proof, inclusion_proof
from tests.support.cases import cases
from tests.unit.trust.test_merkle import Kept, brute, entries
from tests.unit.trust.world import CHECK, key_of

ORIGIN = "example.com/registry"
LOG, OTHER = key_of("log"), key_of("other log")
KEYS = (LOG.public_key,)
VKEY = str(NoteKey(name=ORIGIN, key=LOG.public_key))

# The example of the Go implementation of signed notes, which C2SP describes.
GO_KEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
GO_NOTE = (
    "If you think cryptography is the answer to your problem,\n"
    "then you don't know what your problem is.\n"
    "\n"
    "\u2014 PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)


def of(leaves: list[bytes], origin: str = ORIGIN) -> Checkpoint:
    return Checkpoint(origin=origin, size=len(leaves), root=brute(leaves))


def test_a_note_of_another_implementation_is_opened() -> None:
    key = NoteKey(name="PeterNeumann", key=PublicKey(base64.b64decode(GO_KEY.split("+", 2)[2])[1:]))
    assert str(key) == GO_KEY
    assert open_note(GO_NOTE.encode(), [key], CHECK).endswith("problem is.\n")
    with pytest.raises(NoteUnsigned):
        open_note(GO_NOTE.replace("answer", "Answer").encode(), [key], CHECK)


def test_a_checkpoint_is_three_lines_and_is_read_again() -> None:
    checkpoint = of(entries(5))
    note = signed_checkpoint(checkpoint, LOG)
    assert note.decode().split("\n")[:2] == [ORIGIN, "5"]
    assert open_checkpoint(note, origin=ORIGIN, keys=KEYS, check=CHECK) == checkpoint


def test_signatures_of_others_are_passed_over() -> None:
    note = signed_checkpoint(of(entries(5)), LOG)
    witness = signed_note(of(entries(5)).text, "witness.example", OTHER).decode().rpartition("\n\n")[2]
    assert open_checkpoint(note + witness.encode(), origin=ORIGIN, keys=KEYS, check=CHECK).size == 5


@cases(
    ("note", "error"),
    [
        (signed_checkpoint(of(entries(5)), OTHER), NoteUnsigned),
        (signed_checkpoint(of(entries(5), "example.com/another"), LOG), NoteUnsigned),
        (signed_note(of(entries(5), "example.com/another").text, ORIGIN, LOG), CheckpointInvalid),
        (signed_checkpoint(of(entries(5)), LOG).replace(b"\n5\n", b"\n6\n"), NoteUnsigned),
        (signed_note(f"{ORIGIN}\n05\n{'A' * 43}=\n", ORIGIN, LOG), CheckpointInvalid),
        (signed_note(f"{ORIGIN}\n-5\n{'A' * 43}=\n", ORIGIN, LOG), CheckpointInvalid),
        (signed_note(f"{ORIGIN}\n5\nAAAA\n", ORIGIN, LOG), CheckpointInvalid),
        (signed_note(f"{ORIGIN}\n5\n{'A' * 42}B=\n", ORIGIN, LOG), CheckpointInvalid),
        (signed_note(f"{ORIGIN}\n5\n", ORIGIN, LOG), CheckpointInvalid),
        (signed_note(f"{ORIGIN}\n5\n{'A' * 43}=\nextension\n", ORIGIN, LOG), CheckpointInvalid),
        (signed_checkpoint(of(entries(5)), LOG).rpartition(b"\n\n")[0] + b"\n", NoteInvalid),
        (signed_checkpoint(of(entries(5)), LOG)[:-1], NoteInvalid),
        (signed_checkpoint(of(entries(5)), LOG) + b"\xff", NoteInvalid),
        (signed_checkpoint(of(entries(5)), LOG) + b"- name AAAAAAAA\n", NoteInvalid),
        (b"", NoteInvalid),
        (b"x" * 70_000, NoteInvalid),
    ],
    ids=range(16),
)
def test_what_is_no_checkpoint_of_this_log_is_refused(note: bytes, error: type[ContextPlaneError]) -> None:
    with pytest.raises(error):
        open_checkpoint(note, origin=ORIGIN, keys=KEYS, check=CHECK)


@cases(("text", "name"), [("no end", "n"), ("a\n", ""), ("a\n", "a b"), ("a\n", "a+b"), ("\x07\n", "n")])
def test_what_could_not_be_read_again_is_not_signed(text: str, name: str) -> None:
    with pytest.raises(NoteInvalid):
        signed_note(text, name, LOG)


def code(seen: Checkpoint | None, shown: Checkpoint, proof: tuple[bytes, ...]) -> str:
    try:
        assert advance_checkpoint(seen, shown, proof) == shown
    except ContextPlaneError as error:
        return error.code
    return "ok"


def test_a_log_that_only_grew_is_followed() -> None:
    leaves = entries(9)
    proof = consistency_proof(Kept(leaves), 4, 9)
    assert code(None, of(leaves[:4]), ()) == "ok"
    assert code(of(leaves[:4]), of(leaves), proof) == "ok"
    assert code(of(leaves), of(leaves), ()) == "ok"


def test_each_way_to_tamper_with_a_history_has_its_own_code() -> None:
    leaves = entries(9)
    seen = of(leaves[:6])
    other = [*leaves[:3], b"entrY 3", *leaves[4:]]
    assert code(seen, of(leaves[:5]), ()) == "log_rolled_back"
    assert code(seen, of(other[:6]), ()) == "log_forked"
    assert code(seen, of(leaves, "example.com/another"), ()) == "log_forked"
    assert code(seen, of(other), consistency_proof(Kept(other), 6, 9)) == "log_rewritten"
    assert code(seen, of(leaves), ()) == "log_rewritten"


def test_the_second_verifier_takes_bytes_in_their_one_spelling_only() -> None:
    leaves = entries(3)
    note = signed_checkpoint(of(leaves), LOG)
    text = inclusion_text(1, inclusion_proof(Kept(leaves), 1, 3), note)
    line = text.splitlines()[2]
    other = line[:-2] + bytes([line[-2] + 1]) + b"="
    assert base64.b64decode(line) == base64.b64decode(other)
    with pytest.raises(ValueError, match="one spelling"):
        proves_inclusion(text.replace(line, other), leaves[1], VKEY)


@given(st.integers(min_value=1, max_value=40), st.data())
def test_an_exported_proof_convinces_a_verifier_that_shares_no_code(size: int, data: st.DataObject) -> None:
    leaves = entries(size)
    index = data.draw(st.integers(min_value=0, max_value=size - 1))
    note = signed_checkpoint(of(leaves), LOG)
    text = inclusion_text(index, inclusion_proof(Kept(leaves), index, size), note)
    assert proves_inclusion(text, leaves[index], VKEY)
    assert not proves_inclusion(text, b"another", VKEY)
    assert not proves_inclusion(text, leaves[index], str(NoteKey(name=ORIGIN, key=OTHER.public_key)))
    old = data.draw(st.integers(min_value=0, max_value=size))
    text = consistency_text(old, consistency_proof(Kept(leaves), old, size), note)
    assert proves_consistency(text, brute(leaves[:old]), VKEY)
    assert not proves_consistency(text, brute([b"another", *leaves[1:old]]), VKEY)


def test_a_proof_is_written_as_others_read_it() -> None:
    hashes = [b"\x00" * 32, b"\xff" * 32]
    lines = b"A" * 43 + b"=\n" + b"/" * 42 + b"8=\n"
    assert inclusion_text(7, hashes, b"note\n") == b"c2sp.org/tlog-proof@v1\nindex 7\n" + lines + b"\nnote\n"
    assert consistency_text(7, hashes, b"note\n") == b"old 7\n" + lines + b"\nnote\n"
    assert consistency_text(0, [], b"note\n") == b"old 0\n\nnote\n"


PROOF = inclusion_text(1, inclusion_proof(Kept(entries(3)), 1, 3), signed_checkpoint(of(entries(3)), LOG))
HASH = PROOF.splitlines(keepends=True)[2]


@cases(
    ("old", "new"),
    [
        (b"c2sp.org/tlog-proof@v1\n", b""),
        (b"tlog-proof@v1\n", b"tlog-proof@v2\n"),
        (b"index 1\n", b"index 2\n"),
        (b"index 1\n", b"index -1\n"),
        (b"index 1\n", b"extra AAAA\nindex 1\n"),
        (HASH, b""),
        (HASH, HASH + HASH),
        (HASH, HASH[4:]),
        (HASH, b"!\n"),
        (b"\n\n", b"\n"),
    ],
    ids=range(10),
)
def test_a_proof_that_was_changed_proves_nothing(old: bytes, new: bytes) -> None:
    def proved(text: bytes) -> bool:
        try:
            return proves_inclusion(text, entries(3)[1], VKEY)
        except ValueError:
            return False

    assert old in PROOF
    assert proved(PROOF)
    assert not proved(PROOF.replace(old, new, 1))
