"""A draft is withdrawn by its author or by a publisher of its issuer, and starts anew when it is recorded again."""

from collections.abc import Callable

import pytest

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest
from contextplane.registry.artifact_state import ArtifactState
from contextplane.registry.events import Drafted, Withdrawn
from tests.support.cases import cases
from tests.unit.registry.releases import Releases, Walk
from tests.unit.registry.test_rogues import problems
from tests.unit.registry.test_vouching import DATA
from tests.unit.registry.world import ISSUER, Registry
from tests.unit.trust.world import day, key_of, revoke, rotate, trust

BYTES = b'{"pack":1}'
LATER = day(20)


def state_of(registry: Registry, data: bytes = BYTES) -> ArtifactState:
    with registry.reading() as reader:
        return reader.artifact(Digest.of(data))


def refusal(act: Callable[[], object]) -> str:
    with pytest.raises(ContextPlaneError) as refused:
        act()
    return refused.value.code


def signed() -> Registry:
    registry = Registry()
    registry.draft(BYTES)
    registry.lint(BYTES)
    registry.review_all(BYTES)
    registry.sign(BYTES)
    return registry


@cases("name", ["author", "pub", "root"])
def test_its_author_and_the_publishers_of_its_issuer_withdraw_a_draft(name: str) -> None:
    registry = signed()
    registry.on_artifact(name, BYTES, Withdrawn())
    assert state_of(registry).stage == "withdrawn"


@cases("name", ["sec", "ops", "eva"])
def test_nobody_else_does(name: str) -> None:
    registry = signed()
    assert refusal(lambda: registry.on_artifact(name, BYTES, Withdrawn())) == "registry_role_missing"
    assert state_of(registry).stage == "signed"


def test_a_publisher_of_another_issuer_does_not() -> None:
    registry = signed()
    registry.keyring_change(trust(key_of("stranger"), "tenant_globex", "publisher", since=day(1)))
    assert refusal(lambda: registry.on_artifact("stranger", BYTES, Withdrawn())) == "registry_role_missing"


def test_the_author_may_with_a_key_that_follows_the_first() -> None:
    registry = signed()
    registry.keyring_change(rotate(key_of("author"), key_of("second"), since=day(1), old_until=LATER))
    registry.on_artifact("second", BYTES, Withdrawn())
    assert state_of(registry).stage == "withdrawn"


def test_recorded_again_it_has_no_reviews_and_no_signature_and_the_same_author() -> None:
    registry = signed()
    author = state_of(registry).author
    registry.on_artifact("pub", BYTES, Withdrawn())
    registry.on_artifact("sec", BYTES, Drafted(kind="context_pack", id="refunds", version="1.0.0", issuer=ISSUER))
    state = state_of(registry)
    assert (state.stage, state.reviews, state.signers, state.envelope) == ("draft", (), (), "")
    assert state.author == author
    assert state_of(registry) == state


def test_a_rotation_does_not_bring_a_withdrawn_draft_back() -> None:
    registry = signed()
    registry.on_artifact("author", BYTES, Withdrawn())
    registry.keyring_change(rotate(key_of("author"), key_of("sec"), since=day(1), old_until=LATER))
    assert state_of(registry).stage == "withdrawn"


def test_the_withdrawal_by_a_revoked_key_has_no_effect() -> None:
    registry = signed()
    registry.on_artifact("pub", BYTES, Withdrawn())
    registry.keyring_change(revoke(key_of("pub"), day(2)))
    state = state_of(registry)
    assert (state.stage, state.ignoring_revocations.stage) == ("reviewed", "withdrawn")


def test_a_stream_stays_readable_in_which_a_withdrawal_lost_its_effect_after_others_built_on_it() -> None:
    registry = signed()
    registry.keyring_change(trust(key_of("stranger"), "tenant_globex", "publisher", since=day(1)))
    registry.on_artifact("pub", BYTES, Withdrawn())
    other = Drafted(kind="context_pack", id="refunds", version="1.0.0", issuer="tenant_globex")
    registry.on_artifact("stranger", BYTES, other)
    registry.on_artifact("stranger", BYTES, Withdrawn())
    registry.keyring_change(revoke(key_of("pub"), day(2)))
    state = state_of(registry)
    assert (state.stage, state.issuer) == ("reviewed", ISSUER)
    assert (state.ignoring_revocations.stage, state.ignoring_revocations.issuer) == ("withdrawn", "tenant_globex")


def test_a_withdrawal_after_the_publication_takes_nothing_out_of_service() -> None:
    registry = Releases().with_example()
    assert registry.ends() == "ok"
    registry.on_artifact("author", DATA, Withdrawn())
    assert registry.ends() == "ok"
    assert problems(registry) == []


class WithdrawnBefore(Releases):
    """The draft is withdrawn just before the publication, which is forged."""

    def _walk(self, walk: Walk, data: bytes, drafted: Drafted, sealed: bytes, signer: str) -> None:
        super()._walk(walk, data, drafted, sealed, signer)
        self.on_artifact("author", data, Withdrawn())


def test_a_version_that_was_published_although_its_draft_was_withdrawn_is_refused() -> None:
    registry = WithdrawnBefore()
    registry.pin_here(registry.release())
    assert registry.ends() == registry.ends(purpose="replay") == "publication_unreviewed"
    assert [code for code, _ in problems(registry)] == ["lifecycle_transition_refused"]
