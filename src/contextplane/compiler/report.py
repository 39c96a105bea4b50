"""Reports a compiled context as items: everything it decided on, in or out, with the reason in words.

Comparing the items of two contexts gives exactly what changed.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from contextplane.compiler.limits import describe_call_limit
from contextplane.model.compiled_context import ArgumentLimit, CompiledContext, RequiredApproval
from contextplane.model.evidence import Unresolved
from contextplane.model.value import Value

__all__ = ["WITHOUT_TEXT", "ContextItem", "ItemChange", "ItemKind", "compare_contexts", "describe_limits", "list_items"]

_NAMED_PIECES = 3
"""At most so many pieces of evidence are named in a line."""

_IN_EFFECT = "took effect"
_DROPPED = "took effect; its text does not fit"
WITHOUT_TEXT = frozenset({_IN_EFFECT, _DROPPED})
"""The words of a rule in effect whose text is not in the prompt."""

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


class ContextItem(Value, frozen=True):
    """An item of a compiled context. `inside`: it is included, in effect, active, triggered or satisfied."""

    kind: ItemKind
    id: str
    inside: bool
    words: str
    stage: str


class ItemChange(Value, frozen=True):
    """A change of an item between two compiled contexts. None: the item did not exist."""

    kind: ItemKind
    id: str
    before: ContextItem | None
    after: ContextItem | None


def list_items(compiled: CompiledContext) -> tuple[ContextItem, ...]:
    """List every item, each kind and id once. An item that is in wins over one omitted under the same id."""
    items: dict[tuple[str, str], ContextItem] = {}
    for item in _items(compiled):
        items.setdefault((item.kind, item.id), item)
    return tuple(items.values())


def compare_contexts(before: CompiledContext, after: CompiledContext) -> tuple[ItemChange, ...]:
    """List the items that differ, by kind. Blocks follow from the other items, and are left out."""
    old = {(item.kind, item.id): item for item in list_items(before) if item.kind != "block"}
    new = {(item.kind, item.id): item for item in list_items(after) if item.kind != "block"}
    keys = sorted(dict.fromkeys((*old, *new)), key=lambda key: _KINDS.index(key[0]))
    return tuple(
        ItemChange(kind=kind, id=name, before=old.get((kind, name)), after=new.get((kind, name)))
        for kind, name in keys
        if old.get((kind, name)) != new.get((kind, name))
    )


def _items(compiled: CompiledContext) -> Iterator[ContextItem]:
    """Yield the items that are in, then those that were omitted."""
    yield from _policy_items(compiled)
    yield from _tool_items(compiled)
    yield from _control_items(compiled)
    yield from _evidence_items(compiled)
    yield from _budget_items(compiled)
    sizes = _dropped_sizes(compiled)
    for omission in compiled.manifests.omission_manifest:
        if omission.kind == "redaction":
            continue  # the item of its rule counts them
        detail = omission.detail
        if omission.stage == "budget":
            detail = sizes.get(omission.id if omission.kind == "block" else f"{omission.kind} {omission.id}")
        why = f"{omission.reason}: {detail}" if detail else omission.reason
        yield ContextItem(kind=omission.kind, id=omission.id, inside=False, words=why, stage=omission.stage)


def _dropped_sizes(compiled: CompiledContext) -> dict[str, str]:
    """Describe the size of each block that does not fit, by the id of the block and by its refs."""
    report = compiled.budget_report
    left = {name: tokens - report.tokens_used_by_bucket[name] for name, tokens in report.tokens_allocated.items()}
    blocks = [omission for omission in compiled.manifests.omission_manifest if omission.kind == "block"]
    for block in blocks:
        if block.bucket is not None and block.reason == "over_total_budget":
            left[block.bucket] -= block.tokens or 0  # it did fit its bucket
    sizes: dict[str, str] = {}
    for block in blocks:
        if block.bucket is not None:
            room = f"{left[block.bucket]:,} of {report.tokens_allocated[block.bucket]:,} are left in {block.bucket}"
            words = f"takes {block.tokens or 0:,} tokens, and " + (
                room if block.reason == "over_budget" else "all buckets together have no more"
            )
            sizes[block.id] = words
            sizes |= {f"{block.bucket} {ref}": words for ref in block.source_refs}
    return sizes


def _policy_items(compiled: CompiledContext) -> Iterator[ContextItem]:
    verdict = compiled.policy_decision
    if verdict is not None:
        mode = f"in approval mode {verdict.effective_approval_mode}" if verdict.effective_approval_mode else ""
        detail = mode if verdict.allowed else _join_sentences(verdict.denials) or verdict.reason or ""
        name = "allowed" if verdict.allowed else "denied"
        words = f"{name}, {detail}" if detail else name
        yield ContextItem(kind="decision", id="request", inside=verdict.allowed, words=words, stage="policy")
    texts = {ref: block.content for block in compiled.compiled_prompt.context_blocks for ref in block.provenance_refs}
    dropped = {
        ref
        for omission in compiled.manifests.omission_manifest
        if omission.kind == "block"
        for ref in omission.source_refs
    }
    for bundle in compiled.manifests.policy_manifest:
        for rule in bundle.rule_ids:
            ref = f"policy:{bundle.bundle_id}#{rule}"
            words = texts.get(ref, "").partition(": ")[2]
            words = words or (_DROPPED if ref in dropped else _IN_EFFECT)
            yield ContextItem(kind="rule", id=f"{bundle.bundle_id}#{rule}", inside=True, words=words, stage="policy")


def _join_sentences(sentences: Sequence[str]) -> str:
    """Join sentences in one line; of all but the last, the full stop goes."""
    *first, last = sentences or ("",)
    return "; ".join([*(sentence.rstrip(". ") for sentence in first), last])


def _tool_items(compiled: CompiledContext) -> Iterator[ContextItem]:
    for entry in compiled.manifests.tool_manifest:
        for name in entry.capabilities:
            metadata = entry.capability_metadata.get(name)
            words = [metadata.approval_mode if metadata else "", *describe_limits(entry.constraints.get(name, ()))]
            words += map(describe_call_limit, entry.limits.get(name, ()))
            tool = f"{entry.adapter_id}.{name}"
            yield ContextItem(kind="tool", id=tool, inside=True, words="; ".join(filter(None, words)), stage="tools")


def describe_limits(limits: tuple[ArgumentLimit, ...]) -> Iterator[str]:
    """Describe the limits of a tool's arguments in words."""
    for limit in limits:
        bounds = limit.constraint
        known = {fact.bound: f" ({fact.fact})" for fact in limit.facts if not fact.problem and not fact.masked}
        parts = [
            f"at least {bounds.min}{known.get('min', '')}" if bounds.min is not None else "",
            f"at most {bounds.max}{known.get('max', '')}" if bounds.max is not None else "",
            f"one of {', '.join(map(str, bounds.enum))}" if bounds.enum else "",
            f"equal to {bounds.equals}{known.get('equals', '')}" if bounds.equals is not None else "",
            f"like {bounds.pattern}" if bounds.pattern else "",
            *(
                f"{fact.bound} by {fact.fact}{f', which {fact.problem}' if fact.problem else ''}"
                for fact in limit.facts
                if fact.bound not in known
            ),
            "required" if bounds.required else "",
            "unless approved" if bounds.unless_approved else "",
        ]
        yield f"{limit.argument} {', '.join(filter(None, parts))}"


