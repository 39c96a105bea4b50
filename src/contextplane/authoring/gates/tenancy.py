"""The tenancy gate: a pack belongs to a tenant, and everything it reaches is in that tenant's scope.

Laws about the environment, about the issuer, about shared memory and personal data, and about automatic promotion.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise

from contextplane.authoring.evidence import snake_case
from contextplane.authoring.law import Law, Violation
from contextplane.authoring.subject import DecisionDocument, Subject, enumerate_places

__all__ = ["DECISION_LAWS", "LAWS"]

_RAW_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_REGISTERED = re.compile(r"(?:internal|registry)://[A-Za-z0-9][A-Za-z0-9_./-]*")
_VERSIONED = re.compile(r".*(?:[_.:-]v?|[a-z]V)[0-9]+(?:\.[0-9]+)*")
_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


def the_environment_is_described(subject: DecisionDocument) -> Iterator[Violation]:
    """The endpoints, ontologies, roles, snapshots, tenants and ceiling of the environment are known."""
    known = subject.described_environment
    missing = [name for name in subject.ENVIRONMENT_FIELDS if known is None or getattr(known, name) is None]
    if missing:
        yield Violation(
            at="",
            cause=f"no environment description of {', '.join(missing)}",
            cure="describe the environment in a file, and pass it with --environment",
            unknown=True,
        )


def tenants_are_known(subject: DecisionDocument) -> Iterator[Violation]:
    """The tenant of the document, and each tenant that it is shared with, is one of the environment's."""
    tenants, (at, tenant) = subject.environment.tenants, subject.tenant
    if tenants is None:
        return
    for place, name in (
        (f"{at}/tenant_id", tenant.tenant_id),
        *enumerate_places(f"{at}/shared_with", tenant.shared_with),
    ):
        if name not in tenants:
            yield Violation(at=place, cause=f"{name!r} is no tenant of this environment", cure="check the id")


def endpoints_are_registered(subject: Subject) -> Iterator[Violation]:
    """Every endpoint_ref is an entry of the environment's endpoint registry, and no address."""
    endpoints = subject.environment.endpoints
    for at, adapter in subject.adapters.values():
        places = [("endpoint_ref", adapter.endpoint_ref)]
        if adapter.capability_specs:
            places += [
                (f"capability_specs/{name}/reversal_endpoint", spec.reversal_endpoint)
                for name, spec in adapter.capability_specs.items()
                if spec.reversal_endpoint is not None
            ]
        for field, endpoint in places:
            if not _REGISTERED.fullmatch(endpoint):
                what = "an address" if _RAW_URL.match(endpoint) else "no reference"
                yield Violation(
                    at=f"{at}/{field}",
                    cause=f"this is {what} and not an entry of the endpoint registry",
                    cure="register the endpoint, and write internal://<name>",
                )
            elif endpoints is not None and endpoint not in endpoints:
                cause = f"{endpoint!r} is not registered here"
                yield Violation(at=f"{at}/{field}", cause=cause, cure="register it, or correct it")


def the_snapshot_is_in_scope(subject: Subject) -> Iterator[Violation]:
    """The graph snapshot that is read, or its alias, is one that the tenant may read in the environment."""
    rule, allowed = subject.pack.intelligence_refs.snapshot_pin_rule, subject.environment.snapshots
    if rule is not None and allowed is not None and rule not in allowed:
        yield Violation(
            at="/intelligence_refs/knowledge_graph/snapshot_pin_rule",
            cause=f"{rule} is not there for this tenant",
            cure="name an alias or a snapshot of this environment",
        )


def the_ontology_is_present(subject: Subject) -> Iterator[Violation]:
    """The pinned ontology version exists in the environment."""
    name, present = subject.pack.intelligence_refs.pinned_ontology, subject.environment.ontologies
    if name is not None and present is not None and name not in present:
        yield Violation(
            at="/intelligence_refs/ontology/version", cause=f"{name} is not present here", cure="publish it there first"
        )


