"""Of two who publish the same version at once exactly one wins, on either catalog; nothing of the other is left."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from contextplane.app.registry.audit import audit_registry
from contextplane.app.settings import Settings
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import PackRef
from contextplane.registry.streams import ARTIFACTS, DRAFTS, LOG
from contextplane.trust.keyring_events import ThresholdChange
from tests.postgres import shared_url
from tests.unit.authoring.packs import EXAMPLE
from tests.unit.registry.desk import ISSUER, NARROWER, PACK, Clock, Office, desk_in, office, version
from tests.unit.trust.world import key_of

MANY = 4
LINT_TO_PUBLISHED = 9
"""So many events lead to a published version."""


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Settings, Office]]:
    url = shared_url() if request.param == "postgres" else None
    with office(tmp_path, url) as here:
        yield Settings(cwd=str(tmp_path), database_url=url), here


def ready(here: Office, number: int) -> str:
    """Another document under the same name and number, signed."""
    words = {"at": "/business_context/non_negotiables/-", "value": f"never promise refund number {number}"}
    value = EXAMPLE if number == 0 else version("1.0.0", NARROWER, words)
    target = str(here.record(value).digest)
    here.review_all(target)
    here.sign(target)
    return target


def at_once(settings: Settings, here: Office, acts: list[Callable[[Office], object]]) -> list[object]:
    """Every act at a desk of its own, begun together; what each came to, an error's code where it was refused."""
    together = Barrier(len(acts))
    clock = Clock()
    clock.moment = here.clock.now()

    def outcome(act: Callable[[Office], object]) -> object:
        with desk_in(settings, clock) as desk:
            together.wait()
            try:
                return act(desk)
            except ContextPlaneError as error:
                return error.code

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(outcome, acts))


def publishing(target: str) -> Callable[[Office], object]:
    return lambda desk: desk.publish(target).stage


def signing(target: str, name: str) -> Callable[[Office], object]:
    return lambda desk: desk.sign(target, name).stage


def test_one_of_several_documents_becomes_the_version(place: tuple[Settings, Office]) -> None:
    settings, here = place
    targets = [ready(here, number) for number in range(MANY)]
    ended = at_once(settings, here, [publishing(target) for target in targets])
    assert sorted(map(str, ended)) == ["published"] + ["version_taken"] * (MANY - 1)
    winner = targets[ended.index("published")]
    with here.desk.read() as reader:
        state = reader.version(PackRef.parse(PACK))
    assert (str(state.digest), state.seq) == (winner, 1)


def test_the_same_document_is_published_once_and_nobody_is_refused(place: tuple[Settings, Office]) -> None:
    settings, here = place
    target = ready(here, 0)
    assert at_once(settings, here, [publishing(target)] * MANY) == ["published"] * MANY
    with here.desk.read() as reader:
        assert reader.version(PackRef.parse(PACK)).seq == 1


def test_of_two_who_sign_at_once_no_signature_is_lost(place: tuple[Settings, Office]) -> None:
    settings, here = place
    here.change_keys(ThresholdChange(issuer=ISSUER, threshold=2))
    target = str(here.record().digest)
    here.review_all(target)
    people = ["pub", "ops"]
    ended = at_once(settings, here, [signing(target, name) for name in people])
    assert "stream_conflict" in ended or "signed" in ended
    for name, outcome in zip(people, ended, strict=True):
        if outcome == "stream_conflict":
            assert here.sign(target, name).stage == "signed"
    assert here.publish(target).stage == "published"


def pinning(environment: str) -> Callable[[Office], object]:
    return lambda desk: bool(desk.pin(environment, PACK).appended)


def revoking(name: str) -> Callable[[Office], object]:
    key_id = key_of(name).public_key.key_id
    return lambda desk: desk.desk.keys.revoke(key_id, "lost", key_of("root")).seq


def test_a_key_that_acts_while_it_is_revoked_did_so_under_the_checkpoint_or_not_at_all(
    place: tuple[Settings, Office],
) -> None:
    settings, here = place
    here.release()
    known = here.desk.keys.keyring.seq
    acts = [pinning(f"env-{number}") for number in range(MANY)]
    *ended, first, second = at_once(settings, here, [*acts, revoking("ops"), revoking("sec")])
    assert {first, second} == {known + 1, known + 2}
    assert set(ended) <= {True, "registry_signer_untrusted"}
    result = audit_registry(here.desk, lambda _size, _events: None)
    assert (result.problems, result.by_revoked) == ((), 0)
    assert here.streams()[LOG] == LINT_TO_PUBLISHED + 1 + known + 2 + ended.count(True)


def recording(number: int) -> Callable[[Office], object]:
    return lambda desk: desk.record(version(f"{number}.0.0")).stage


def test_sixteen_writers_at_once_all_get_their_turn_and_the_log_is_whole(place: tuple[Settings, Office]) -> None:
    settings, here = place
    assert at_once(settings, here, [recording(number) for number in range(1, 17)]) == ["linted"] * 16
    with here.desk.read() as reader:
        entries = list(reader.streams.read(LOG))
        names = [*reader.names(ARTIFACTS), *reader.names(DRAFTS)]
        positions = [event.event.entry for name in names for event in reader.history(name)]
        changes = reader.keyrings.now.seq
    assert sorted(positions) == list(range(changes, len(entries))) == list(range(changes, changes + 3 * 16))
