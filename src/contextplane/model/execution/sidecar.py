"""The sidecar of an artifact: a small file beside it, `<file>.ctx.json`, that says which run made it.

It claims; it proves nothing. Others write sidecars too, so reading is lenient: unknown fields are passed over.
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution.manifest import Manifest
from contextplane.model.ids import Digest
from contextplane.model.problems import form_problems
from contextplane.model.value import Value

__all__ = ["SIDECAR_MOST", "SUFFIX", "Sidecar", "SidecarInvalid", "read_sidecar", "sidecar_bytes", "sidecar_of"]

SUFFIX = ".ctx.json"

_HINT = "move it away, then 'ctx pack LOG --sidecars' writes a new one"

SIDECAR_MOST = 16 << 20
"""A larger file is no sidecar."""


class SidecarInvalid(ContextPlaneError):
    """The file beside an artifact is not a sidecar."""

    code: ClassVar[str] = "sidecar_invalid"
    family: ClassVar[Family] = "refused"


class Sidecar(Value, frozen=True, omit_defaults=True):
    """`context_pack` names the run in any form that a reference to an execution pack has.

    `output` is the name that the file has there; others write none, and then it is found by its path.
    """

    context_pack: str
    output: str = ""
    inputs: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    confidence: str = ""
    notes: str = ""


def read_sidecar(data: bytes) -> Sidecar:
    """Read what somebody wrote: what is null counts as left out."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SidecarInvalid("not a sidecar: its bytes are not JSON", hint=_HINT) from error
    if isinstance(value, dict):
        value = {key: one for key, one in value.items() if one is not None}
    try:
        return msgspec.convert(value, Sidecar)
    except msgspec.ValidationError as error:
        told = "; ".join(f"{form_problem.at}: {form_problem.message}" for form_problem in form_problems(value, Sidecar))
        raise SidecarInvalid(f"not a sidecar: {told}", hint=_HINT) from error


def sidecar_of(digest: Digest, manifest: Manifest) -> Sidecar:
    """What a run says of each of its outputs: the names of its inputs and tools, sorted, each once."""
    return Sidecar(
        context_pack=f"ctx://{digest.hex}",
        inputs=tuple(sorted({one.name for one in manifest.inputs if one.name})),
        tools=tuple(sorted({step.tool for step in manifest.steps if step.tool})),
    )


def sidecar_bytes(sidecar: Sidecar, added: Mapping[str, object]) -> bytes:
    """The same bytes for the same sidecar, readable by people. `added`: fields that somebody put into it."""
    return msgspec.json.format(msgspec.json.encode({**msgspec.to_builtins(sidecar), **added}), indent=2) + b"\n"
