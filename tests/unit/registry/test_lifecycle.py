"""Whatever anybody tries, in whatever order: no state is reached that the table of the lifecycle does not allow."""

import typing
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import Digest, PackRef
from contextplane.registry.artifact_state import ALLOWED_STAGES, REVIEW_ROLES
from contextplane.registry.authority import RIGHTS
from contextplane.registry.events import (
    Change,
    Deprecated,
    Drafted,
    IncidentClosed,
    IncidentOpened,
    Linted,
    Observed,
    Published,
    RefreshReported,
    RefreshRequired,
    Review,
    Revoked,
    Signed,
    Withdrawn,
    kind_of,
)
from contextplane.registry.streams import artifact_stream, version_stream
from contextplane.registry.writer import PlannedChange
from tests.support.cases import cases
from tests.unit.registry.world import ISSUER, PEOPLE, Registry

DATA = b'{"pack":1}'
REF = PackRef("refunds", "1.0.0")
OBJECTS = {"report": b"report", "envelope": b"envelope"}
REPORT, ENVELOPE = (str(Digest.of(data)) for data in OBJECTS.values())

# The lifecycle as the contract has it: which stage can follow which.
NEXT = {
    "unknown": {"draft"},
    "draft": {"linted", "withdrawn"},
    "linted": {"linted", "reviewed", "withdrawn"},
    "reviewed": {"reviewed", "linted", "signed", "withdrawn"},
    "signed": {"signed", "linted", "reviewed", "withdrawn"},
    "withdrawn": {"draft"},
}
AFTER = {
    "nothing": {"published"},
    "published": {"published", "deprecated", "revoked"},
    "deprecated": {"deprecated", "revoked"},
    "revoked": {"revoked"},
}

artifact_changes = st.one_of(
    st.just(Drafted(kind="context_pack", id="refunds", version="1.0.0", issuer=ISSUER)),
    st.builds(Linted, report=st.just(REPORT), roles=st.sampled_from([(), ("support_ops",)]), after=st.just("")),
    st.builds(
        Review, role=st.sampled_from([*REVIEW_ROLES, "support_ops"]), verdict=st.sampled_from(["approve", "reject"])
    ),
    st.builds(Review, role=st.sampled_from(REVIEW_ROLES), verdict=st.just("approve")),
    st.builds(Signed, envelope=st.just(ENVELOPE), threshold=st.sampled_from([1, 2])),
    st.just(Withdrawn()),
)
version_changes: st.SearchStrategy[Change] = st.one_of(
    st.just(
        Published(
            digest=str(Digest.of(DATA)),
            kind="context_pack",
            issuer=ISSUER,
            envelope=ENVELOPE,
            report=REPORT,
            golden="not_run",
            after="",
        )
    ),
    st.just(Deprecated()),
    st.just(Revoked()),
    st.just(RefreshRequired(trigger="MODEL_CONFIG_UPDATED", dependency="*", actions=("representative_replay",))),
    st.builds(
        RefreshReported,
        opened=st.integers(0, 5),
        action=st.just("representative_replay"),
        passed=st.booleans(),
        report=st.just(REPORT),
    ),
    st.builds(IncidentOpened, incident=st.sampled_from(["a", "b"])),
    st.builds(IncidentClosed, incident=st.sampled_from(["a", "b"])),
    st.just(Observed(environment="prod", run="run_1")),
)
PEOPLE_BY_ROLE = {"architecture": "arch", "security": "sec", "data": "dat", "evaluation": "eva", "support_ops": "eva"}


def right_person(change: Change) -> str:
    if isinstance(change, Review):
        return PEOPLE_BY_ROLE[change.role]
    return {"anybody": "author", "issuer": "pub", "publisher": "pub", "operator": "ops"}[RIGHTS[kind_of(change)]]


def tries(changes: st.SearchStrategy[Any]) -> st.SearchStrategy[list[tuple[Change, str | None]]]:
    """Mostly by whoever may, sometimes by anybody."""
    who = st.one_of(st.none(), st.none(), st.none(), st.sampled_from([*PEOPLE, "mallory"]))
    return st.lists(st.tuples(changes, who), max_size=14)


def attempt(registry: Registry, stream: str, change: Change, by: str | None) -> bool:
    """Try a change; whether it was made. One that was refused left everything as it was."""
    before, ended = registry.streams(), "made"
    try:
        objects = (DATA, *OBJECTS.values())
        registry.act(
            by or right_person(change), PlannedChange(stream=stream, change=change, reason="so"), objects=objects
        )
    except ContextPlaneError as error:
        ended = error.code
    assert ended in {"made", "lifecycle_transition_refused", "registry_role_missing", "registry_signer_untrusted"}
    assert (registry.streams() == before) is (ended != "made")
    return ended == "made"


@settings(max_examples=40, deadline=None)
@given(tries(artifact_changes))
def test_an_artifact_takes_no_way_but_that_of_the_table(steps: list[tuple[Change, str | None]]) -> None:
    registry = Registry()
    stream, stage = artifact_stream(Digest.of(DATA)), "unknown"
    for change, by in steps:
        made = attempt(registry, stream, change, by)
        with registry.reading() as reader:
            state = reader.artifact(Digest.of(DATA))
            assert state == reader.state(stream)  # the same events give the same state
        if not made:
            assert state.stage == stage
            continue
        assert stage in ALLOWED_STAGES[kind_of(change)]
        assert state.stage in NEXT[stage]
        if isinstance(change, Drafted):
            assert (state.reviews, state.signers, state.envelope, state.report) == ((), (), "", "")
        stage = state.stage
        if stage in {"reviewed", "signed"}:
            approving = {(review.role, review.key_id) for review in state.reviews if review.verdict == "approve"}
            assert {role for role, _ in approving} >= set(REVIEW_ROLES)
            assert len({key for _, key in approving}) == len(approving)
            assert not state.rejected
        assert (stage == "signed") <= (len(state.signers) >= state.threshold)


@settings(max_examples=40, deadline=None)
@given(tries(version_changes))
def test_a_version_takes_no_way_but_that_of_the_table(steps: list[tuple[Change, str | None]]) -> None:
    registry = Registry()
    stream, stage = version_stream(REF), "nothing"
    for change, by in steps:
        made = attempt(registry, stream, change, by)
        with registry.reading() as reader:
            state = reader.version(REF)
            assert state == reader.state(stream)
        actual = state.stage if state.is_published else "nothing"
        assert actual in AFTER[stage] if made else actual == stage
        stage = actual
        if stage in {"deprecated", "revoked"}:
            assert not state.serves("new_traffic")
            assert state.serves("replay")


def test_the_tables_name_every_change_and_no_other() -> None:
    kinds = {str(change.__struct_config__.tag) for change in typing.get_args(Change)}
    assert set(RIGHTS) == kinds
    assert set(ALLOWED_STAGES) <= kinds


@cases("stage", ["draft", "linted", "reviewed", "unknown"])
def test_nothing_is_published_before_it_is_signed(stage: str) -> None:
    assert stage not in ALLOWED_STAGES["published"]
