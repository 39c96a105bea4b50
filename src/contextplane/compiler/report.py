"""An account of a compiled context: everything that it decided on, by name, in or out, with the reason in words.

Two accounts differ exactly in what moved.
"""

from collections.abc import Iterator
from typing import Literal, get_args

from contextplane.model.compiled_context import ArgumentLimit, CompiledContext
from contextplane.model.evidence import Unresolved
from contextplane.model.value import Value

__all__ = ["UNTOLD", "Item", "ItemKind", "Moved", "account_of", "moved", "said_of_limits"]

_TOLD = 3
"""So many pieces of evidence are named in one line."""

_IN_EFFECT = "took effect"
_DROPPED = "took effect; its text does not fit"
UNTOLD = frozenset({_IN_EFFECT, _DROPPED})
"""What is said of a rule in effect whose text is not at hand."""

ItemKind = Literal[
    "decision",
    "tool",
    "rule",
    "gate",
    "guardrail",
    "redaction",
    "evidence",
    "memory",
    "requirement",
    "block",
    "bucket",
    "setting",
    "task",
]

_KINDS: tuple[ItemKind, ...] = get_args(ItemKind)


class Item(Value, frozen=True):
    """One thing. `inside`: it is in the result, in effect, active, triggered, or satisfied, whatever it is."""

    kind: ItemKind
    id: str
    inside: bool
    words: str
    stage: str


class Moved(Value, frozen=True):
    """One thing that is otherwise than before. None: it was not there at all."""

    kind: ItemKind
    id: str
    before: Item | None
    after: Item | None


def account_of(compiled: CompiledContext) -> tuple[Item, ...]:
    """Every item, each kind and id once: what is in counts before what was left out under the same id."""
    found: dict[tuple[str, str], Item] = {}
    for item in _items(compiled):
        found.setdefault((item.kind, item.id), item)
    return tuple(found.values())


def moved(before: CompiledContext, after: CompiledContext) -> tuple[Moved, ...]:
    """What is otherwise, by kind. Blocks follow from the rest, and are left out."""
    old = {(item.kind, item.id): item for item in account_of(before) if item.kind != "block"}
    new = {(item.kind, item.id): item for item in account_of(after) if item.kind != "block"}
    keys = sorted(dict.fromkeys((*old, *new)), key=lambda fromkey: _KINDS.index(fromkey[0]))
    return tuple(
        Moved(kind=kind, id=name, before=old.get((kind, name)), after=new.get((kind, name)))
        for kind, name in keys
        if old.get((kind, name)) != new.get((kind, name))
    )


def _items(compiled: CompiledContext) -> Iterator[Item]:
    """What is in, and after it what was left out."""
    yield from _decided(compiled)
    yield from _surfaced(compiled)
    yield from _controlled(compiled)
    yield from _rested_on(compiled)
    yield from _fitted(compiled)
    sizes = _sizes_of_dropped(compiled)
    for omission in compiled.manifests.omission_manifest:
        detail = omission.detail
        if omission.stage == "budget":
            detail = sizes.get(omission.id if omission.kind == "block" else f"{omission.kind} {omission.id}")
        why = f"{omission.reason}: {detail}" if detail else omission.reason
        yield Item(kind=omission.kind, id=omission.id, inside=False, words=why, stage=omission.stage)


def _sizes_of_dropped(compiled: CompiledContext) -> dict[str, str]:
    """Of every block that does not fit, and of what it would have shown: how much it takes, and what is left."""
    report = compiled.budget_report
    left = {name: given - report.tokens_used_by_bucket[name] for name, given in report.tokens_allocated.items()}
    blocks = [omission for omission in compiled.manifests.omission_manifest if omission.kind == "block"]
    for block in blocks:
        if block.bucket is not None and block.reason == "over_total_budget":
            left[block.bucket] -= block.tokens or 0  # it did fit its bucket
    found: dict[str, str] = {}
    for block in blocks:
        if block.bucket is not None:
            room = f"{left[block.bucket]:,} of {report.tokens_allocated[block.bucket]:,} are left in {block.bucket}"
            told = f"takes {block.tokens or 0:,} tokens, and " + (
                room if block.reason == "over_budget" else "all buckets together have no more"
            )
            found[block.id] = told
            found |= {f"{block.bucket} {ref}": told for ref in block.source_refs}
    return found


def _decided(compiled: CompiledContext) -> Iterator[Item]:
    verdict = compiled.policy_decision
    if verdict is not None:
        mode = f"up to {verdict.effective_approval_mode}" if verdict.effective_approval_mode else ""
        words = mode if verdict.allowed else "; ".join(verdict.denials) or verdict.reason or ""
        name = "allowed" if verdict.allowed else "denied"
        told = f"{name}, {words}" if words else name
        yield Item(kind="decision", id="request", inside=verdict.allowed, words=told, stage="policy")
    texts = {
        ref: context_block.content
        for context_block in compiled.compiled_prompt.context_blocks
        for ref in context_block.provenance_refs
    }
    untold = {
        ref
        for omission in compiled.manifests.omission_manifest
        if omission.kind == "block"
        for ref in omission.source_refs
    }
    for bundle in compiled.manifests.policy_manifest:
        for rule in bundle.rule_ids:
            ref = f"policy:{bundle.bundle_id}#{rule}"
            told = texts.get(ref, "").partition(": ")[2]
            told = told or (_DROPPED if ref in untold else _IN_EFFECT)
            yield Item(kind="rule", id=f"{bundle.bundle_id}#{rule}", inside=True, words=told, stage="policy")


