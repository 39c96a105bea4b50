"""Compiles a pack and a request into a compiled context, by running the table of stages.

Each stage is a function from draft to draft. Pure: the same values always give the same bytes.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from contextplane.compiler.assemble import assemble
from contextplane.compiler.budget import fit_budget
from contextplane.compiler.digests import digest, digest_of_plain
from contextplane.compiler.draft import Draft
from contextplane.compiler.evidence import admit_evidence
from contextplane.compiler.inputs import read_inputs
from contextplane.compiler.memory import recall_memories
from contextplane.compiler.policy import evaluate_policy
from contextplane.compiler.scope import resolve_intent, resolve_scope
from contextplane.compiler.seal import seal
from contextplane.compiler.tools import surface_tools
from contextplane.compiler.view import PackView
from contextplane.errors import ContextPlaneError
from contextplane.model.compiled_context import CompiledContext, StageRecord
from contextplane.model.evidence import EvidenceInput, Memory
from contextplane.model.invoke import InvokeRequest, RunContext
from contextplane.model.timestamp import Timestamp
from contextplane.model.tokens import APPROX4, Tokens

__all__ = ["STAGES", "Stage", "compile_context"]


class Stage(NamedTuple):
    """A stage. Its name is also that of the part it adds to the draft, and of its record in the ledger."""

    name: str
    run: Callable[[Draft], Draft]


STAGES: tuple[Stage, ...] = (
    # Tenant and principals come before everything: nothing is evaluated for a stranger.
    Stage("scope", resolve_scope),
    # Rules and decisions are looked up by intent.
    Stage("intent", resolve_intent),
    # Guardrails and rules come before the tools: the tool surface depends on what they prohibit.
    Stage("policy", evaluate_policy),
    Stage("tools", surface_tools),
    # What a decision requires is known from intent and policy; that decides which conflicts matter.
    Stage("evidence", admit_evidence),
    Stage("memory", recall_memories),
    # All blocks exist now.
    Stage("budget", fit_budget),
    # A dropped block is in no manifest, so manifests and the evidence gate come after the budget.
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
    """Compile a context, or raise with the stage and the place. `as_of`: the moment to judge freshness."""
    inputs = read_inputs(view, run_context, request, evidence=evidence, memories=memories, tokens=tokens, as_of=as_of)
    draft = Draft(inputs=inputs)
    for stage in STAGES:
        try:
            draft = stage.run(draft)
        except ContextPlaneError as error:
            error.details.setdefault("stage", stage.name)
            raise
        if stage.name != "seal":
            part = getattr(draft, stage.name)
            hash_part = digest_of_plain if view.is_plain else digest
            record = StageRecord(stage=stage.name, hash=hash_part(part), notes=part.notes)
            draft = replace(draft, stages=(*draft.stages, record))
    return draft.seal