def _control_items(compiled: CompiledContext) -> Iterator[ContextItem]:
    controls, verdict = compiled.runtime_controls, compiled.policy_decision
    triggered = {*(verdict.refused if verdict else ()), *(verdict.escalated if verdict else ())}
    for action, labels in (("refuse", controls.must_refuse), ("escalate", controls.must_escalate)):
        for label in labels:
            words = f"must {action}, " + ("triggered" if label in triggered else "not triggered")
            yield ContextItem(kind="guardrail", id=label, inside=label in triggered, words=words, stage="policy")
    for approval in controls.approval_gates:
        yield ContextItem(kind="gate", id=approval.gate_id, inside=True, words=_approval_words(approval), stage="tools")
    masked: Counter[str] = Counter()
    for omission in compiled.manifests.omission_manifest:
        if omission.kind == "redaction":
            masked[omission.id] += omission.count or 0
    # Secrets, and what a schema marks, are masked by every pack.
    for rule in dict.fromkeys((*controls.redaction_rules_active, *masked)):
        words = f"active, masked {masked[rule]:,}" if masked[rule] else "active"
        yield ContextItem(kind="redaction", id=rule, inside=True, words=words, stage="redaction")


def _approval_words(approval: RequiredApproval) -> str:
    """Which calls wait, and for whom."""
    if not approval.capabilities:
        return "active, and no tool is left whose calls would wait for it"
    count = f"{approval.approvers} people in the role " if approval.approvers > 1 else ""
    verb = "wait" if len(approval.capabilities) > 1 else "waits"
    return f"active: {', '.join(approval.capabilities)} {verb} for {count}{approval.required_approver_role}"


