"""A document that cannot be read is an error with its name, whenever that shows."""

from pathlib import Path

import pytest

from contextplane.app.documents import DocumentUnreadable, open_document


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="no such file here")
def test_a_file_that_opens_and_then_cannot_be_read_is_named() -> None:
    with pytest.raises(DocumentUnreadable) as refused, open_document("/proc/self/mem"):
        pass
    assert refused.value.at == "/proc/self/mem"
