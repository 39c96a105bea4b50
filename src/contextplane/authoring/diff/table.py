"""What a difference in each part of a pack does: the table. What is not in it changes behaviour, and is major."""

from contextplane.authoring.diff.comparers import (
    Comparer,
    always,
    branch_allows,
    flag,
    items,
    ladder,
    modes,
    most,
    names,
    number,
    release,
    whole,
)
from contextplane.authoring.diff.conditions import condition_of_rule, restriction_when, right_when
from contextplane.authoring.diff.parts import (
    adapter_added,
    adapter_removed,
    argument_choices,
    argument_greatest,
    argument_least,
    argument_lifted,
    argument_pattern,
    argument_required,
    bundle_added,
    capabilities,
    gate_named,
    part_added,
    part_removed,
    permission_added,
    permission_allow,
    permission_removed,
    rule_added,
    rule_removed,
    unless_denied,
)

__all__ = ["OPTIONAL", "TABLE", "WHOLE", "Way"]

Way = tuple[str, ...]
"""A way into the tree; `*` stands for any id or name."""

_RULE: Way = ("policy_layer", "policy_bundles", "*", "policy_dsl", "rules", "*")
_GUARDRAILS: Way = ("policy_layer", "guardrails")
_GATE: Way = ("policy_layer", "approval_gates", "*")
_ADAPTER: Way = ("tooling_layer", "adapter_registry", "*")
_PERMISSION: Way = ("tooling_layer", "permissions", "*")
_SPEC: Way = ("decision_layer", "decision_specs", "*")
_MEMORY: Way = ("memory_layer", "memory_policy")
_TARGET: Way = ("evaluation_layer", "eval_targets", "*")
_TONE: Way = ("tone_and_comms",)
_NAMES: tuple[Way, ...] = (
    *((*_SPEC, name) for name in ("required_evidence", "allowed_outcomes")),
    *(("intelligence_refs", "ontology", name) for name in ("entity_types", "relationship_types")),
    ("intelligence_refs", "identity_layer", "ceid_namespaces"),
    ("intelligence_refs", "embedding_keys"),
    (*_PERMISSION, "produces"),
)
_CLASSIFICATIONS = ("PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED")
_RIGHTS = ("execute", "escalate", "recommend", "propose")


def _arguments(way: Way) -> dict[Way, Comparer]:
    """The constraints on the arguments of a call."""
    one = (*way, "arg_constraints", "*")
    return {
        (*one, "min"): argument_least,
        (*one, "max"): argument_greatest,
        (*one, "enum"): argument_choices,
        (*one, "required"): argument_required,
        (*one, "pattern"): argument_pattern,
        (*one, "unless_approved"): argument_lifted,
    }


def _effect(way: Way) -> dict[Way, Comparer]:
    """What a branch of a rule does."""
    return {
        (*way, "allow"): branch_allows,
        (*way, "reason"): unless_denied(always("wording", "the reason")),
        (*way, "requires"): unless_denied(items("requirement", more="narrows", less="widens")),
        (*way, "prohibits"): items("prohibition of", more="narrows", less="widens"),
        (*way, "approval_mode"): unless_denied(modes("the approval mode")),
        (*way, "requires_approval_gate"): unless_denied(gate_named),
        **_arguments(way),
    }


