"""A sidecar is read as others write it, and one that is none is told in words of ours."""

import pytest

from contextplane.model.execution.sidecar import Sidecar, SidecarInvalid, read_sidecar
from tests.support.cases import cases


@cases(
    ("data", "message"),
    [
        (b"", "its bytes are not JSON"),
        (b"{\xff", "its bytes are not JSON"),
        (b"[]", "/: must be an object, not a list"),
        (b"{}", "/context_pack: is missing"),
        (b'{"context_pack": 3}', "/context_pack: must be text, not an integer"),
        (b'{"context_pack": "x", "tools": "t"}', "/tools: must be a list, not text"),
        (
            b'{"context_pack": "x", "tools": ["t", null], "notes": 1.5}',
            "/tools/1: must be text, not null; /notes: must be text, not a number",
        ),
    ],
)
def test_what_is_no_sidecar_is_told_field_by_field(data: bytes, message: str) -> None:
    with pytest.raises(SidecarInvalid) as refused:
        read_sidecar(data)
    assert refused.value.message == f"not a sidecar: {message}"


def test_nulls_and_unknown_fields_say_nothing() -> None:
    assert read_sidecar(b'{"context_pack": "x", "tools": null, "new": 1}') == Sidecar(context_pack="x")
