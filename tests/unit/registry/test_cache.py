"""Resolutions that are kept: fresh as long as the pack says, of the state that is asked for, and never a refusal."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import PackRef
from contextplane.model.timestamp import NO_TIME, Timestamp
from contextplane.registry.authority import KeyringHistory
from contextplane.registry.events import Revoked
from contextplane.registry.log import REGISTRY_LOG, sign_log
from contextplane.registry.resolution import Resolution, ResolutionCache, ResolveRequest, StateNumber, state_number
from contextplane.trust.keyring import TrustedKeys
from contextplane.trust.keyring_stream import follow_keyring
from tests.spec.manifest import proves
from tests.support.cases import cases
from tests.unit.authoring.packs import EXAMPLE, with_changes
from tests.unit.registry.releases import PACK, TENANT, Releases
from tests.unit.registry.world import ORIGIN
from tests.unit.trust.world import CHECK, key_of, trust

ASKED = ResolveRequest(refs=(PACK,), tenant=TENANT, environment="prod", purpose="new_traffic")
TTL = 86400
FOUND = Releases().with_example().resolve()
STATE = StateNumber(entries=2, keyring=13)


SIGNED = FOUND.proof.checkpoint.time or NO_TIME


def at(seconds: int, nanos: int = 0) -> Timestamp:
    """So many seconds after the newest checkpoint."""
    return Timestamp(seconds=SIGNED.seconds + seconds, nanos=nanos)


class Counting:
    """A resolution that counts how often it was asked for."""

    def __init__(self, resolution: Resolution = FOUND, state: StateNumber = STATE) -> None:
        self.resolution, self.state, self.calls = resolution, state, 0

    def __call__(self) -> tuple[Resolution, StateNumber]:
        self.calls += 1
        return self.resolution, self.state


def refusing() -> tuple[Resolution, StateNumber]:
    raise ContextPlaneError("no")


@proves("context-pack:pack-meta:ttl-is-cache-freshness")
@cases(
    ("later", "times"),
    [(at(0), 1), (at(1), 1), (at(TTL - 1, 999_999_999), 1), (at(TTL), 2), (at(10 * TTL), 2), (at(-1), 2)],
)
def test_a_copy_is_fresh_for_its_ttl_and_then_the_same_version_is_fetched_again(later: Timestamp, times: int) -> None:
    cache, resolve = ResolutionCache(), Counting()
    first = cache.get_or_resolve(ASKED, at(0), resolve)
    again = cache.get_or_resolve(ASKED, later, resolve)
    assert resolve.calls == times
    assert again.packs == first.packs
    assert again.value == first.value


def test_the_ttl_is_the_one_of_the_pack() -> None:
    registry = Releases()
    registry.pin_here(registry.release(with_changes([{"at": "/pack_meta/ttl_seconds", "value": 5}])))
    cache, resolve = ResolutionCache(), Counting(registry.resolve())
    cache.get_or_resolve(ASKED, at(0), resolve)
    assert cache.get(ASKED, at(4)) is resolve.resolution
    assert cache.get(ASKED, at(5)) is None


def sign_again(registry: Releases, moment: Timestamp) -> None:
    with registry.catalog.write() as tx:
        keys = follow_keyring(tx.streams, TrustedKeys(origin=ORIGIN), CHECK)
        newest = REGISTRY_LOG.verify_checkpoint(tx.streams, KeyringHistory.of(tx.streams, keys), CHECK, ORIGIN)
        assert newest is not None
        sign_log(tx, [], heads=newest.heads, keys=keys, signer=key_of("root"), at=moment, origin=ORIGIN)


def test_no_copy_outlives_the_age_that_the_checkpoint_may_have() -> None:
    """The registry is signed again with the same entries: that is the same state, and another age."""
    registry = Releases().with_example()
    allowed, soon, late, cache = 600, at(100), at(601), ResolutionCache()

    def ends(now: Timestamp) -> tuple[str, StateNumber]:
        with registry.catalog.read() as view:
            state = state_number(view.streams)
        later = now.seconds - registry.now.seconds
        try:
            cache.get_or_resolve(ASKED, now, lambda: (registry.resolve(max_age=allowed, later=later), state), state)
        except ContextPlaneError as error:
            return error.code, state
        return "ok", state

    first, state = ends(soon)
    assert (first, ends(at(600, 999_999_999))) == ("ok", ("ok", state))
    assert ends(late) == ("registry_frozen", state)
    sign_again(registry, at(590))
    assert ends(late) == ("ok", state)


@pytest.mark.parametrize("change", [{"entries": 3}, {"keyring": 14}, {"entries": 1}])
def test_another_state_of_registry_or_keyring_is_noticed_by_whoever_asks_with_it(change: dict[str, int]) -> None:
    cache, resolve = ResolutionCache(), Counting()
    cache.get_or_resolve(ASKED, at(0), resolve, STATE)
    assert cache.get(ASKED, at(1), STATE) is FOUND
    assert cache.get(ASKED, at(1), msgspec.structs.replace(STATE, **change)) is None
    assert cache.get(ASKED, at(1)) is FOUND


def test_a_revocation_is_noticed_at_once_with_the_state_and_after_the_ttl_without_it() -> None:
    registry = Releases().with_example()
    cache = ResolutionCache()

    def state() -> StateNumber:
        with registry.catalog.read() as view:
            return state_number(view.streams)

    def resolve() -> tuple[Resolution, StateNumber]:
        return registry.resolve(), state()

    def ends(**request: Any) -> str:  # noqa: ANN401  as `get_or_resolve` takes them
        try:
            cache.get_or_resolve(ASKED, request.pop("now", at(1)), resolve, **request)
        except ContextPlaneError as error:
            return error.code
        return "ok"

    cache.get_or_resolve(ASKED, at(0), resolve)
    registry.on_version("pub", str(PACK), Revoked())
    assert ends() == "ok"
    assert ends(now=at(TTL)) == "version_revoked"
    assert ends() == "version_revoked"
    fresh = Releases().with_example()
    registry = fresh
    cache.get_or_resolve(ASKED, at(0), resolve)
    assert ends(state=state()) == "ok"
    fresh.on_version("pub", str(PACK), Revoked())
    assert ends() == "ok"
    assert ends(state=state()) == "version_revoked"


def test_an_event_of_the_registry_or_of_the_keyring_makes_another_state() -> None:
    registry = Releases().with_example()
    numbers = []
    for change in (lambda: None, lambda: registry.on_version("pub", str(PACK), Revoked())):
        change()
        with registry.catalog.read() as view:
            numbers.append(state_number(view.streams))
    registry.keyring_change(trust(key_of("somebody"), TENANT))
    with registry.catalog.read() as view:
        numbers.append(state_number(view.streams))
    assert numbers[1] == msgspec.structs.replace(numbers[0], entries=numbers[0].entries + 1)
    both = {"entries": numbers[1].entries + 1, "keyring": numbers[1].keyring + 1}
    assert numbers[2] == msgspec.structs.replace(numbers[1], **both)


def test_a_refusal_is_never_kept_and_drops_what_was_kept_before() -> None:
    cache, resolve = ResolutionCache(), Counting()
    for _ in range(2):
        with pytest.raises(ContextPlaneError):
            cache.get_or_resolve(ASKED, at(0), refusing)
    assert len(cache) == 0
    cache.get_or_resolve(ASKED, at(0), resolve)
    with pytest.raises(ContextPlaneError):
        cache.get_or_resolve(ASKED, at(1), refusing, StateNumber(entries=9, keyring=9))
    assert cache.get(ASKED, at(1)) is None


DIFFERENT: list[dict[str, Any]] = [
    {"refs": (PackRef.parse("ctxpack.support@1.0.1"),)},
    {"refs": (PACK, PackRef.parse("decision-catalog.support@2.1.0"))},
    {"tenant": "tenant_globex"},
    {"environment": "staging"},
    {"purpose": "replay"},
    {"overlays": (PackRef.parse("ov.staging@1.0.0"),)},
]


@cases("change", DIFFERENT, ids=lambda change: next(iter(change)))
def test_an_answer_is_kept_for_exactly_its_question(change: dict[str, Any]) -> None:
    cache = ResolutionCache()
    cache.get_or_resolve(ASKED, at(0), Counting())
    assert cache.get(msgspec.structs.replace(ASKED, **change), at(0)) is None


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 2 * TTL)), max_size=40), st.integers(1, 4))
@settings(max_examples=50)
def test_it_never_grows_beyond_its_bound_and_never_answers_with_what_is_not_fresh(
    questions: list[tuple[int, int]], most: int
) -> None:
    cache, resolved_at = ResolutionCache(most), dict[int, int]()
    for number, now in questions:
        request = msgspec.structs.replace(ASKED, environment=f"env{number}")
        before = resolved_at.get(number)

        def resolve(number: int = number, now: int = now) -> tuple[Resolution, StateNumber]:
            resolved_at[number] = now
            return FOUND, STATE

        cache.get_or_resolve(request, at(now), resolve)
        assert len(cache) <= most
        if before is not None and not before <= now < before + TTL:
            assert resolved_at[number] == now


def test_the_example_has_the_ttl_that_these_tests_speak_of() -> None:
    assert EXAMPLE["pack_meta"]["ttl_seconds"] == FOUND.ttl_seconds == TTL