def _evidence_items(compiled: CompiledContext) -> Iterator[ContextItem]:
    for piece in compiled.manifests.evidence_manifest:
        words = f"admitted, from {piece.source_id}" if piece.source_id else "admitted"
        yield ContextItem(kind="evidence", id=piece.evidence_ref, inside=True, words=words, stage="evidence")
    for memory in compiled.manifests.memory_manifest:
        yield ContextItem(kind="memory", id=memory.memory_ref, inside=True, words="recalled", stage="memory")
    gate = compiled.evidence_gate
    for satisfied in gate.satisfied if gate else ():
        words = f"satisfied by {satisfied.by}"
        yield ContextItem(kind="requirement", id=satisfied.name, inside=True, words=words, stage="assemble")
    for unresolved in gate.unresolved if gate else ():
        tools = f"; {', '.join(unresolved.obtainable_by)} can produce it" if unresolved.obtainable_by else ""
        words = f"{_open_reason(unresolved)}{tools}"
        yield ContextItem(kind="requirement", id=unresolved.name, inside=False, words=words, stage="assemble")


def _open_reason(name: Unresolved) -> str:
    """The reason, and the first pieces that do not answer the name, each with its reason if that differs."""
    pieces = [
        piece.evidence_ref if piece.reason == name.reason else f"{piece.evidence_ref} is {piece.reason}"
        for piece in name.evidence[:_NAMED_PIECES]
    ]
    more = f" and {len(name.evidence) - _NAMED_PIECES} more" if len(name.evidence) > _NAMED_PIECES else ""
    return f"{name.reason}: {', '.join(pieces)}{more}" if pieces else name.reason


def _budget_items(compiled: CompiledContext) -> Iterator[ContextItem]:
    report = compiled.budget_report
    for bucket, allotted in report.tokens_allocated.items():
        dropped = report.dropped_block_ids.get(bucket, ())
        words = f"{report.tokens_used_by_bucket[bucket]:,} of {allotted:,}"
        words += f", dropped {', '.join(dropped)}" if dropped else ""
        yield ContextItem(kind="bucket", id=bucket, inside=not dropped, words=words, stage="budget")
    for block in compiled.compiled_prompt.context_blocks:
        words = f"{block.bucket}, {block.tokens or 0:,} tokens"
        yield ContextItem(kind="block", id=block.block_id, inside=True, words=words, stage="budget")
    for name, setting in compiled.context_ledger.environment.items():
        words = f"{setting.value}, from the {setting.source.replace('_', ' ')}"
        yield ContextItem(kind="setting", id=name, inside=True, words=words, stage="scope")
    yield ContextItem(kind="task", id="task", inside=True, words=compiled.compiled_prompt.task, stage="assemble")