def namespaces_cover_the_entities(subject: Subject) -> Iterator[Violation]:
    """Every entity type can have subjects: one of the CEID namespaces is named after it."""
    known = set(subject.pack.intelligence_refs.ceid_namespaces)
    for n, entity in enumerate(subject.pack.intelligence_refs.entity_types):
        namespace = snake_case(entity)
        if namespace not in known:
            yield Violation(
                at=f"/intelligence_refs/ontology/entity_types/{n}",
                cause=f"no CEID namespace {namespace!r}, so a decision about {entity} could not name its subject",
                cure=f"add {namespace!r} to ceid_namespaces",
            )


def a_graph_has_an_ontology_and_identities(subject: Subject) -> Iterator[Violation]:
    """A pack that reads a graph, or has embeddings, says what its entities are and how they are named."""
    refs = subject.pack.intelligence_refs
    reader = "knowledge_graph" if refs.knowledge_graph else "embedding_keys" if refs.embedding_keys else ""
    for name, part in (("ontology", refs.ontology), ("identity_layer", refs.identity_layer)) if reader else ():
        if not part:
            cause = f"the pack has {reader} and no {name}, so nothing of it is in scope"
            yield Violation(at=f"/intelligence_refs/{reader}", cause=cause, cure=f"add {name}, or remove {reader}")


def embedding_keys_have_a_version(subject: Subject) -> Iterator[Violation]:
    """Every embedding key names its version, because a change of retrieval can alter a decision."""
    for n, key in enumerate(subject.pack.intelligence_refs.embedding_keys):
        if not _VERSIONED.fullmatch(key):
            yield Violation(
                at=f"/intelligence_refs/embedding_keys/{n}", cause=f"{key!r} has no version", cure=f"write {key}_v1"
            )


def owners_exist(subject: DecisionDocument) -> Iterator[Violation]:
    """Every owner_role, and every required_approver_role, is assigned."""
    roles = subject.environment.roles
    for at, role in subject.roles if roles is not None else ():
        if roles is not None and role not in roles:
            yield Violation(at=at, cause=f"no user has the role {role!r}", cure="assign it, or name another role")


def _writes_personal_data_back(subject: Subject) -> bool:
    memory = subject.pack.memory_layer
    return bool(memory and memory.memory_policy.consent_gating.pii_write_back_allowed)


@lru_cache(256)
def _seconds(duration: str) -> int:
    return int(duration[:-1]) * _UNITS[duration[-1]]


def longer_tiers_live_longer(subject: Subject) -> Iterator[Violation]:
    """Working memory lives no longer than episodic, episodic than semantic, and semantic than durable."""
    if not subject.pack.memory_layer:
        return
    ttls = subject.pack.memory_layer.memory_policy.tier_ttls
    lives = (ttls.working, ttls.episodic, ttls.semantic, ttls.durable)
    seconds = [_seconds(live) for live in lives]
    if seconds == sorted(seconds):
        return
    for n, (shorter, longer) in enumerate(pairwise(("working", "episodic", "semantic", "durable"))):
        if seconds[n] > seconds[n + 1]:
            yield Violation(
                at=f"/memory_layer/memory_policy/tier_ttls/{shorter}",
                cause=f"{shorter} memory lives {lives[n]}, longer than {longer} memory, which lives {lives[n + 1]}",
                cure="shorten the one, or lengthen the other",
            )


def personal_data_stays_out_of_memory(subject: Subject) -> Iterator[Violation]:
    """Personal data is not written back to memory, unless that was decided."""
    if _writes_personal_data_back(subject):
        yield Violation(
            at="/memory_layer/memory_policy/consent_gating/pii_write_back_allowed",
            cause="personal data may be written back to memory",
            cure="set it to false, or have the reviewers agree to it",
        )


DECISION_LAWS: tuple[Law[DecisionDocument], ...] = (
    Law(gate="tenancy", code="environment_undescribed", check=the_environment_is_described),
    Law(gate="tenancy", code="tenant_unknown", check=tenants_are_known, about="described_environment"),
    Law(gate="tenancy", code="role_unheld", check=owners_exist, about="described_environment"),
)
"""The laws that hold for a decision catalog as well."""

