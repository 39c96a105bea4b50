"""The whole pack: ten layers, and an optional eleventh."""

from contextplane.model.context_pack.business_context import BusinessContext
from contextplane.model.context_pack.contract_meta import ContractMeta
from contextplane.model.context_pack.decision_layer import DecisionLayer
from contextplane.model.context_pack.evaluation_layer import EvaluationLayer
from contextplane.model.context_pack.intelligence_refs import IntelligenceRefs
from contextplane.model.context_pack.memory_layer import MemoryLayer
from contextplane.model.context_pack.pack_meta import PackMeta
from contextplane.model.context_pack.policy_layer import PolicyLayer
from contextplane.model.context_pack.task_layer import TaskLayer
from contextplane.model.context_pack.tone_and_comms import ToneAndComms
from contextplane.model.context_pack.tooling_layer import ToolingLayer
from contextplane.model.ids import PackRef
from contextplane.model.value import Document

__all__ = ["ContextPack"]


class ContextPack(Document, frozen=True, omit_defaults=True):
    """Closed at every level. Only its form is checked here; what its parts say to each other is for the gates."""

    contract_meta: ContractMeta
    pack_meta: PackMeta
    intelligence_refs: IntelligenceRefs
    business_context: BusinessContext
    policy_layer: PolicyLayer
    tooling_layer: ToolingLayer
    decision_layer: DecisionLayer
    memory_layer: MemoryLayer
    evaluation_layer: EvaluationLayer
    tone_and_comms: ToneAndComms
    task_layer: TaskLayer = TaskLayer()

    @property
    def ref(self) -> PackRef:
        return PackRef(self.pack_meta.pack_id, self.pack_meta.pack_version)
