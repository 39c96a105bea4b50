"""The sidecar of an artifact: a small file beside it, `<file>.ctx.json`, naming the run that made it.

A sidecar is a claim, not a proof. Others write sidecars too, so reading is lenient: unknown fields are ignored.
"""

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.execution.manifest import Manifest
from contextplane.model.ids import Digest
from contextplane.model.problems import form_problems
from contextplane.model.value import Value

__all__ = ["MAX_SIDECAR_BYTES", "SUFFIX", "Sidecar", "SidecarInvalid", "read_sidecar", "sidecar_bytes", "sidecar_of"]

SUFFIX = ".ctx.json"

_HINT = "move it away, then 'ctx pack LOG --sidecars' writes a new one"

MAX_SIDECAR_BYTES = 16 << 20
"""A larger file is no sidecar."""


class SidecarInvalid(ContextPlaneError):
    """The file beside an artifact is not a sidecar."""

    code: ClassVar[str] = "sidecar_invalid"
    family: ClassVar[Family] = "refused"


class Sidecar(Value, frozen=True, omit_defaults=True):
    """`context_pack` names the run, in any form of a reference to an execution pack.

    `output` is the name of the file in the run. Others leave it out; then the file is found by its path.
    """

    context_pack: str
    output: str = ""
    inputs: tuple[str, ...] | None = None
    tools: tuple[str, ...] | None = None
    confidence: str = ""
    notes: str = ""


def read_sidecar(data: bytes) -> Sidecar:
    """Parse a sidecar. A field that is null counts as left out."""
    try:
        value = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SidecarInvalid("not a sidecar: its bytes are not JSON", hint=_HINT) from error
    if isinstance(value, dict):
        value = {key: field for key, field in value.items() if field is not None}
    try:
        return msgspec.convert(value, Sidecar)
    except msgspec.ValidationError as error:
        problems = "; ".join(f"{problem.at}: {problem.message}" for problem in form_problems(value, Sidecar))
        raise SidecarInvalid(f"not a sidecar: {problems}", hint=_HINT) from error


def sidecar_of(digest: Digest, manifest: Manifest) -> Sidecar:
    """The sidecar of each output of a run: names of its inputs and tools, sorted, each once."""
    return Sidecar(
        context_pack=f"ctx://{digest.hex}",
        inputs=tuple(sorted({input_file.name for input_file in manifest.inputs if input_file.name})),
        tools=tuple(sorted({step.tool for step in manifest.steps if step.tool})),
    )


def sidecar_bytes(sidecar: Sidecar, added: Mapping[str, object]) -> bytes:
    """The bytes of a sidecar, indented for people. `added`: fields that users put into it.

    The same sidecar always gives the same bytes.
    """
    return msgspec.json.format(msgspec.json.encode({**msgspec.to_builtins(sidecar), **added}), indent=2) + b"\n"
