"""What a key made possible that turns out not to have been trusted then does not hold; what follows stays readable."""

import pytest

from contextplane.app.registry.audit import audit_registry
from contextplane.app.registry.pins import drop_alias, set_alias
from contextplane.app.registry.refresh import close_incident, open_incident
from contextplane.app.registry.view import list_versions, show_version
from contextplane.model.ids import PackRef
from contextplane.registry.events import Observed, Pin, Pinned, Pins, RegistryEvent
from contextplane.registry.pin import IncidentOpen, check_promotion
from contextplane.registry.pin_state import PinState, is_doubtful
from contextplane.registry.streams import version_stream
from contextplane.registry.verified_event import Actor, VerifiedEvent
from contextplane.registry.version_state import VersionState
from contextplane.registry.writer import PlannedChange
from tests.unit.registry.desk import NARROWER, Office, code, version
from tests.unit.trust.world import day, key_of, keyring, revoke, trust

ID = "ctxpack.support"


@pytest.fixture
def there(here: Office) -> Office:
    """Two versions, and two operators: `ops`, whose key is revoked later, and `other`."""
    here.trust("other", "operator")
    here.release()
    here.release(version("1.1.0", NARROWER))
    return here


def revoked(here: Office, since: object) -> None:
    here.record(version("7.0.0"))  # under a checkpoint of somebody else
    here.change_keys(revoke(key_of("ops"), since))  # type: ignore[arg-type]


def sound(here: Office) -> bool:
    return audit_registry(here.desk, lambda _size, _events: None).sound


def test_a_pin_is_doubtful_by_its_place_or_by_its_time() -> None:
    key_id = key_of("ops").public_key.key_id
    keys = keyring(trust(key_of("ops"), "acme", "operator"), revoke(key_of("ops"), day(5), 7))
    honest = Actor(key_id=key_of("other").public_key.key_id, grants=(), rotated_keys=())
    pinned = Pinned(kind="context_pack", id=ID, version="1.0.0", digest="sha256:" + "0" * 64, pins=Pins())
    event = RegistryEvent(
        subject="registry/pins/prod/x", seq=1, previous="", entry=9, keyring=2, at=str(day(9)), reason="", change=pinned
    )
    last = VerifiedEvent(event=event, at=day(9), by=honest, digest="")

    def doubtful(entry: int, number: int) -> bool:
        at = str(day(number))
        pin = Pin(id=ID, version="1.0.0", digest=pinned.digest, kind="context_pack", entry=entry, at=at, by=key_id)
        return is_doubtful(pin, last, keys.issuers)

    assert [doubtful(6, 4), doubtful(7, 4), doubtful(8, 2), doubtful(6, 5)] == [False, True, True, True]


ONE, TWO = PackRef.parse(f"{ID}@1.0.0"), PackRef.parse(f"{ID}@1.1.0")


def test_an_alias_leads_nowhere_until_somebody_gives_it_anew(there: Office) -> None:
    set_alias(there.desk, TWO, "stable", there.by("other"))
    since = there.desk.keys.now
    set_alias(there.desk, ONE, "stable", there.by("ops"))
    set_alias(there.desk, ONE, "old", there.by("other"))
    assert there.desk.named_version(f"{ID}@stable") == ONE
    revoked(there, since)
    assert code(lambda: there.desk.named_version(f"{ID}@stable")) == "alias_not_found"
    assert [summary.aliases for summary in list_versions(there.desk)] == [("old",), ()]
    assert show_version(there.desk, ONE).aliases == ("old",)
    set_alias(there.desk, ONE, "stable", there.by("other"))
    assert there.desk.named_version(f"{ID}@stable") == ONE
    assert sound(there)


def test_such_an_alias_can_be_dropped_and_could_be_when_nobody_knew(there: Office) -> None:
    since = there.desk.keys.now
    set_alias(there.desk, ONE, "first", there.by("ops"))
    set_alias(there.desk, ONE, "second", there.by("ops"))
    drop_alias(there.desk, ID, "first", there.by("other"))
    revoked(there, since)
    drop_alias(there.desk, ID, "second", there.by("other"))
    assert code(lambda: drop_alias(there.desk, ID, "second", there.by("other"))) == "alias_not_found"
    with there.desk.read() as reader:
        assert (reader.aliases(ID).aliases, reader.aliases(ID).doubtful) == ((), ())
    assert sound(there)


def state(here: Office) -> VersionState:
    with here.desk.read() as reader:
        return reader.version(ONE)


def test_an_incident_that_such_a_key_closed_is_open(there: Office) -> None:
    open_incident(there.desk, ONE, "INC-1", there.by("other"))
    open_incident(there.desk, ONE, "INC-2", there.by("other"))
    since = there.desk.keys.now
    close_incident(there.desk, ONE, "INC-1", there.by("ops"))
    close_incident(there.desk, ONE, "INC-2", there.by("ops"))
    open_incident(there.desk, ONE, "INC-2", there.by("other"))  # which is right, for it was closed by then
    assert state(there).open_incidents == ("INC-2",)
    revoked(there, since)
    assert state(there).open_incidents == ("INC-2", "INC-1")
    with pytest.raises(IncidentOpen):
        check_promotion(PinState(environment="prod", base_id=ID), state(there), None)
    close_incident(there.desk, ONE, "INC-1", there.by("other"))
    close_incident(there.desk, ONE, "INC-2", there.by("other"))
    assert state(there).open_incidents == ()
    assert code(lambda: close_incident(there.desk, ONE, "INC-1", there.by("other"))) == "lifecycle_transition_refused"
    assert sound(there)


def test_what_such_a_key_saw_was_not_seen(there: Office) -> None:
    since = there.desk.keys.now
    seen = Observed(environment="prod", run="run_0123456789abcdef")
    there.desk.act(key_of("ops"), [PlannedChange(stream=version_stream(ONE), change=seen, reason="a run used it")])
    assert state(there).observed == ("prod",)
    revoked(there, since)
    assert state(there).observed == ()
    there.observe(ONE, "prod")
    assert state(there).observed == ("prod",)
