"""What a checkpoint says beside size and root: when it was made, and where streams end. Other programs pass over it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from contextplane.errors import ContextPlaneError
from contextplane.testing.standalone_verifier import main, proves_consistency
from contextplane.trust.checkpoint import (
    Checkpoint,
    CheckpointInvalid,
    NoteKey,
    advance_checkpoint,
    consistency_text,
    open_checkpoint,
    signed_checkpoint,
)
from tests.support.cases import cases
from tests.unit.trust.test_merkle import brute, entries
from tests.unit.trust.world import CHECK, day, key_of

LOG = key_of("log")
ROOT = "A" * 43 + "="
PLAIN = Checkpoint(origin="example.com/registry", size=5, root=brute(entries(5)))
TIMED = replace(PLAIN, time=day(2))
FULL = replace(TIMED, heads=bytes(range(32)))


@cases("checkpoint", [PLAIN, TIMED, FULL, replace(PLAIN, heads=bytes(32))])
def test_it_is_read_again_as_it_was_signed_and_a_verifier_of_others_takes_it(checkpoint: Checkpoint) -> None:
    note = signed_checkpoint(checkpoint, LOG)
    origin = checkpoint.origin
    assert open_checkpoint(note, origin=origin, keys=(LOG.public_key,), check=CHECK) == checkpoint
    vkey = str(NoteKey(name=origin, key=LOG.public_key))
    assert proves_consistency(consistency_text(5, (), note), checkpoint.root, vkey)


@cases(
    "lines",
    [
        "time 2030-01-02\n",
        "time 2030-01-02T00:00:00.0Z\n",
        "time 2030-01-02T01:00:00+01:00\n",
        "time 2030-01-02T00:00:00Z\ntime 2030-01-02T00:00:00Z\n",
        "heads AAAA\n",
        f"heads {ROOT}\nheads {ROOT}\n",
        f"heads {ROOT}\ntime 2030-01-02T00:00:00Z\n",
        f"heads {ROOT}",
        "other line\n",
        "\n",
    ],
)
def test_each_extension_stands_there_once_in_its_one_form_and_place(lines: str) -> None:
    with pytest.raises(CheckpointInvalid):
        Checkpoint.parse(f"example.com/registry\n5\n{ROOT}\n{lines}")


@cases(
    ("shown", "expected"),
    [
        (FULL, "ok"),
        (replace(FULL, time=day(3)), "ok"),
        (replace(FULL, time=day(1)), "log_rolled_back"),
        (replace(FULL, time=None), "log_rolled_back"),
        (replace(FULL, heads=bytes(32)), "log_forked"),
        (replace(FULL, heads=None), "log_forked"),
    ],
)
def test_a_log_of_the_same_size_shows_the_same_ends_and_no_earlier_time(shown: Checkpoint, expected: str) -> None:
    try:
        advance_checkpoint(FULL, shown, ())
        code = "ok"
    except ContextPlaneError as error:
        code = error.code
    assert code == expected


@pytest.mark.parametrize(
    ("arguments", "status"),
    [([], 2), (["inclusion", "nowhere", "x", "y"], 2), (["other", "a", "b", "c"], 2), (["consistency", "-", "x"], 2)],
)
def test_the_second_verifier_says_when_it_was_not_asked_anything(
    arguments: list[str], status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == status
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err


@pytest.mark.parametrize("text", [b"", b"old 5", b"\xff\xff", b"old x\n\n", b"old 5\n\nnote\n\nsigned"])
def test_the_second_verifier_takes_no_nonsense_for_a_proof(
    tmp_path: Path, text: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    path = str(tmp_path / "proof")
    (tmp_path / "proof").write_bytes(text)
    vkey = str(NoteKey(name=PLAIN.origin, key=LOG.public_key))
    for what, about in (("consistency", ROOT), ("consistency", "!"), ("inclusion", path)):
        assert main([what, path, about, vkey]) == 1
        assert main([what, path, about, "nonsense"]) == 1
    assert set(capsys.readouterr().out.splitlines()) == {"not proved"}
