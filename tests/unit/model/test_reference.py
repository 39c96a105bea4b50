"""What a person types to name a thing, as a table: one row per form, per order of forms, per refusal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contextplane.errors import ContextPlaneError
from contextplane.model.ids import (
    DecisionRecordId,
    Digest,
    EvidenceRef,
    ExecutionRef,
    HandoffId,
    InvalidId,
    PackRef,
    RecordingId,
    RunId,
    UnpinnedRef,
)
from contextplane.model.reference import (
    ExecutionPrefix,
    FilePath,
    HandoffRef,
    InvalidReference,
    Reference,
    ReferenceTarget,
    parse_reference,
)
from tests.support.cases import cases

HEX = "0123456789abcdef" * 4
PACK = ExecutionRef(Digest(HEX))
BLOB = Digest(HEX)
RUN = "run_0123456789abcdef"
HANDOFF = HandoffId("pk_abcd2345")


def prefix(digits: str) -> ExecutionPrefix:
    return ExecutionPrefix(digits=digits)


def path(text: str) -> FilePath:
    return FilePath(path=text)


READ: list[tuple[str, ReferenceTarget, str]] = [
    # A typed prefix comes first.
    (f"ctx://{HEX}", PACK, ""),
    (f"ctx://{HEX.upper()}", PACK, ""),
    (f"ctx://sha256:{HEX}", PACK, ""),
    ("ctx://0123", prefix("0123"), ""),
    ("ctx://ABCD", prefix("abcd"), ""),
    (f"ctx://{HEX[:63]}", prefix(HEX[:63]), ""),
    (f"sha256:{HEX}", BLOB, ""),
    (f"sha256:{HEX.upper()}", BLOB, ""),
    ("pk_abcd2345", HandoffRef(id=HANDOFF), ""),
    ("pk_abcd2345@3", HandoffRef(id=HANDOFF, revision=3), ""),
    ("pk_abcd2345@9999999999", HandoffRef(id=HANDOFF, revision=9_999_999_999), ""),
    (RUN, RunId(RUN), ""),
    ("rec_0123456789abcdef", RecordingId("rec_0123456789abcdef"), ""),
    ("rec_notes.txt", path("rec_notes.txt"), ""),
    ("dr_refund_881", DecisionRecordId("dr_refund_881"), ""),
    ("kg:order:ord_881#snapshot_1", EvidenceRef("kg:order:ord_881#snapshot_1"), ""),
    ("kg:docs/refund.md", EvidenceRef("kg:docs/refund.md"), ""),
    # Then id@X.Y.Z, also where the id looks like something else.
    ("refunds@1.2.3", PackRef("refunds", "1.2.3"), ""),
    ("ctxpack.support@2.1.0", PackRef("ctxpack.support", "2.1.0"), ""),
    ("decision-catalog.support@2.1.0", PackRef("decision-catalog.support", "2.1.0"), ""),
    ("abcd@1.2.3", PackRef("abcd", "1.2.3"), ""),
    ("team:refunds@1.2.3", PackRef("team:refunds", "1.2.3"), ""),
    ("kg:refunds@1.2.3", PackRef("kg:refunds", "1.2.3"), ""),
    ("kg:refunds@1.2.3#part", EvidenceRef("kg:refunds@1.2.3#part"), ""),
    ("kg:refunds@prod", EvidenceRef("kg:refunds@prod"), ""),
    ("pk_abcd2345@1.2.3", PackRef("pk_abcd2345", "1.2.3"), ""),
    ("sha256:refunds@1.2.3", PackRef("sha256:refunds", "1.2.3"), ""),
    # Then bare digits.
    (HEX, PACK, ""),
    (HEX.upper(), PACK, ""),
    ("0123", prefix("0123"), ""),
    ("cafe", prefix("cafe"), ""),
    ("CAFE", prefix("cafe"), ""),
    ("12345678", prefix("12345678"), ""),
    # Then a file, by a slash, by an extension, or by being where we are.
    ("./cafe", path("./cafe"), ""),
    ("logs/run", path("logs/run"), ""),
    ("/abs", path("/abs"), ""),
    (".", path("."), ""),
    ("..", path(".."), ""),
    ("run_tests.py", path("run_tests.py"), ""),
    ("pk_notes.md", path("pk_notes.md"), ""),
    ("dr_x.json", path("dr_x.json"), ""),
    ("run_it/now", path("run_it/now"), ""),
    ("ctxpack.support", path("ctxpack.support"), ""),
    ("cafe.json", path("cafe.json"), ""),
    ("1.2.3", path("1.2.3"), ""),
    ("refunds@latest.yaml", path("refunds@latest.yaml"), ""),
    ("log.jsonl", path("log.jsonl"), ""),
    (f"{HEX}.json", path(f"{HEX}.json"), ""),
    # A selector follows the complete reference.
    (f"ctx://{HEX}:outputs/report.md", PACK, "outputs/report.md"),
    (f"ctx://sha256:{HEX}:outputs/report.md", PACK, "outputs/report.md"),
    ("ctx://0123:steps/0", prefix("0123"), "steps/0"),
    ("0123:outputs/a:b.md", prefix("0123"), "outputs/a:b.md"),
    (f"{HEX}:outputs/report.md", PACK, "outputs/report.md"),
    (f"sha256:{HEX}:a", BLOB, "a"),
    ("pk_abcd2345:findings/2.md", HandoffRef(id=HANDOFF), "findings/2.md"),
    ("pk_abcd2345@3:findings/2.md", HandoffRef(id=HANDOFF, revision=3), "findings/2.md"),
    (f"{RUN}:record.json", RunId(RUN), "record.json"),
    ("dr_1:controls", DecisionRecordId("dr_1"), "controls"),
    ("refunds@1.2.3:policy/rules.json", PackRef("refunds", "1.2.3"), "policy/rules.json"),
]

REFUSED: list[tuple[str, type[ContextPlaneError]]] = [
    ("", InvalidReference),
    ("\0", InvalidReference),
    ("cafe\0", InvalidReference),
    ("logs/\0", InvalidReference),
    # Too short, too long, not digits.
    ("abc", InvalidReference),
    ("ctx://", InvalidReference),
    ("ctx://abc", InvalidReference),
    ("ctx://wxyz", InvalidReference),
    (f"{HEX}0", InvalidReference),
    (f"ctx://{HEX}0", InvalidReference),
    ("ctx://refunds@1.2.3", InvalidReference),
    ("CTX:cafe", InvalidReference),
    # A blob is never looked for by the beginning of its hash.
    ("sha256:", InvalidReference),
    ("sha256:0123", InvalidReference),
    (f"sha256:{HEX}0", InvalidId),
    # A typed prefix promises its form.
    ("pk_", InvalidId),
    ("pk_abcd", InvalidId),
    ("pk_ABCD2345", InvalidId),
    ("pk_abcd2341", InvalidId),
    ("pk_abcd2345@0", InvalidReference),
    ("pk_abcd2345@-1", InvalidReference),
    ("pk_abcd2345@", InvalidReference),
    ("pk_abcd2345@x", InvalidReference),
    ("pk_abcd2345@99999999999", InvalidReference),
    ("pk_abcd2345@\u0661", InvalidReference),
    ("run_", InvalidId),
    ("run_tests", InvalidId),
    ("dr_", InvalidId),
    ("dr_Refund", InvalidId),
    ("kg:", InvalidId),
    ("kg:order 1", InvalidId),
    # Nothing is pinned but a whole version.
    ("refunds@01.2.3", UnpinnedRef),
    ("refunds@1.2.1234567890", UnpinnedRef),
    ("refunds@1", UnpinnedRef),
    ("refunds@^1", UnpinnedRef),
    ("refunds@latest", InvalidReference),
    ("refunds", InvalidReference),
    ("--json", InvalidReference),
    ("-", InvalidReference),
    (" ", InvalidReference),
]


@cases(("text", "named", "selector"), READ, ids=[row[0][:40] for row in READ])
def test_a_reference_names(text: str, named: ReferenceTarget, selector: str) -> None:
    assert parse_reference(text) == Reference(target=named, selector=selector)
    assert type(parse_reference(text).target) is type(named)


@cases(("text", "error"), REFUSED, ids=[repr(row[0][:40]) for row in REFUSED])
def test_a_reference_is_refused(text: str, error: type[ContextPlaneError]) -> None:
    with pytest.raises(error) as refused:
        parse_reference(text)
    assert refused.value.hint


@cases("text", ["cafe", HEX, f"ctx://{HEX}", "pk_abcd2345", "refunds@1.2.3", "x", "--file", " "])
def test_whatever_it_looks_like_it_is_a_file_when_that_is_said(text: str) -> None:
    assert parse_reference(text, file=True) == Reference(target=path(text))


@pytest.mark.parametrize("text", ["", "\0", "a\0b"])
def test_no_name_at_all_is_not_a_file_either(text: str) -> None:
    with pytest.raises(InvalidReference):
        parse_reference(text, file=True)


@given(st.text(max_size=100) | st.text("0123456789abcdefABCDEF:@/._-kgpkrunctxsha", max_size=80))
def test_any_text_is_read_or_refused_with_a_way_out(text: str) -> None:
    result: Reference | ContextPlaneError
    try:
        result = parse_reference(text)
    except ContextPlaneError as error:
        result = error
    if isinstance(result, Reference):
        assert str(result.target)
        assert result.selector in text
    else:
        assert result.family in {"usage", "refused"}
        assert result.hint
        assert len(result.message) < 200


@cases("row", READ, ids=[row[0][:40] for row in READ])
def test_what_was_read_names_the_same_when_written_and_read_again(row: tuple[str, ReferenceTarget, str]) -> None:
    assert parse_reference(str(row[1])).target == row[1]


@cases("digits", ["", "abc", "ABCD", "wxyz", HEX, "abcd\n", "ab cd"])
def test_the_beginning_of_a_hash_is_four_to_63_lower_case_digits(digits: str) -> None:
    with pytest.raises(InvalidReference):
        ExecutionPrefix(digits=digits)


def test_a_reference_never_changes() -> None:
    reference = parse_reference("cafe:outputs/a")
    with pytest.raises(AttributeError):
        setattr(reference, "selector", "b")  # noqa: B010  mypy knows that it is frozen
