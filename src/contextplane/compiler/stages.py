"""The stages of a compile, in their order. Each is a function from draft to draft."""

from collections.abc import Callable
from typing import NamedTuple

from contextplane.compiler.assemble import assemble
from contextplane.compiler.budget import budget
from contextplane.compiler.draft import Draft
from contextplane.compiler.evidence import evidence
from contextplane.compiler.intent import intent
from contextplane.compiler.memory import memory
from contextplane.compiler.policy import policy
from contextplane.compiler.scope import scope
from contextplane.compiler.seal import seal
from contextplane.compiler.tools import tools

__all__ = ["STAGES", "Stage"]


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
