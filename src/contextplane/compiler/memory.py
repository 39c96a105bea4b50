"""Stage `memory`: selects the memories that may be shown. Only promoted ones ever are."""

from msgspec.structs import replace

from contextplane.compiler.digests import text_digest
from contextplane.compiler.draft import Draft, MemoryPart, RecalledMemory
from contextplane.compiler.errors import MemoryOfAnotherTenant
from contextplane.compiler.evidence import is_classified_above
from contextplane.compiler.prompt import data_block
from contextplane.model.compiled_context import MemoryManifestEntry, Omission
from contextplane.model.evidence import Memory
from contextplane.model.timestamp import InvalidTimestamp, Timestamp

__all__ = ["recall_memories"]


def recall_memories(draft: Draft) -> Draft:
    """Recall or omit every memory, in the given order, each omission with its reason.

    If different memories have the same reference, it is ambiguous, and all of them are omitted.
    """
    inputs = draft.inputs
    first: dict[str, Memory] = {}
    ambiguous = {
        memory.memory_ref for memory in inputs.memories if first.setdefault(memory.memory_ref, memory) != memory
    }
    shown: list[Memory] = []
    recalled: list[RecalledMemory] = []
    omitted: list[Omission] = []
    seen: set[str] = set()
    for n, (memory, masked) in enumerate(zip(inputs.memories, draft.shown.memories, strict=True)):
        at = f"memories#/{n}"
        if memory.tenant_id != inputs.run_context.tenant_id:
            raise MemoryOfAnotherTenant(
                f"this memory is of {memory.tenant_id}, the run of {inputs.run_context.tenant_id}",
                at=f"{at}/tenant_id",
                hint="recall within the tenant of the run",
            )
        reason = _rejection_reason(memory, draft)
        if reason is None and memory.memory_ref in ambiguous:
            reason = "same_reference_twice"
        elif reason is None and memory.memory_ref in seen:
            reason = "duplicate"
        if reason is not None:
            omitted.append(Omission(kind="memory", id=masked.memory_ref, stage="memory", reason=reason, at=at))
            continue
        seen.add(memory.memory_ref)
        shown.append(masked)
        entry = MemoryManifestEntry(memory_ref=masked.memory_ref, hash=text_digest(masked.content))
        recalled.append(RecalledMemory(entry=entry, at=at))
    blocks = tuple(
        data_block(
            f"mem_{n}",
            "memory",
            memory.content,
            inputs.tokens,
            classification=memory.classification,
            refs=(memory.memory_ref, *memory.evidence_refs),
        )
        for n, memory in enumerate(shown)
    )
    return replace(draft, memory=MemoryPart(recalled=tuple(recalled), blocks=blocks, omitted=tuple(omitted)))


def _rejection_reason(memory: Memory, draft: Draft) -> str | None:
    """Why the memory is not shown; None if it may be."""
    role = draft.inputs.run_context.user.role
    namespace = memory.subject.partition(":")[0] if memory.subject else None
    reasons = {
        "no_memory_layer": not draft.inputs.view.pack.memory_layer,
        "not_promoted": memory.state != "promoted",
        "namespace_not_in_scope": namespace is not None and namespace not in draft.scope.scope.ceid_namespaces,
        "not_for_this_intent": bool(memory.intents) and draft.intent.intent not in memory.intents,
        "not_for_this_role": bool(memory.roles) and role not in memory.roles,
        "classification_above_pack": is_classified_above(
            memory.classification, draft.inputs.view.pack.pack_meta.data_classification
        ),
        "expired": memory.expires_at is not None and _is_expired(memory.expires_at, draft.inputs.as_of),
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


def _is_expired(expires_at: str, as_of: Timestamp | None) -> bool:
    """Whether a memory is expired. Without a moment of the compile, or with an invalid time, it is."""
    try:
        return as_of is None or Timestamp.parse(expires_at) <= as_of
    except InvalidTimestamp:
        return True