def _surfaced(compiled: CompiledContext) -> Iterator[Item]:
    for entry in compiled.manifests.tool_manifest:
        for name in entry.capabilities:
            metadata = entry.capability_metadata.get(name)
            words = [metadata.approval_mode if metadata else "", *said_of_limits(entry.constraints.get(name, ()))]
            tool = f"{entry.adapter_id}.{name}"
            yield Item(kind="tool", id=tool, inside=True, words="; ".join(filter(None, words)), stage="tools")


def said_of_limits(limits: tuple[ArgumentLimit, ...]) -> Iterator[str]:
    """What the arguments of a tool must be, in words."""
    for limit in limits:
        bounds = limit.constraint
        parts = [
            f"at least {bounds.min}" if bounds.min is not None else "",
            f"at most {bounds.max}" if bounds.max is not None else "",
            f"one of {', '.join(map(str, bounds.enum))}" if bounds.enum else "",
            f"like {bounds.pattern}" if bounds.pattern else "",
            "required" if bounds.required else "",
            "unless approved" if bounds.unless_approved else "",
        ]
        yield f"{limit.argument} {', '.join(filter(None, parts))}"


def _controlled(compiled: CompiledContext) -> Iterator[Item]:
    controls, verdict = compiled.runtime_controls, compiled.policy_decision
    triggered = {*(verdict.refused if verdict else ()), *(verdict.escalated if verdict else ())}
    for how, labels in (("refuse", controls.must_refuse), ("escalate", controls.must_escalate)):
        for label in labels:
            told = f"must {how}, " + ("triggered" if label in triggered else "not triggered")
            yield Item(kind="guardrail", id=label, inside=label in triggered, words=told, stage="policy")
    for gate in controls.approval_gates_active:
        yield Item(kind="gate", id=gate, inside=True, words="active", stage="tools")
    for rule in controls.redaction_rules_active:
        yield Item(kind="redaction", id=rule, inside=True, words="active", stage="assemble")


def _rested_on(compiled: CompiledContext) -> Iterator[Item]:
    for piece in compiled.manifests.evidence_manifest:
        told = f"admitted, from {piece.source_id}" if piece.source_id else "admitted"
        yield Item(kind="evidence", id=piece.evidence_ref, inside=True, words=told, stage="evidence")
    for memory in compiled.manifests.memory_manifest:
        yield Item(kind="memory", id=memory.memory_ref, inside=True, words="recalled", stage="memory")
    gate = compiled.evidence_gate
    for met in gate.satisfied if gate else ():
        yield Item(kind="requirement", id=met.name, inside=True, words=f"satisfied by {met.by}", stage="assemble")
    for open_ in gate.unresolved if gate else ():
        ways = f"; {', '.join(open_.obtainable_by)} can produce it" if open_.obtainable_by else ""
        words = f"{_why_open(open_)}{ways}"
        yield Item(kind="requirement", id=open_.name, inside=False, words=words, stage="assemble")


def _why_open(name: Unresolved) -> str:
    """The reason, and the first pieces that do not answer it, each with its own where that is another one."""
    told = [
        one.evidence_ref if one.reason == name.reason else f"{one.evidence_ref} is {one.reason}"
        for one in name.evidence[:_TOLD]
    ]
    more = f" and {len(name.evidence) - _TOLD} more" if len(name.evidence) > _TOLD else ""
    return f"{name.reason}: {', '.join(told)}{more}" if told else name.reason


def _fitted(compiled: CompiledContext) -> Iterator[Item]:
    report = compiled.budget_report
    for bucket, allotted in report.tokens_allocated.items():
        dropped = report.dropped_block_ids.get(bucket, ())
        told = f"{report.tokens_used_by_bucket[bucket]:,} of {allotted:,}"
        told += f", dropped {', '.join(dropped)}" if dropped else ""
        yield Item(kind="bucket", id=bucket, inside=not dropped, words=told, stage="budget")
    for block in compiled.compiled_prompt.context_blocks:
        told = f"{block.bucket}, {block.tokens or 0:,} tokens"
        yield Item(kind="block", id=block.block_id, inside=True, words=told, stage="budget")
    for name, setting in compiled.context_ledger.environment.items():
        told = f"{setting.value}, from the {setting.source.replace('_', ' ')}"
        yield Item(kind="setting", id=name, inside=True, words=told, stage="scope")
    yield Item(kind="task", id="task", inside=True, words=compiled.compiled_prompt.task, stage="assemble")
