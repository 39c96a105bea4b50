"""The table of comparers: the effect of a difference in each part of a pack.

A part that is not in it changes behaviour, which is a major version.
"""

from contextplane.authoring.diff.comparers import (
    Comparer,
    added_or_removed,
    always,
    branch_allows,
    flag,
    items,
    ladder,
    max_mode,
    names,
    number,
    release,
    required_mode,
    timezone,
    tool_schema,
)
from contextplane.authoring.diff.conditions import gate_when, guardrail_when, permission_when, rule_condition
from contextplane.authoring.diff.parts import (
    adapter_added,
    adapter_removed,
    argument_added,
    argument_enum,
    argument_equals,
    argument_max,
    argument_min,
    argument_pattern,
    argument_removed,
    argument_required,
    argument_unless_approved,
    arguments_added,
    arguments_removed,
    bundle_added,
    call_limit,
    call_limit_added,
    call_limit_removed,
    capabilities,
    capability_description,
    capability_mode,
    fact_type,
    kept_on_deny,
    part_added,
    part_removed,
    permission_added,
    permission_allow,
    permission_intents,
    permission_removed,
    required_gate,
    rule_added,
    rule_removed,
    target_added,
    unless_argument,
    unless_denied,
)

__all__ = ["OPTIONAL", "TABLE", "WHOLE", "TreePath"]

TreePath = tuple[str, ...]
"""A path in the tree; `*` stands for any id or name."""

_RULE: TreePath = ("policy_layer", "policy_bundles", "*", "policy_dsl", "rules", "*")
_GUARDRAILS: TreePath = ("policy_layer", "guardrails")
_GATE: TreePath = ("policy_layer", "approval_gates", "*")
_FACTS: TreePath = ("policy_layer", "request_facts", "*")
_FACT: TreePath = (*_FACTS, "facts", "*")
_ADAPTER: TreePath = ("tooling_layer", "adapter_registry", "*")
_PERMISSION: TreePath = ("tooling_layer", "permissions", "*")
_SPEC: TreePath = ("decision_layer", "decision_specs", "*")
_MEMORY: TreePath = ("memory_layer", "memory_policy")
_TARGET: TreePath = ("evaluation_layer", "eval_targets", "*")
_TONE: TreePath = ("tone_and_comms",)
_NAMES: tuple[TreePath, ...] = (
    *((*_SPEC, name) for name in ("required_evidence", "allowed_outcomes")),
    *(("intelligence_refs", "ontology", name) for name in ("entity_types", "relationship_types")),
    ("intelligence_refs", "identity_layer", "ceid_namespaces"),
    ("intelligence_refs", "embedding_keys"),
    (*_PERMISSION, "produces"),
)
_CLASSIFICATIONS = ("PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED")
_RIGHTS = ("execute", "escalate", "recommend", "propose")


def _arguments(path: TreePath) -> dict[TreePath, Comparer]:
    """Return the comparers of the constraints on arguments; in a rule, also of one capability."""
    comparers = {
        "min": argument_min,
        "max": argument_max,
        "enum": argument_enum,
        "equals": argument_equals,
        "required": argument_required,
        "pattern": argument_pattern,
        "unless_approved": argument_unless_approved,
    }
    constraints = [(*path, "arg_constraints", "*"), (*path, "arg_constraints", "*", "*")]
    return {
        (*constraint, name): unless_argument(comparer)
        for constraint in constraints
        for name, comparer in comparers.items()
    }


def _effect(path: TreePath) -> dict[TreePath, Comparer]:
    """Return the comparers of a branch of a rule."""
    return {
        (*path, "allow"): branch_allows,
        (*path, "reason"): unless_denied(always("wording", "the reason")),
        (*path, "requires"): unless_denied(items("requirement", more="narrows", less="widens")),
        (*path, "prohibits"): items("prohibition of", more="narrows", less="widens"),
        (*path, "approval_mode"): unless_denied(required_mode("the approval mode")),
        (*path, "requires_approval_gate"): unless_denied(required_gate),
        **_arguments(path),
    }


