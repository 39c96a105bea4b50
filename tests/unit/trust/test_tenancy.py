"""Steps 7 and 10: who may publish for a tenant, and who may use what is a tenant's."""

import pytest

from contextplane.errors import ContextPlaneError
from contextplane.model.context_pack import Tenant
from contextplane.ports.keys import Signer
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.tenancy import TenantMismatch, check_issuer, check_tenant, tenant_role
from contextplane.trust.verify import sign, verify
from tests.support.cases import cases
from tests.unit.trust.world import PACK, day, key_of, keyring, statement, threshold, trust, trust_context

ALICE, BOB, CAROL = map(key_of, ("alice", "bob", "carol"))
GRANTED = tenant_role("tenant_a")
KEYS = keyring(
    trust(ALICE, "acme", GRANTED), trust(BOB, "acme", tenant_role("tenant_b"), "owner"), trust(CAROL, "acme", GRANTED)
)
TWO = keyring(threshold("acme", 2), keys=KEYS)


def code(tenant: str, *signers: Signer, keys: TrustedKeys = KEYS, issuer: str = "acme") -> str:
    """How the question ends whether what these signed may be of a tenant."""
    verified = verify(
        sign(statement(issuer=issuer), *signers), PACK, issuer=issuer, trust_context=trust_context(keys, day(10))
    )
    try:
        check_issuer(verified, tenant, keys)
    except ContextPlaneError as error:
        return error.code if error.family == "untrusted" else error.family
    return "ok"


def test_an_issuer_publishes_for_itself() -> None:
    assert code("acme", ALICE) == code("acme", BOB) == code("acme", ALICE, BOB, keys=TWO) == "ok"


@cases(
    ("tenant", "signers", "expected"),
    [
        ("tenant_a", [ALICE], "ok"),
        ("tenant_a", [BOB], "issuer_not_for_tenant"),
        ("tenant_a", [ALICE, BOB], "ok"),
        ("tenant_b", [BOB], "ok"),
        ("tenant_b", [ALICE], "issuer_not_for_tenant"),
        ("tenant_c", [ALICE, BOB, CAROL], "issuer_not_for_tenant"),
        ("tenant_", [ALICE], "issuer_not_for_tenant"),
        ("", [ALICE], "issuer_not_for_tenant"),
    ],
)
def test_it_publishes_for_another_tenant_only_by_a_key_that_was_granted_that(
    tenant: str, signers: list[Signer], expected: str
) -> None:
    assert code(tenant, *signers) == expected


def test_where_two_must_sign_one_key_that_was_granted_it_does_not_speak_for_both() -> None:
    assert code("tenant_a", ALICE, BOB, keys=TWO) == "issuer_not_for_tenant"
    assert code("tenant_a", ALICE, CAROL, keys=TWO) == "ok"


def test_a_grant_to_the_same_key_of_another_issuer_does_not_count() -> None:
    keys = keyring(trust(ALICE, "globex"), keys=KEYS)
    assert code("tenant_a", ALICE, keys=keys, issuer="globex") == "issuer_not_for_tenant"


def test_an_owner_is_not_granted_every_tenant() -> None:
    assert code("tenant_a", BOB) == "issuer_not_for_tenant"


@cases(
    ("asked", "passes"),
    [("tenant_a", True), ("tenant_b", True), ("tenant_c", False), ("tenant", False), ("TENANT_A", False), ("", False)],
)
def test_a_document_is_for_its_tenant_and_for_those_it_names(asked: str, *, passes: bool) -> None:
    tenant = Tenant(tenant_id="tenant_a", name="A", shared_with=("tenant_b",))
    if passes:
        check_tenant(tenant, asked, at="refunds@1.0.0")
        return
    with pytest.raises(TenantMismatch) as refused:
        check_tenant(tenant, asked, at="refunds@1.0.0")
    assert (refused.value.code, refused.value.at) == ("tenant_mismatch", "refunds@1.0.0")
    assert "tenant_a" not in str(refused.value)
