"""The reasons of a compiled context: why an item is left out, masked, or answers nothing.

`ctx explain` prints them. The omission manifest and the evidence gate hold their names only.
"""

from contextplane.model.value import Value

__all__ = ["REASONS", "ReasonText"]


class ReasonText(Value, frozen=True):
    """What a reason means, of which kinds of items, and what to do if the item should be there."""

    kinds: tuple[str, ...]
    means: str
    to_do: str


def _reason(kinds: str, means: str, to_do: str) -> ReasonText:
    return ReasonText(kinds=tuple(kinds.split(", ")), means=means, to_do=to_do)


REASONS: dict[str, ReasonText] = {
    # Rules.
    "out_of_scope": _reason(
        "rule", "The rule does not apply to this intent, environment or role.", "look at its applies_to"
    ),
    "scope_unknown": _reason(
        "rule",
        "The rule applies by a fact that the request does not have. Its restrictions hold.",
        "send the fact that applies_to names",
    ),
    "no_else": _reason(
        "rule", "The condition of the rule is false, and it has no else.", "nothing, or give it an else"
    ),
    "unknown": _reason(
        "rule",
        "The condition of the rule reads a fact that is missing. The restrictions of both branches hold.",
        "send the fact; 'ctx why' names it",
    ),
    "failed": _reason(
        "rule",
        "The condition of the rule failed, most often because a fact has another type. The request is denied.",
        "send the fact in the type that the condition compares it with",
    ),
    "too_much_work": _reason(
        "rule",
        "The condition of the rule took more work than one of its size is granted. The request is denied.",
        "send shorter lists, or make the condition simpler",
    ),
    "not_boolean": _reason(
        "rule",
        "The condition of the rule is neither true nor false. The request is denied.",
        "compare values in the condition; 'ctx lint' finds where",
    ),
    # Tools.
    "not_in_registry": _reason(
        "tool", "A permission names a capability that no adapter declares.", "declare it in adapter_registry"
    ),
    "not_permitted": _reason(
        "tool", "An adapter declares the capability, and no permission allows it.", "give it a permission"
    ),
    "not_for_intent": _reason(
        "tool", "The permission is limited to other intents.", "add the intent to the intents of the permission"
    ),
    "permission_denies": _reason("tool", "The permission says allow: false.", "allow it, if runs should use it"),
    "prohibited": _reason(
        "tool",
        "A rule in effect prohibits the capability, or one that cannot be decided could.",
        "'ctx why' names the rule and the facts that it reads",
    ),
    "above_ceiling": _reason(
        "tool",
        "The capability can do more than the safety mode of the run, or its grant, allows.",
        "ask with a higher safety_mode, if the run may have one",
    ),
    "beyond_decisions": _reason(
        "tool",
        "The capability can do more than any decision of the intent may use.",
        "raise the approval_mode of a decision, or limit the permission to other intents",
    ),
    "intent_denied": _reason(
        "tool",
        "The request is denied, and a denied request keeps no tools, or none that a rule could restrict.",
        "'ctx why' names what denies it; on_deny: read in all decisions of the intent keeps reading",
    ),
    # Evidence and memories.
    "not_a_reference": _reason(
        "evidence", "The text is no reference to evidence.", "write kg:, tool:, policy: or session: and an id"
    ),
    "content_altered": _reason(
        "evidence", "The content does not have the hash that the evidence gives.", "gather the evidence again"
    ),
    "empty": _reason(
        "evidence", "The evidence has no content: an empty result is no evidence.", "leave it out, or gather it again"
    ),
    "no_knowledge_graph": _reason(
        "evidence", "It refers to a graph, and the pack has none.", "declare knowledge_graph in intelligence_refs"
    ),
    "namespace_not_in_scope": _reason(
        "evidence, memory",
        "It is about a namespace that the pack does not list.",
        "add the namespace to ceid_namespaces, if the pack may see it",
    ),
    "snapshot_unresolved": _reason(
        "evidence", "The snapshot of the graph is not known for this run.", "give the snapshot in the environment"
    ),
    "other_snapshot": _reason(
        "evidence", "It is of another snapshot of the graph than this run.", "gather it from the snapshot of the run"
    ),
    "classification_above_pack": _reason(
        "evidence, memory",
        "Its classification is above that of the pack.",
        "use a pack for data of that class, or leave it out",
    ),
    "stale": _reason("evidence", "It expired before as_of.", "gather it again"),
    "observed_later": _reason("evidence", "It was observed after as_of.", "correct as_of, or observed_at"),
    "superseded": _reason(
        "evidence",
        "It contradicts another piece, and the resolution chose that one.",
        "nothing: the conflict is resolved",
    ),
    "conflict_unresolved": _reason(
        "evidence",
        "It contradicts another piece of required evidence, and nothing resolves that.",
        "give selected and resolution_ref in the conflict",
    ),
    "same_reference_twice": _reason(
        "evidence, memory", "Different items have the same reference.", "give each its own reference"
    ),
    "duplicate": _reason("evidence, memory", "It is given twice; one of them is shown.", "give it once"),
    "not_a_digest": _reason("evidence", "The sha256 of the attachment is no digest.", "write 64 hexadecimal digits"),
    "no_memory_layer": _reason("memory", "The pack has no memory_layer.", "add one, if runs should remember"),
    "not_promoted": _reason("memory", "The memory is not promoted.", "review and promote it"),
    "not_for_this_intent": _reason("memory", "The memory is for other intents.", "nothing, or add the intent to it"),
    "not_for_this_role": _reason("memory", "The memory is for other roles.", "nothing, or add the role to it"),
    "expired": _reason("memory", "The memory expired before as_of.", "review it again"),
    # Sizes.
    "over_budget": _reason(
        "tool, evidence, memory, block, required evidence",
        "Its block does not fit into its bucket of the budget.",
        "raise the bucket in run_budget, or give less",
    ),
    "over_total_budget": _reason(
        "tool, evidence, memory, block, required evidence",
        "Its block fits into its bucket, and not into the whole budget.",
        "raise total_tokens in run_budget, or give less",
    ),
    # Masks.
    "by_shape": _reason("redaction", "A text that looks like this kind of data is masked.", "nothing: the mask works"),
    "by_field": _reason("redaction", "A value whose name says what it is is masked.", "rename the field if it is not"),
    "by_schema": _reason("redaction", "x-redact marks the property.", "remove the mark, if a model may read it"),
    # Required evidence.
    "trust_untrusted": _reason(
        "required evidence", "The evidence is shown, and its source is not trusted.", "verify it"
    ),
    "trust_unknown": _reason(
        "required evidence", "The evidence is shown, and the trust of its source is unknown.", "verify it"
    ),
    "freshness_unknown": _reason(
        "required evidence",
        "The evidence is shown, and its age is unknown.",
        "give freshness in it, and as_of with the request",
    ),
    "other_source": _reason(
        "required evidence",
        "The reference names a tool that does not produce this evidence.",
        "call a tool that does, or name the evidence in produces of the permission",
    ),
    "refused": _reason(
        "required evidence",
        "There is evidence of that name, and none was admitted.",
        "look at the reason of each piece",
    ),
    "policy_failed": _reason(
        "required evidence",
        "A rule could not be evaluated, so policy does not answer policy_eval.",
        "correct what the rule reads",
    ),
    "not_true": _reason(
        "required evidence", "The request has the name, and its value is not true.", "send true, if it is so"
    ),
    "request_cannot_attest": _reason(
        "required evidence",
        "The request has the name, and something in the pack produces it: only that counts.",
        "call the tool that produces it",
    ),
    "no_evidence": _reason(
        "required evidence", "There is no evidence of that name.", "gather it with a tool that produces it"
    ),
}