TABLE: dict[Way, Comparer] = {
    ("contract_meta", "created_at"): always("metadata"),
    ("pack_meta", "pack_version"): always("metadata"),
    ("pack_meta", "ttl_seconds"): always("metadata"),
    ("pack_meta", "tenant", "name"): always("metadata", "the tenant's name"),
    ("pack_meta", "tenant", "shared_with"): items("tenant that shares it", more="widens", less="narrows"),
    ("pack_meta", "environment_defaults", "*"): always("locale"),
    ("pack_meta", "data_classification"): ladder("the classification", _CLASSIFICATIONS, up="narrows", down="widens"),
    ("business_context", "summary", "*"): always("wording"),
    ("business_context", "non_negotiables"): items("non-negotiable", more="wording", less="widens"),
    (*_RULE, "if"): condition_of_rule,
    (*_RULE, "rationale"): always("wording", "the rationale"),
    **_effect((*_RULE, "then")),
    **_effect((*_RULE, "else")),
    (*_GUARDRAILS, "redaction_rules"): items("redaction", more="narrows", less="widens"),
    (*_GUARDRAILS, "must_refuse", "*", "message"): always("wording", "the message"),
    (*_GUARDRAILS, "must_escalate", "*", "message"): always("wording", "the message"),
    (*_GUARDRAILS, "must_refuse", "*", "when"): restriction_when(absent=False),
    (*_GUARDRAILS, "must_escalate", "*", "when"): restriction_when(absent=False),
    (*_GATE, "when"): restriction_when(absent=True),
    (*_GATE, "ttl_seconds"): number("how long an approval holds", higher="widens", lower="narrows"),
    (*_ADAPTER, "endpoint_ref"): always("endpoint"),
    (*_ADAPTER, "approval_mode"): most("what it can do at most"),
    (*_ADAPTER, "capabilities"): capabilities,
    (*_PERMISSION, "allow"): permission_allow,
    (*_PERMISSION, "permission_id"): always("metadata"),
    (*_PERMISSION, "requires_approval_gate"): gate_named,
    **_arguments(_PERMISSION),
    (*_SPEC, "version"): release("its version"),
    (*_SPEC, "approval_mode"): most("what it may do at most"),
    (*_SPEC, "decision_right"): ladder("its right", _RIGHTS, up="narrows", down="widens"),
    (*_SPEC, "eligibility_rules"): right_when(absent=True),
    (*_SPEC, "challenge_required"): flag("challenge_required", true="narrows", false="widens", absent=False),
    ("intents", "*", "description"): always("metadata", "the intent's description"),
    ("intents", "*", "risk_class"): most("what serving the intent can do at most"),
    **dict.fromkeys(_NAMES, names),
    (*_MEMORY, "write_classes_allowed"): items("write class", more="widens", less="narrows"),
    (*_MEMORY, "consent_gating", "pii_write_back_allowed"): flag(
        "writing back personal data", true="widens", false="narrows", absent=False
    ),
    ("memory_layer", "promotion_thresholds", "auto_promote_confidence"): number(
        "the confidence for promotion", higher="narrows", lower="widens"
    ),
    (*_TARGET, "policy"): number("the policy target", higher="narrows", lower="widens"),
    (*_TARGET, "utility"): number("the utility target", higher="narrows", lower="widens"),
    (*_TARGET, "safety"): number("the safety target", higher="narrows", lower="widens"),
    (*_TARGET, "latency_p99_ms"): number("the latency target", higher="widens", lower="narrows"),
    (*_TARGET, "economics_cents_per_decision"): number("the cost target", higher="widens", lower="narrows"),
    ("evaluation_layer", "release_gates", "*", "max_delta"): number("max_delta", higher="widens", lower="narrows"),
    (*_TONE, "voice_attributes"): always("wording"),
    (*_TONE, "do"): items("instruction to", more="wording", less="widens"),
    (*_TONE, "dont"): items("instruction not to", more="wording", less="widens"),
    (*_TONE, "*", "do"): items("instruction to", more="wording", less="widens"),
    (*_TONE, "*", "dont"): items("instruction not to", more="wording", less="widens"),
}

WHOLE: dict[Way, Comparer] = {
    ("policy_layer", "policy_bundles", "*"): whole(bundle_added, part_removed("policy bundle", "widens")),
    _RULE: whole(rule_added, rule_removed),
    (*_GUARDRAILS, "must_refuse", "*"): whole(part_added("refusal", "narrows"), part_removed("refusal", "widens")),
    (*_GUARDRAILS, "must_escalate", "*"): whole(
        part_added("escalation", "narrows"), part_removed("escalation", "widens")
    ),
    _GATE: whole(part_added("approval gate", "narrows"), part_removed("approval gate", "widens")),
    _ADAPTER: whole(adapter_added, adapter_removed),
    _PERMISSION: whole(permission_added, permission_removed),
    _SPEC: whole(part_added("decision", "widens"), part_removed("decision", "changes")),
    _TARGET: whole(part_added("evaluator target for", "narrows"), part_removed("evaluator target for", "widens")),
    ("evaluation_layer", "release_gates", "*"): whole(
        part_added("release gate for", "narrows"), part_removed("release gate for", "widens")
    ),
}
"""Parts that come or go as a whole."""

OPTIONAL: frozenset[Way] = frozenset(
    {
        (*_RULE, "else"),
        (*_RULE, "then", "arg_constraints"),
        (*_RULE, "then", "arg_constraints", "*"),
        (*_RULE, "else", "arg_constraints"),
        (*_RULE, "else", "arg_constraints", "*"),
        (*_PERMISSION, "arg_constraints"),
        (*_PERMISSION, "arg_constraints", "*"),
        (*_MEMORY, "consent_gating"),
        (*_TONE, "customer_facing"),
        (*_TONE, "operator_facing"),
    }
)
"""Objects that say the same when they are absent as when they are empty."""
