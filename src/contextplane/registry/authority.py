"""Who may do what, as a table. A right is held by the key that signs an event, under the keyring of its time.

An owner may do what a publisher and an operator may. A review takes the very role it is made in: nobody reviews as a
security reviewer because he owns the keyring.
"""

from typing import Literal

from contextplane.ports.keyring import OWNER
from contextplane.registry.changes import Change, Review
from contextplane.registry.events import Actor, kind_of
from contextplane.registry.refusals import ActorNotAllowed

__all__ = ["OPERATOR", "PUBLISHER", "RIGHTS", "Right", "authorise"]

PUBLISHER = "publisher"
OPERATOR = "operator"

Right = Literal["anybody", "reviewer", "issuer", "publisher", "operator"]
"""`anybody`: whoever is trusted. `reviewer`: who has the role of the review. `issuer`: any key of the issuer of the
artifact. `publisher`: of that issuer, in this role. `operator`: in this role, of whatever issuer."""

RIGHTS: dict[str, Right] = {
    "drafted": "anybody",
    "linted": "anybody",
    "reviewed": "reviewer",
    "signed": "issuer",
    "published": "publisher",
    "deprecated": "publisher",
    "revoked": "publisher",
    "refresh_required": "publisher",
    "refresh_reported": "publisher",
    "incident_opened": "operator",
    "incident_closed": "operator",
    "observed": "anybody",
    "pinned": "operator",
    "unpinned": "operator",
    "rolled_back": "operator",
    "rollback_ended": "operator",
    "promoted": "operator",
    "alias_set": "operator",
    "alias_dropped": "operator",
    "environment_opened": "operator",
    "environment_protected": "operator",
}


def authorise(change: Change, actor: Actor, issuer: str) -> None:
    """Refuse a change that its actor may not make. `issuer`: whose artifact it is about, where it is about one."""
    right = RIGHTS[kind_of(change)]
    if right == "anybody" or _has(right, change, actor, issuer):
        return
    needed = {
        "reviewer": f"the role {change.role if isinstance(change, Review) else ''}",
        "issuer": f"a key of {issuer}",
        "publisher": f"the role publisher of {issuer}",
        "operator": "the role operator",
    }[right]
    raise ActorNotAllowed(
        f"key {actor.key_id[:16]} may not do this ({kind_of(change)}): it takes {needed}",
        hint="'ctx keys list' shows who may; 'ctx keys trust --role' gives a role",
        details={"key_id": actor.key_id, "change": kind_of(change), "right": right, "issuer": issuer},
    )


def _has(right: Right, change: Change, actor: Actor, issuer: str) -> bool:
    if right == "reviewer":
        return isinstance(change, Review) and actor.holds(change.role)
    if right == "issuer":
        return actor.is_of(issuer)
    if right == "publisher":
        return actor.holds(PUBLISHER, issuer) or actor.holds(OWNER, issuer)
    return actor.holds(OPERATOR) or actor.holds(OWNER)
