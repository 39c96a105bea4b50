"""What was good when it was published is replayed, whatever became of its keys since: marked, and never run anew."""

from collections.abc import Callable

from contextplane.model.timestamp import Timestamp
from contextplane.trust.tenancy import tenant_role
from tests.support.cases import cases
from tests.unit.authoring.packs import with_changes
from tests.unit.registry.releases import PACK, TENANT, Envelope, Releases, Walk, envelope_of
from tests.unit.trust.world import day, key_of, revoke, threshold, trust

GLOBEX = with_changes([{"at": "/pack_meta/tenant/tenant_id", "value": "tenant_globex"}])
BEFORE = Timestamp.parse("2030-01-31T00:00:00Z")

REVOKED = "signed by a key that is revoked"
FEWER = "signed by fewer keys than are needed now"
CHANGED = "signed by a key whose time was changed since"
DOUBTFUL = "published by a key that is revoked"


def more(number: int) -> Callable[[Releases], None]:
    return lambda registry: registry.keyring_change(threshold(TENANT, number))


def revoked(name: str) -> Callable[[Releases], None]:
    return lambda registry: registry.keyring_change(revoke(key_of(name), day(2)))


def shorter(registry: Releases) -> None:
    registry.keyring_change(trust(key_of("signer"), TENANT, until=BEFORE))


def both(registry: Releases) -> None:
    more(2)(registry)
    revoked("signer")(registry)


SINCE: dict[str, tuple[tuple[str, ...], Callable[[Releases], None], str, tuple[str, ...]]] = {
    "more keys must sign": (("signer",), more(2), "signature_threshold_not_met", (FEWER,)),
    "its key is revoked": (("signer",), revoked("signer"), "signature_key_revoked", (REVOKED,)),
    "both": (("signer",), both, "signature_key_revoked", (REVOKED, FEWER)),
    "its key had to end sooner": (("signer",), shorter, "signature_key_expired", (CHANGED,)),
    "the key of whoever signed and published": (("pub",), revoked("pub"), "signature_key_revoked", (REVOKED, DOUBTFUL)),
    "one of two keys": (("signer", "short"), revoked("signer"), "ok", ()),
}


@cases("what", SINCE)
def test_what_happened_to_keys_since_stops_new_traffic_and_is_told_to_a_replay(what: str) -> None:
    signers, change, code, marks = SINCE[what]
    registry = Releases()
    registry.pin_here(registry.release(envelope=envelope_of(*signers)))
    live = registry.resolve()
    registry.seconds += 10
    change(registry)
    assert registry.ends() == code
    again = registry.resolve(purpose="replay")
    assert again.marks == tuple(f"{PACK}: {mark}" for mark in marks)
    assert (again.value, again.packs[0].digest) == (live.value, live.packs[0].digest)


NEVER: dict[str, tuple[Callable[[Releases], None], Envelope, str]] = {
    "nobody signed": (more(1), envelope_of(), "signature_missing"),
    "a stranger signed": (more(1), envelope_of("mallory"), "signature_key_unknown"),
    "too few signed": (more(2), envelope_of("signer"), "signature_threshold_not_met"),
    "a key that was revoked then": (revoked("signer"), envelope_of("signer"), "signature_key_revoked"),
    "a key whose time was over": (shorter, envelope_of("signer"), "signature_key_expired"),
}


@cases("what", NEVER)
def test_what_was_never_good_is_not_replayed_either(what: str) -> None:
    before, envelope, code = NEVER[what]
    registry = Releases()
    registry.keyring_change(trust(key_of("clerk"), TENANT))
    before(registry)
    walked = registry.release(envelope=envelope, walk=Walk(signer="clerk"))
    assert registry.ends(walked, purpose="replay") == code
    more(3)(registry)
    assert registry.ends(walked, purpose="replay") == code


def granted(registry: Releases, *roles: str) -> None:
    registry.keyring_change(trust(key_of("signer"), TENANT, *roles))


def test_an_issuer_that_may_not_publish_for_a_tenant_any_more_did_so_then() -> None:
    registry = Releases()
    granted(registry, tenant_role("tenant_globex"))
    registry.pin_here(registry.release(GLOBEX))
    assert registry.resolve(tenant="tenant_globex", purpose="replay").marks == ()
    granted(registry)
    assert registry.ends(tenant="tenant_globex") == "issuer_not_for_tenant"
    resolution = registry.resolve(tenant="tenant_globex", purpose="replay")
    assert resolution.marks == (f"{PACK}: of an issuer that may not publish for this tenant now",)
    assert registry.ends(purpose="replay") == "tenant_mismatch"


def test_an_issuer_that_never_might_publish_for_a_tenant_did_not_then() -> None:
    registry = Releases()
    registry.release(GLOBEX)
    assert registry.ends(tenant="tenant_globex", purpose="replay") == "issuer_not_for_tenant"


def test_a_key_that_ended_since_was_good_then_also_when_the_publisher_turns_out_not_to_be_trusted() -> None:
    registry = Releases()
    registry.pin_here(registry.release(envelope=envelope_of("short")))
    assert registry.ends(later=7200) == "ok"
    registry.seconds += 10
    revoked("pub")(registry)
    assert registry.ends(later=7200) == "signature_key_expired"
    assert registry.resolve(later=7200, purpose="replay").marks == (f"{PACK}: {DOUBTFUL}",)
