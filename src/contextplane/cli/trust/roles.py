"""Roles that somebody types. Those of ctx itself are known; whoever owns a decision may be called anything."""

from collections.abc import Iterable, Iterator

from contextplane.cli.parser import Usage
from contextplane.cli.screen import clean
from contextplane.ports.keyring import OWNER
from contextplane.registry.authority import OPERATOR, PUBLISHER
from contextplane.registry.lifecycle import FOUR
from contextplane.trust.tenancy import tenant_role

__all__ = ["ROLES", "owner_roles", "owner_roles_told", "refuse_empty_tenant"]

ROLES = (OWNER, PUBLISHER, OPERATOR, *FOUR)
"""What ctx itself asks for. A pack may ask for any other, as the owner_role of a decision."""

_TENANT = tenant_role("")
_CLOSE = 0.75


def refuse_empty_tenant(roles: Iterable[str]) -> None:
    """A right to speak for a tenant names the tenant."""
    if _TENANT in roles:
        raise Usage(f"argument --role: {_TENANT} names no tenant", hint=f"write {tenant_role('TENANT_ID')}")


def owner_roles(roles: Iterable[str]) -> list[str]:
    """Those that ctx itself does not ask for."""
    return [role for role in roles if role not in ROLES and not role.startswith(_TENANT)]


def owner_roles_told(roles: Iterable[str]) -> Iterator[str]:
    """Of each of them, what it is good for, and what was perhaps meant."""
    from difflib import get_close_matches

    for role in owner_roles(roles):
        near = get_close_matches(role.lower(), ROLES, n=1, cutoff=_CLOSE)
        meant = f" Did you mean {near[0]}?" if near else ""
        yield f"{clean(role)} counts only where it is the owner_role of a decision.{meant}"
