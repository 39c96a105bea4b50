"""What a key pinned that turns out not to have been trusted is pinned anew, and is given to runs again."""

import pytest

from contextplane.app.registry.pins import unpin
from contextplane.app.registry.resolve import resolve_request
from contextplane.app.registry.view import list_versions
from contextplane.model.ids import PackRef
from contextplane.registry.resolution import ResolveRequest
from tests.unit.registry.desk import ISSUER, OVERLAY, PACK, Office, code, version
from tests.unit.registry.releases import HERE
from tests.unit.trust.world import key_of, revoke

REF, ON_IT = PackRef.parse(PACK), PackRef.parse("ovl.staging@1.0.0")


def run(here: Office) -> object:
    request = ResolveRequest(refs=(REF,), tenant=ISSUER, environment="staging", purpose="new_traffic")
    return resolve_request(here.desk, request, HERE, max_age=None)


def doubted(here: Office) -> list[str]:
    return [str(summary.ref) for summary in list_versions(here.desk) if summary.doubtful_in]


@pytest.fixture
def revoked(here: Office) -> Office:
    """The pack was pinned by somebody whose key is revoked from before that time; the overlay is another's."""
    here.trust("other", "operator")
    here.release()
    here.release(OVERLAY)
    since = here.desk.keys.now
    here.pin("staging", REF)
    here.pin("staging", ON_IT, by="other")
    here.change_keys(revoke(key_of("ops"), since))
    return here


def test_the_version_that_is_pinned_already_is_pinned_anew(revoked: Office) -> None:
    assert code(lambda: run(revoked)) == "pin_doubtful"
    assert doubted(revoked) == [PACK]
    again = revoked.pin("staging", REF, by="other")
    assert (again.before, again.appended is None, again.overlays) == (REF, False, (ON_IT,))
    assert run(revoked)
    assert doubted(revoked) == []
    assert revoked.pin("staging", REF, by="other").appended is None  # once is enough


def test_what_is_pinned_by_somebody_who_is_trusted_is_not(revoked: Office) -> None:
    assert revoked.pin("staging", ON_IT, by="other").appended is None


def test_after_an_event_of_such_a_key_all_that_is_left_there_is_pinned_anew(here: Office) -> None:
    here.trust("other", "operator")
    here.release()
    here.release(OVERLAY)
    here.pin("staging", REF, by="other")
    here.pin("staging", ON_IT, by="other")
    since = here.desk.keys.now
    unpin(here.desk, "staging", REF.pack_id, ON_IT.pack_id, here.by("ops"))
    here.record(version("2.0.0"))
    here.change_keys(revoke(key_of("ops"), since))
    assert code(lambda: run(here)) == "pin_doubtful"
    assert doubted(here) == [PACK]
    here.pin("staging", REF, by="other")
    assert run(here)
    assert doubted(here) == []
