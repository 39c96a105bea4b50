"""A worker that breaks the protocol: its owner is not misled and does not wait for ever."""

from pathlib import Path

import pytest

from contextplane.adapters.tools.process import WorkerProcess
from contextplane.adapters.tools.wire import ToolResponse, encode_message, frame
from contextplane.ports.tools import ToolFailed

RESPONSE = frame(encode_message(ToolResponse(ended="output", output=b"forged")))
READY = frame(b"kernel")


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (READY + RESPONSE, b""),
        (READY, (1 << 40).to_bytes(8, "big") + b"x"),
        (READY, frame(b"\xc1")),
        (READY, RESPONSE[:-1]),
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
    worker = WorkerProcess("badly_behaved", (), {"PYTHONPATH": str(tmp_path)})
    try:
        with pytest.raises(ToolFailed, match="ended unexpectedly"):
            worker.exchange(b"{}", 20.0)
    finally:
        worker.end(0.0)


@pytest.mark.parametrize(
    ("first", "confinement"), [(b"kernel", "kernel"), (b"python", "python"), (b"anything", "python")]
)
def test_only_who_says_so_is_held_by_the_kernel(tmp_path: Path, first: bytes, confinement: str) -> None:
    (tmp_path / "badly_behaved.py").write_text(f"import os\nos.write(1, {frame(first)!r})\n")
    worker = WorkerProcess("badly_behaved", (), {"PYTHONPATH": str(tmp_path)})
    try:
        assert worker.confinement == confinement
    finally:
        worker.end(0.0)
