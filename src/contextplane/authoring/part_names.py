"""What a reviewer calls the part of a pack that a change is in."""

__all__ = ["part_name"]

_NAMES = {
    "policy_bundles": "policy bundle",
    "rules": "rule",
    "approval_gates": "approval gate",
    "must_refuse": "refusal",
    "must_escalate": "escalation",
    "adapter_registry": "adapter",
    "permissions": "permission",
    "decision_specs": "decision",
    "eval_targets": "evaluator target for",
    "release_gates": "release gate for",
    "task_templates": "task template",
    "intents": "intent",
}
"""What an entry is called, by the list that it stands in."""

_BRANCHES = ("then", "else")


def part_name(way: tuple[str, ...]) -> str:
    """The innermost part with an id that a way leads into; nothing where it leads into none, or just to it."""
    inside = [n for n, step in enumerate(way[:-2]) if step in _NAMES]
    if not inside:
        return ""
    n = inside[-1]
    branch = f", {way[n + 2]}" if way[n + 2] in _BRANCHES and len(way) > n + 3 else ""
    return f"{_NAMES[way[n]]} {way[n + 1]}{branch}"