TABLE: dict[TreePath, Comparer] = {
    ("contract_meta", "created_at"): always("metadata"),
    ("pack_meta", "pack_version"): always("metadata"),
    ("pack_meta", "ttl_seconds"): always("metadata"),
    ("pack_meta", "token_counter"): always("changes", "what counts its tokens"),
    ("pack_meta", "tenant", "name"): always("metadata", "the tenant's name"),
    ("pack_meta", "tenant", "shared_with"): items("tenant that shares it", more="widens", less="narrows"),
    ("pack_meta", "environment_defaults", "*"): always("locale"),
    ("pack_meta", "environment_defaults", "timezone"): timezone,
    ("pack_meta", "data_classification"): ladder("the classification", _CLASSIFICATIONS, up="widens", down="changes"),
    ("business_context", "summary", "*"): always("wording"),
    ("business_context", "non_negotiables"): items("non-negotiable", more="wording", less="widens"),
    (*_RULE, "if"): rule_condition,
    (*_RULE, "rationale"): always("wording", "the rationale"),
    **_effect((*_RULE, "then")),
    **_effect((*_RULE, "else")),
    (*_GUARDRAILS, "redaction_rules"): items("redaction", more="narrows", less="widens"),
    (*_GUARDRAILS, "must_refuse", "*", "message"): always("wording", "the message"),
    (*_GUARDRAILS, "must_escalate", "*", "message"): always("wording", "the message"),
    (*_GUARDRAILS, "must_refuse", "*", "when"): guardrail_when,
    (*_GUARDRAILS, "must_escalate", "*", "when"): guardrail_when,
    (*_GATE, "when"): gate_when,
    (*_GATE, "approvers"): number("how many must approve", higher="narrows", lower="widens", absent=1),
    (*_GATE, "approver_not_requester"): always("metadata"),
    (*_GATE, "ttl_seconds"): number("how long an approval holds", higher="widens", lower="narrows"),
    (*_FACT, "type"): fact_type,
    (*_FACT, "description"): always("metadata", "its description"),
    (*_FACT, "required"): flag("it is required", true="narrows", false="widens", absent=True),
    (*_ADAPTER, "endpoint_ref"): always("endpoint"),
    (*_ADAPTER, "approval_mode"): max_mode("what it can do at most"),
    (*_ADAPTER, "capabilities"): capabilities,
    (*_ADAPTER, "capability_specs", "*", "approval_mode"): capability_mode,
    (*_ADAPTER, "capability_specs", "*", "description"): capability_description,
    (*_ADAPTER, "capability_specs", "*", "input_schema"): tool_schema("its input schema"),
    (*_ADAPTER, "capability_specs", "*", "output_schema"): tool_schema("its output schema"),
    (*_ADAPTER, "capability_specs", "*", "arguments", "*", "description"): always("wording", "its description"),
    (*_PERMISSION, "allow"): permission_allow,
    (*_PERMISSION, "permission_id"): always("metadata"),
    (*_PERMISSION, "requires_approval_gate"): required_gate,
    (*_PERMISSION, "intents"): permission_intents,
    **_arguments(_PERMISSION),
    (*_PERMISSION, "limits", "*", "max_calls"): call_limit,
    (*_PERMISSION, "limits", "*", "max"): call_limit,
    (*_SPEC, "version"): release("its version"),
    (*_SPEC, "approval_mode"): max_mode("what it may do at most"),
    (*_SPEC, "decision_right"): ladder("its right", _RIGHTS, up="narrows", down="widens"),
    (*_SPEC, "on_deny"): kept_on_deny,
    (*_SPEC, "eligibility_rules"): permission_when(absent=True),
    (*_SPEC, "challenge_required"): flag("challenge_required", true="narrows", false="widens", absent=False),
    ("intents", "*", "description"): always("metadata", "the intent's description"),
    ("intents", "*", "risk_class"): max_mode("what serving the intent can do at most"),
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

WHOLE: dict[TreePath, Comparer] = {
    ("policy_layer", "policy_bundles", "*"): added_or_removed(bundle_added, part_removed("policy bundle", "widens")),
    _RULE: added_or_removed(rule_added, rule_removed),
    (*_GUARDRAILS, "must_refuse", "*"): added_or_removed(
        part_added("refusal", "narrows"), part_removed("refusal", "widens")
    ),
    (*_GUARDRAILS, "must_escalate", "*"): added_or_removed(
        part_added("escalation", "narrows"), part_removed("escalation", "widens")
    ),
    _GATE: added_or_removed(part_added("approval gate", "narrows"), part_removed("approval gate", "widens")),
    _FACTS: added_or_removed(
        part_added("declared facts of requests for", "narrows"),
        part_removed("declared facts of requests for", "widens"),
    ),
    _FACT: added_or_removed(part_added("declared fact", "narrows"), part_removed("declared fact", "widens")),
    _ADAPTER: added_or_removed(adapter_added, adapter_removed),
    (*_ADAPTER, "capability_specs", "*", "arguments"): added_or_removed(arguments_added, arguments_removed),
    (*_ADAPTER, "capability_specs", "*", "arguments", "*"): added_or_removed(argument_added, argument_removed),
    _PERMISSION: added_or_removed(permission_added, permission_removed),
    (*_PERMISSION, "limits", "*"): added_or_removed(call_limit_added, call_limit_removed),
    _SPEC: added_or_removed(part_added("decision", "widens"), part_removed("decision", "changes")),
    _TARGET: added_or_removed(target_added, part_removed("evaluator target for", "widens")),
    ("evaluation_layer", "release_gates", "*"): added_or_removed(
        part_added("release gate for", "narrows"), part_removed("release gate for", "widens")
    ),
}
"""The comparers of parts that are added or removed as a whole."""

OPTIONAL: frozenset[TreePath] = frozenset(
    {
        (*_RULE, "else"),
        (*_RULE, "then", "arg_constraints"),
        (*_RULE, "then", "arg_constraints", "*"),
        (*_RULE, "then", "arg_constraints", "*", "*"),
        (*_RULE, "else", "arg_constraints"),
        (*_RULE, "else", "arg_constraints", "*"),
        (*_RULE, "else", "arg_constraints", "*", "*"),
        (*_ADAPTER, "capability_specs"),
        (*_ADAPTER, "capability_specs", "*"),
        (*_PERMISSION, "arg_constraints"),
        (*_PERMISSION, "arg_constraints", "*"),
        (*_PERMISSION, "limits"),
        (*_MEMORY, "consent_gating"),
        ("policy_layer", "request_facts"),
        (*_TONE, "customer_facing"),
        (*_TONE, "operator_facing"),
    }
)
"""Objects that mean the same absent and empty."""
