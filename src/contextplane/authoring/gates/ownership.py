"""Whose a pack is, and whose its memory is: no tenant answers for another's, and nothing is believed unseen."""

from collections.abc import Iterator

from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.subject import Subject

__all__ = ["LAWS"]

_EVEN = 0.5
_OPEN = frozenset({"PUBLIC", "INTERNAL"})
_WRITE_BACK = "/memory_layer/memory_policy/consent_gating/pii_write_back_allowed"


def the_issuer_answers_for_the_tenant(subject: Subject) -> Iterator[Broken]:
    """The issuer is the tenant of the pack, or an authority that publishes for it, and no other tenant."""
    tenant, issuer = subject.pack.pack_meta.tenant, subject.pack.contract_meta.issuer
    if issuer == tenant.tenant_id:
        return
    other = issuer in tenant.shared_with or issuer in (subject.surroundings.tenants or ())
    yield Broken(
        at="/contract_meta/issuer",
        cause=f"{issuer!r} is another tenant than {tenant.tenant_id!r}, whose pack this is"
        if other
        else f"cannot tell whether {issuer!r} may publish for {tenant.tenant_id!r}: it is not that tenant",
        cure=f"write {tenant.tenant_id}, or have an authority issue it whose key the registry knows",
        unknown=not other,
    )


def memory_stays_with_one_tenant(subject: Subject) -> Iterator[Broken]:
    """What a pack that several tenants run writes to memory holds no personal data: it would be of one, before all."""
    shared = subject.pack.pack_meta.tenant.shared_with
    if shared and subject.pack.memory_layer.memory_policy.consent_gating.pii_write_back_allowed:
        yield Broken(
            at=_WRITE_BACK,
            cause=f"personal data may be written back, and the pack is shared with {', '.join(shared[:3])}",
            cure="set it to false, or publish a pack for each tenant",
        )


def personal_data_is_classified(subject: Subject) -> Iterator[Broken]:
    """A pack that may write personal data back is for confidential data at least."""
    classification = subject.pack.pack_meta.data_classification
    if classification in _OPEN and subject.pack.memory_layer.memory_policy.consent_gating.pii_write_back_allowed:
        yield Broken(
            at="/pack_meta/data_classification",
            cause=f"personal data may be written back to memory, and the data is {classification}",
            cure="raise it to CONFIDENTIAL, or write no personal data back",
        )


def memories_are_promoted_when_likely(subject: Subject) -> Iterator[Broken]:
    """No memory is promoted without a reviewer that is as likely wrong as right."""
    least = subject.pack.memory_layer.promotion_thresholds.auto_promote_confidence
    if least < _EVEN:
        yield Broken(
            at="/memory_layer/promotion_thresholds/auto_promote_confidence",
            cause=f"from a confidence of {least:g} on, memories are believed that nobody has looked at",
            cure="raise it, to 0.95 or so",
        )


LAWS: tuple[Law[Subject], ...] = (
    Law(gate="tenancy", code="issuer_foreign", check=the_issuer_answers_for_the_tenant),
    Law(gate="tenancy", code="memory_unscoped", check=memory_stays_with_one_tenant),
    Law(gate="tenancy", code="pii_unclassified", check=personal_data_is_classified, severity="warning"),
    Law(gate="tenancy", code="promotion_unguarded", check=memories_are_promoted_when_likely),
)
