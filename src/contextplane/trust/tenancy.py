"""Steps 7 and 10 of the trust decision: issuers publish for tenants, and tenants use documents.

Step 7: the issuer may publish for the tenant of the document. Step 10: the requesting tenant may use it.
"""

from typing import ClassVar

from contextplane.errors import ContextPlaneError, Family
from contextplane.model.context_pack import Tenant
from contextplane.ports.keys import Keyring
from contextplane.trust.verify import VerifiedArtifact

__all__ = ["IssuerNotForTenant", "TenantMismatch", "check_issuer", "check_tenant", "tenant_role"]


class IssuerNotForTenant(ContextPlaneError):
    """A document whose issuer is not its tenant and was not granted to publish for that tenant."""

    code: ClassVar[str] = "issuer_not_for_tenant"
    family: ClassVar[Family] = "untrusted"


class TenantMismatch(ContextPlaneError):
    """A document of another tenant, which is not shared with the one that asks."""

    code: ClassVar[str] = "tenant_mismatch"
    family: ClassVar[Family] = "refused"


def tenant_role(tenant_id: str) -> str:
    """The role of a key that may sign for a tenant other than its issuer."""
    return f"tenant:{tenant_id}"


def check_issuer(verified: VerifiedArtifact, tenant_id: str, keyring: Keyring) -> None:
    """Refuse unless the issuer is the tenant, or enough of the signing keys may publish for the tenant.

    Enough means the threshold of the issuer: one granted key does not speak for the others.
    """
    # (7) the issuer may publish for this tenant
    name = verified.statement.issuer
    if name == tenant_id:
        return
    issuer = keyring.issuer(name)
    keys = [] if issuer is None else [key for key_id in verified.signed_by if (key := issuer.key(key_id)) is not None]
    granted = [key.key.key_id for key in keys if tenant_role(tenant_id) in key.roles]
    if issuer is None or len(keyring.people_of(granted)) < issuer.threshold:
        raise IssuerNotForTenant(
            f"{name} may not publish for {tenant_id}",
            at=verified.statement.name,
            hint=f"an owner grants it: ctx keys trust KEY --issuer {name} --role {tenant_role(tenant_id)}",
        )


def check_tenant(tenant: Tenant, requested_by: str, *, at: str) -> None:
    """Refuse a document of another tenant, unless it is shared with the requesting tenant by name.

    `at`: the name of the document, for the error.
    """
    # (10) the tenant matches
    if requested_by != tenant.tenant_id and requested_by not in tenant.shared_with:
        raise TenantMismatch(
            f"it is of another tenant than {requested_by}", at=at, hint="its issuer may share it, in a new version"
        )
