"""From a pack and a request to a compiled context. Pure: the same values always give the same bytes."""

from collections.abc import Sequence

from msgspec.structs import replace

from contextplane.compiler.draft import Draft
from contextplane.compiler.hashing import digest, digest_of_plain
from contextplane.compiler.inputs import read
from contextplane.compiler.stages import STAGES
from contextplane.compiler.view import PackView
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import CompiledContext
from contextplane.model.context_ledger import StageRecord
from contextplane.model.evidence import EvidenceInput
from contextplane.model.invoke import InvokeRequest
from contextplane.model.memory import Memory
from contextplane.model.run_context import RunContext
from contextplane.model.timestamp import Timestamp
from contextplane.model.tokens import APPROX4, Tokens

__all__ = ["compile_context"]


def compile_context(  # noqa: PLR0913  the inputs, each of which shapes what is compiled
    view: PackView,
    run_context: RunContext,
    request: InvokeRequest,
    evidence: Sequence[EvidenceInput] = (),
    memories: Sequence[Memory] = (),
    *,
    tokens: Tokens = APPROX4,
    as_of: Timestamp | None = None,
) -> CompiledContext:
    """Compile, or refuse with the stage and the place. `as_of` is the moment at which freshness is judged."""
    inputs = read(view, run_context, request, evidence=evidence, memories=memories, tokens=tokens, as_of=as_of)
    draft = Draft(inputs=inputs)
    for stage in STAGES:
        try:
            draft = stage.run(draft)
        except ContextPlaneError as error:
            error.details.setdefault("stage", stage.name)
            raise
        if stage.name != "seal":
            part = getattr(draft, stage.name)
            of = digest_of_plain if view.is_plain else digest
            record = StageRecord(stage=stage.name, hash=of(part), notes=part.notes)
            draft = replace(draft, stages=(*draft.stages, record))
    return draft.seal
