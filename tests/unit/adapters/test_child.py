"""A process that does not keep to the form: whatever it says, its owner is not misled and does not wait for ever."""

from pathlib import Path

import pytest

from contextplane.adapters.tools.process import Child
from contextplane.adapters.tools.wire import Answer, framed, wire_bytes
from contextplane.ports.tools import ToolFailed

ANSWER = framed(wire_bytes(Answer(ended="output", output=b"forged")))
READY = framed(b"kernel")


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (READY + ANSWER, b""),
        (READY, (1 << 40).to_bytes(8, "big") + b"x"),
        (READY, framed(b"\xc1")),
        (READY, ANSWER[:-1]),
        (READY, b""),
        (READY[:-1], b""),
        (b"", b""),
    ],
    ids=["before it is asked", "too much", "nonsense", "half an answer", "nothing", "not who holds it", "not a word"],
)
def test_what_is_no_answer_to_the_request_is_a_failure(tmp_path: Path, first: bytes, then: bytes) -> None:
    code = f"import os\nos.write(1, {first!r})\nos.read(0, 1)\nos.write(1, {then!r})\n"
    if not first.startswith(READY):
        code = f"import os\nos.write(1, {first!r})\n"
    (tmp_path / "badly_behaved.py").write_text(code)
    child = Child("badly_behaved", (), {"PYTHONPATH": str(tmp_path)})
    try:
        with pytest.raises(ToolFailed, match="ended unexpectedly"):
            child.exchange(b"{}", 20.0)
    finally:
        child.end(0.0)


@pytest.mark.parametrize(("said", "held"), [(b"kernel", "kernel"), (b"python", "python"), (b"anything", "python")])
def test_only_who_says_so_is_held_by_the_kernel(tmp_path: Path, said: bytes, held: str) -> None:
    (tmp_path / "badly_behaved.py").write_text(f"import os\nos.write(1, {framed(said)!r})\n")
    child = Child("badly_behaved", (), {"PYTHONPATH": str(tmp_path)})
    try:
        assert child.confinement == held
    finally:
        child.end(0.0)