_SCOPE_LAWS: tuple[Law[Subject], ...] = (
    *DECISION_LAWS,
    Law(gate="tenancy", code="endpoint_unregistered", check=endpoints_are_registered),
    Law(gate="tenancy", code="snapshot_out_of_scope", check=the_snapshot_is_in_scope, about="described_environment"),
    Law(gate="tenancy", code="ontology_absent", check=the_ontology_is_present, about="described_environment"),
    Law(gate="tenancy", code="entity_without_namespace", check=namespaces_cover_the_entities),
    Law(gate="tenancy", code="graph_without_entities", check=a_graph_has_an_ontology_and_identities),
    Law(gate="tenancy", code="embedding_key_unversioned", check=embedding_keys_have_a_version),
    Law(gate="tenancy", code="pii_write_back", check=personal_data_stays_out_of_memory, severity="warning"),
    Law(gate="tenancy", code="memory_tiers_disordered", check=longer_tiers_live_longer, severity="warning"),
)


# --- ownership of the pack and of its memory ---

_EVEN = 0.5
_OPEN = frozenset({"PUBLIC", "INTERNAL"})
_WRITE_BACK = "/memory_layer/memory_policy/consent_gating/pii_write_back_allowed"


def the_issuer_answers_for_the_tenant(subject: Subject) -> Iterator[Violation]:
    """The issuer is the tenant of the pack, or an authority that publishes for it, and no other tenant."""
    tenant, issuer = subject.pack.pack_meta.tenant, subject.pack.contract_meta.issuer
    if issuer == tenant.tenant_id:
        return
    other = issuer in tenant.shared_with or issuer in (subject.environment.tenants or ())
    yield Violation(
        at="/contract_meta/issuer",
        cause=f"{issuer!r} is another tenant than {tenant.tenant_id!r}, whose pack this is"
        if other
        else f"cannot tell whether {issuer!r} may publish for {tenant.tenant_id!r}: it is not that tenant",
        cure=f"write {tenant.tenant_id}, or have an authority issue it whose key the registry knows",
        unknown=not other,
    )


def memory_stays_with_one_tenant(subject: Subject) -> Iterator[Violation]:
    """A pack that several tenants run writes no personal data to memory: all of them could read it."""
    shared = subject.pack.pack_meta.tenant.shared_with
    if shared and _writes_personal_data_back(subject):
        yield Violation(
            at=_WRITE_BACK,
            cause=f"personal data may be written back, and the pack is shared with {', '.join(shared[:3])}",
            cure="set it to false, or publish a pack for each tenant",
        )


def personal_data_is_classified(subject: Subject) -> Iterator[Violation]:
    """A pack that may write personal data back is for confidential data at least."""
    classification = subject.pack.pack_meta.data_classification
    if classification in _OPEN and _writes_personal_data_back(subject):
        yield Violation(
            at="/pack_meta/data_classification",
            cause=f"personal data may be written back to memory, and the data is {classification}",
            cure="raise it to CONFIDENTIAL, or write no personal data back",
        )


def memories_are_promoted_when_likely(subject: Subject) -> Iterator[Violation]:
    """No memory is promoted without a reviewer that is as likely wrong as right."""
    memory = subject.pack.memory_layer
    least = memory.promotion_thresholds.auto_promote_confidence if memory else 1.0
    if least < _EVEN:
        yield Violation(
            at="/memory_layer/promotion_thresholds/auto_promote_confidence",
            cause=f"from a confidence of {least:g} on, memories are trusted without review",
            cure="raise it, to 0.95 or so",
        )


_OWNERSHIP_LAWS: tuple[Law[Subject], ...] = (
    Law(gate="tenancy", code="issuer_foreign", check=the_issuer_answers_for_the_tenant),
    Law(gate="tenancy", code="memory_unscoped", check=memory_stays_with_one_tenant),
    Law(gate="tenancy", code="pii_unclassified", check=personal_data_is_classified, severity="warning"),
    Law(gate="tenancy", code="promotion_unguarded", check=memories_are_promoted_when_likely),
)

LAWS: tuple[Law[Subject], ...] = (*_SCOPE_LAWS, *_OWNERSHIP_LAWS)
