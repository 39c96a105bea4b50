"""What a key made possible that turns out not to have been trusted then does not hold; what follows stays readable."""

import pytest

from contextplane.app.registry.audit import verified
from contextplane.app.registry.pins import alias_dropped, alias_set
from contextplane.app.registry.refresh import incident_closed, incident_opened
from contextplane.app.registry.view import listed, shown
from contextplane.model.ids import PackRef
from contextplane.registry.events import Observed
from contextplane.registry.pin import IncidentOpen, check_promotion
from contextplane.registry.pin_state import PinState
from contextplane.registry.streams import version_stream
from contextplane.registry.version_state import VersionState
from contextplane.registry.writer import Planned
from tests.unit.registry.desk import NARROWER, Office, code, version
from tests.unit.trust.world import key_of, revoke

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
    return verified(here.desk, lambda _size, _events: None).sound


ONE, TWO = PackRef.parse(f"{ID}@1.0.0"), PackRef.parse(f"{ID}@1.1.0")


def test_an_alias_leads_nowhere_until_somebody_gives_it_anew(there: Office) -> None:
    alias_set(there.desk, TWO, "stable", there.by("other"))
    since = there.desk.keys.now
    alias_set(there.desk, ONE, "stable", there.by("ops"))
    alias_set(there.desk, ONE, "old", there.by("other"))
    assert there.desk.named_version(f"{ID}@stable") == ONE
    revoked(there, since)
    assert code(lambda: there.desk.named_version(f"{ID}@stable")) == "alias_not_found"
    assert [one.aliases for one in listed(there.desk)] == [("old",), ()]
    assert shown(there.desk, ONE).aliases == ("old",)
    alias_set(there.desk, ONE, "stable", there.by("other"))
    assert there.desk.named_version(f"{ID}@stable") == ONE
    assert sound(there)


def test_such_an_alias_can_be_dropped_and_could_be_when_nobody_knew(there: Office) -> None:
    since = there.desk.keys.now
    alias_set(there.desk, ONE, "first", there.by("ops"))
    alias_set(there.desk, ONE, "second", there.by("ops"))
    alias_dropped(there.desk, ID, "first", there.by("other"))
    revoked(there, since)
    alias_dropped(there.desk, ID, "second", there.by("other"))
    assert code(lambda: alias_dropped(there.desk, ID, "second", there.by("other"))) == "alias_not_found"
    with there.desk.reading() as reader:
        assert (reader.aliases(ID).aliases, reader.aliases(ID).doubtful) == ((), ())
    assert sound(there)


def state(here: Office) -> VersionState:
    with here.desk.reading() as reader:
        return reader.version(ONE)


def test_an_incident_that_such_a_key_closed_is_open(there: Office) -> None:
    incident_opened(there.desk, ONE, "INC-1", there.by("other"))
    incident_opened(there.desk, ONE, "INC-2", there.by("other"))
    since = there.desk.keys.now
    incident_closed(there.desk, ONE, "INC-1", there.by("ops"))
    incident_closed(there.desk, ONE, "INC-2", there.by("ops"))
    incident_opened(there.desk, ONE, "INC-2", there.by("other"))  # which is right, for it was closed by then
    assert state(there).open_incidents == ("INC-2",)
    revoked(there, since)
    assert state(there).open_incidents == ("INC-2", "INC-1")
    with pytest.raises(IncidentOpen):
        check_promotion(PinState(environment="prod", base_id=ID), state(there), None)
    incident_closed(there.desk, ONE, "INC-1", there.by("other"))
    incident_closed(there.desk, ONE, "INC-2", there.by("other"))
    assert state(there).open_incidents == ()
    assert code(lambda: incident_closed(there.desk, ONE, "INC-1", there.by("other"))) == "lifecycle_transition_refused"
    assert sound(there)


def test_what_such_a_key_saw_was_not_seen(there: Office) -> None:
    since = there.desk.keys.now
    seen = Observed(environment="prod", run="run_0123456789abcdef")
    there.desk.act(key_of("ops"), [Planned(stream=version_stream(ONE), change=seen, reason="a run used it")])
    assert state(there).observed == ("prod",)
    revoked(there, since)
    assert state(there).observed == ()
    there.observe(ONE, "prod")
    assert state(there).observed == ("prod",)
