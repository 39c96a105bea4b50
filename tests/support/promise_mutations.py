"""Mutations of what a pack promises besides its rules and tools: facts of requests, classes, memory, targets, words."""

from collections.abc import Callable, Iterator
from typing import Any

from tests.support.pack_mutations import CLASSES, DROPPED, Edit, guardrails

__all__ = ["PROMISES"]

Json = Any
ZONE = ("pack_meta", "environment_defaults", "timezone")


def drop_guardrail(pack: Json) -> Iterator[Edit]:
    for path, guardrail in guardrails(pack):
        yield Edit(path, DROPPED)
        if isinstance(guardrail, dict) and "when" in guardrail:
            yield Edit((*path, "when"), DROPPED)
            yield Edit((*path, "id"), f"{guardrail['id']}_x")


def exchange_ending(pack: Json) -> Iterator[tuple[Edit, ...]]:
    """Escalate what is to be refused, and the other way round."""
    for path, guardrail in guardrails(pack):
        other = "must_escalate" if path[2] == "must_refuse" else "must_refuse"
        count = len(pack["policy_layer"]["guardrails"].get(other, ()))
        yield Edit(path, DROPPED), Edit((*path[:2], other, count), guardrail)


def forgive_requests(pack: Json) -> Iterator[Edit]:
    """Declare fewer facts, or other types of them."""
    lists = pack["policy_layer"].get("request_facts", [])
    for n, declared in enumerate(lists):
        path = ("policy_layer", "request_facts", n)
        if len(lists) > 1:
            yield Edit(path, DROPPED)
        else:
            yield Edit(path[:-1], DROPPED)
        for f, fact in enumerate(declared["facts"]):
            at = (*path, "facts", f)
            if len(declared["facts"]) > 1:
                yield Edit(at, DROPPED)
            if fact.get("required", True):
                yield Edit((*at, "required"), value=False)
            for other in {"integer": ("number", "string"), "string": ("object",), "boolean": ("string",)}.get(
                fact["type"], ("string",)
            ):
                yield Edit((*at, "type"), other)


def share_pack(pack: Json) -> Iterator[Edit]:
    yield Edit(("pack_meta", "tenant", "shared_with"), ["tenant_other"])
    yield Edit(("pack_meta", "tenant", "tenant_id"), "tenant_other")
    classes = CLASSES[CLASSES.index(pack["pack_meta"]["data_classification"]) :]
    yield from (Edit(("pack_meta", "data_classification"), name) for name in classes[1:])
    lower = CLASSES[: CLASSES.index(pack["pack_meta"]["data_classification"])]
    yield from (Edit(("pack_meta", "data_classification"), name) for name in lower)


def move_clock(pack: Json) -> Iterator[Edit]:
    """Move every window of the clock by another timezone."""
    if "run." in str(pack["policy_layer"]["policy_bundles"]):
        for zone in ("UTC", "Pacific/Auckland", "Asia/Kolkata"):
            yield Edit(ZONE, zone)


def loosen_memory(pack: Json) -> Iterator[Edit]:
    if "memory_layer" not in pack:
        return
    policy = ("memory_layer", "memory_policy")
    allowed = pack["memory_layer"]["memory_policy"]["write_classes_allowed"]
    for name in ("evidence_link", "preference", "decision_outcome", "correction"):
        if name not in allowed:
            yield Edit((*policy, "write_classes_allowed"), [*allowed, name])
    yield Edit((*policy, "consent_gating", "pii_write_back_allowed"), value=True)
    for tier in ("working", "episodic", "semantic", "durable"):
        yield Edit((*policy, "tier_ttls", tier), "3650d")
    threshold = ("memory_layer", "promotion_thresholds", "auto_promote_confidence")
    value = pack["memory_layer"]["promotion_thresholds"]["auto_promote_confidence"]
    yield from (Edit(threshold, lower) for lower in (round(value - 0.01, 4), 0.5))


def loosen_targets(pack: Json) -> Iterator[Edit]:
    for n, target in enumerate(pack["evaluation_layer"]["eval_targets"]):
        path = ("evaluation_layer", "eval_targets", n)
        for name in ("policy", "utility", "safety"):
            yield Edit((*path, name), round(target[name] - 0.01, 4))
        for name in ("latency_p99_ms", "economics_cents_per_decision"):
            yield Edit((*path, name), target[name] * 2)
    for n in range(len(pack["evaluation_layer"]["release_gates"])):
        yield Edit(("evaluation_layer", "release_gates", n, "max_delta"), 0.01)
        yield Edit(("evaluation_layer", "release_gates", n), DROPPED)


def drop_words(pack: Json) -> Iterator[Edit]:
    """Drop what the model is told to do, and not to do."""
    texts = pack["business_context"].get("non_negotiables", [])
    for n in range(len(texts)):
        yield Edit(("business_context", "non_negotiables", n), DROPPED)
    tone = pack["tone_and_comms"]
    for path, part in (((), tone), *(((name,), tone.get(name, {})) for name in ("customer_facing", "operator_facing"))):
        for name in ("do", "dont"):
            for n in range(len(part.get(name, ()))):
                yield Edit(("tone_and_comms", *path, name, n), DROPPED)


def loosen_requirements(pack: Json) -> Iterator[Edit]:
    path = ("contract_meta", "compatibility", "requires", "runtime")
    yield Edit(path, ">=0.1.0")
    if "intelligence_refs" in pack:
        yield Edit(("intelligence_refs", "knowledge_graph", "snapshot_pin_rule"), "alias:staging")
        yield Edit(("intelligence_refs", "ontology", "version"), "9.9.9")
        types = pack["intelligence_refs"]["ontology"]["entity_types"]
        yield Edit(("intelligence_refs", "ontology", "entity_types"), types[:-1])


PROMISES: tuple[Callable[[Json], Iterator[Any]], ...] = (
    drop_guardrail,
    exchange_ending,
    forgive_requests,
    share_pack,
    move_clock,
    loosen_memory,
    loosen_targets,
    drop_words,
    loosen_requirements,
)
