"""From a pack and a request to a compiled context. Pure: the same values always give the same bytes.

The stages of a compile, in their order. Each is a function from draft to draft.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from contextplane.compiler.assemble import assemble
from contextplane.compiler.budget import budget
from contextplane.compiler.draft import Draft
from contextplane.compiler.evidence import evidence
from contextplane.compiler.hashing import digest, digest_of_plain
from contextplane.compiler.inputs import read
from contextplane.compiler.memory import memory
from contextplane.compiler.policy import policy
from contextplane.compiler.scope import intent, scope
from contextplane.compiler.seal import seal
from contextplane.compiler.tools import tools
from contextplane.compiler.view import PackView
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import CompiledContext, StageRecord
from contextplane.model.evidence import EvidenceInput, Memory
from contextplane.model.invoke import InvokeRequest, RunContext
from contextplane.model.timestamp import Timestamp
from contextplane.model.tokens import APPROX4, Tokens

__all__ = ["STAGES", "Stage", "compile_context"]


class Stage(NamedTuple):
    """Its name is also that of the part it adds to the draft, and of its record in the ledger."""

    name: str
    run: Callable[[Draft], Draft]


STAGES: tuple[Stage, ...] = (
    # Whose run it is comes before everything: nothing is evaluated for a stranger.
    Stage("scope", scope),
    # Rules and decisions are looked up by intent.
    Stage("intent", intent),
    # Guardrails and rules, before any tool is looked at: the surface depends on what they prohibit.
    Stage("policy", policy),
    Stage("tools", tools),
    # What a decision requires is known from intent and policy; that decides which conflicts matter.
    Stage("evidence", evidence),
    Stage("memory", memory),
    # All blocks are there now.
    Stage("budget", budget),
    # What was dropped is in no manifest, so manifests and the evidence gate come after the budget.
    Stage("assemble", assemble),
    # Last, because it covers all the others.
    Stage("seal", seal),
)


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
