"""Steps 7 and 10 of the trust decision: an issuer speaks for a tenant, and a document is used by whom it is for."""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.context_pack import Tenant
from contextplane.ports.keys import Keyring
from contextplane.trust.verify import Verified

__all__ = ["IssuerNotForTenant", "TenantMismatch", "check_issuer", "check_tenant", "tenant_role"]


class IssuerNotForTenant(ContextPlaneError):
    """A document of a tenant whose issuer is another one, and nobody said that it may publish for that tenant."""

    code: ClassVar[str] = "issuer_not_for_tenant"
    family: ClassVar[Family] = "untrusted"


class TenantMismatch(ContextPlaneError):
    """A document of another tenant, which is not shared with the one that asks."""

    code: ClassVar[str] = "tenant_mismatch"
    family: ClassVar[Family] = "refused"


def tenant_role(tenant_id: str) -> str:
    """The role of a key that may sign for a tenant other than its issuer."""
    return f"tenant:{tenant_id}"


def check_issuer(verified: Verified, tenant_id: str, keyring: Keyring) -> None:
    """Refuse unless the issuer is the tenant itself, or enough of the keys that signed were granted to publish for it.

    Enough are as many as the issuer asks for: one key that was granted it does not speak for the others.
    """
    # (7) the issuer may publish for this tenant
    name = verified.statement.issuer
    if name == tenant_id:
        return
    issuer = keyring.issuer(name)
    keys = [] if issuer is None else [key for one in verified.signed_by if (key := issuer.key(one)) is not None]
    granted = [key for key in keys if tenant_role(tenant_id) in key.roles]
    if issuer is None or len(granted) < issuer.threshold:
        raise IssuerNotForTenant(
            f"{name} may not publish for {tenant_id}",
            at=verified.statement.name,
            hint=f"an owner grants it: ctx keys trust KEY --issuer {name} --role {tenant_role(tenant_id)}",
        )


def check_tenant(tenant: Tenant, asked_for: str, *, at: str) -> None:
    """Refuse what belongs to another tenant, unless it is shared with this one by name. `at`: what it is."""
    # (10) the tenant matches
    if asked_for != tenant.tenant_id and asked_for not in tenant.shared_with:
        raise TenantMismatch(
            f"it is of another tenant than {asked_for}", at=at, hint="its issuer may share it, in a new version"
        )
