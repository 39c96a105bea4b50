"""Judging publications again: every claim of a publisher, by the gates of this package. Pure.

    1  the id belongs to this issuer, to this kind of document and to this tenant
    2  the signed statement and the stored report are about these bytes, this name and these catalogs
    3  the version that it was compared with is the one before it, and its number covers the change since
    4  the document passes every gate, with the catalogs that were named, an overlay with the pack that it is for

The gates are those of now. A version that was published before a law was written may break it: it fails like a forged
one, and the message says which gates judged it then, if its report does.
"""

from functools import partial

import msgspec

from contextplane.authoring.artifacts import changes_between, judge
from contextplane.authoring.gates.table import Report
from contextplane.authoring.texts import Identify
from contextplane.authoring.version_class import BumpTooSmall, check_bump, required_bump
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import PackRef
from contextplane.registry.claims import (
    PublicationClaims,
    PublicationGatesFailed,
    PublicationReportWrong,
    PublicationVersionWrong,
    check_predecessor,
    collect_errors,
)
from contextplane.registry.merge import judge_with_catalogs
from contextplane.registry.name_state import NameTaken
from contextplane.registry.reports import catalog_rows
from contextplane.trust.dsse import IN_TOTO, Envelope, Statement

__all__ = ["judge_publication"]


def judge_publication(claims: PublicationClaims, *, identify: Identify | None = None) -> tuple[ContextPlaneError, ...]:
    """Return an error for every claim of a publication that does not hold; none if all do.

    `identify`: recognizes numbers that identify a person.
    """
    return collect_errors(
        partial(_check_owner, claims),
        partial(_check_statement, claims),
        partial(_check_report, claims),
        partial(check_predecessor, claims.ref, claims.published, claims.previous),
        partial(_check_number, claims),
        partial(_check_gates, claims, identify),
    )


def _check_owner(claims: PublicationClaims) -> None:
    """(1) Refuse a version under an id of another issuer, kind of document or tenant."""
    published, tenant = claims.published, claims.name.tenant_at(claims.entry)
    claims.name.check_owner(published.issuer, published.kind, at=str(claims.ref))
    if tenant not in {"", published.operated_by}:
        raise NameTaken(
            f"it is for {published.operated_by}, and {claims.ref.pack_id} belongs to {tenant}", at=str(claims.ref)
        )


def _check_statement(claims: PublicationClaims) -> None:
    """(2) Refuse an envelope about something else. Its signatures are checked elsewhere, by the keyring."""
    published = claims.published
    statement = Statement.parse(Envelope.parse(claims.envelope, payload_type=IN_TOTO).payload)
    signed = (statement.name, statement.kind, statement.issuer, str(statement.digest))
    if signed != (str(claims.ref), published.kind, published.issuer, published.digest):
        raise PublicationReportWrong(
            f"{statement.kind[:40]} {statement.name[:80]} of {statement.issuer[:80]}, {statement.digest}, was signed",
            at=str(claims.ref),
        )


class _GatesReport(msgspec.Struct, frozen=True):
    """The parts of a stored report that a publication depends on."""

    report: str
    ref: str
    digest: str
    passed: bool
    catalogs: list[dict[str, str]] = []
    gates_version: str = ""


def _read_report(claims: PublicationClaims) -> _GatesReport:
    try:
        return msgspec.json.decode(claims.report, type=_GatesReport)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise PublicationReportWrong("it names a report of its gates that is none", at=str(claims.ref)) from error


def _check_report(claims: PublicationClaims) -> None:
    """(2) Refuse a report about something else, or of gates that did not pass."""
    report, published = _read_report(claims), claims.published
    if (report.report, report.ref, report.digest) != ("gates", str(claims.ref), published.digest):
        raise PublicationReportWrong(
            f"its report is about {report.ref[:80]}, {report.digest[:80]}, not about {published.digest}",
            at=str(claims.ref),
        )
    if report.catalogs != catalog_rows(published.catalogs):
        raise PublicationReportWrong("its report was made with other catalogs", at=str(claims.ref))
    if not report.passed:
        raise PublicationReportWrong("by its own report it did not pass its gates", at=str(claims.ref))


def _check_number(claims: PublicationClaims) -> None:
    """(3) Refuse a number that is too small for the change."""
    if claims.before is None:
        return
    changes = changes_between(claims.artifact.kind, claims.before.value, claims.artifact.value)
    try:
        check_bump(PackRef(claims.ref.pack_id, claims.published.after), claims.ref, required_bump(changes))
    except BumpTooSmall as error:
        raise PublicationVersionWrong(error.message, at=str(claims.ref), hint="publish a new version") from error


def _check_gates(claims: PublicationClaims, identify: Identify | None) -> None:
    """(4) Refuse a document that does not pass its gates."""
    report = _run_gates(claims, identify)
    errors = [finding for finding in report.findings if finding.severity == "error"]
    if report.passed:
        return
    raise PublicationGatesFailed(
        f"it does not pass the gates{_gates_then(claims)}: {errors[0].cause} ({errors[0].gate}/{errors[0].code})",
        at=f"{claims.ref}#{errors[0].at}",
        hint="publish a new version that passes; 'ctx lint' lists every finding",
        details={"findings": [{"gate": error.gate, "code": error.code, "at": error.at} for error in errors]},
    )


def _run_gates(claims: PublicationClaims, identify: Identify | None) -> Report:
    artifact, base = claims.artifact, claims.base
    if not claims.catalogs:
        return judge(artifact.kind, artifact.value, base=base.value if base is not None else None, identify=identify)
    try:
        return judge_with_catalogs(artifact, claims.catalogs, None, identify)
    except ContextPlaneError as error:
        raise PublicationGatesFailed(
            f"it cannot be judged together with its catalogs: {error.message}", at=str(claims.ref)
        ) from error


def _gates_then(claims: PublicationClaims) -> str:
    """Which version of the gates judged it when it was published, if its report says that."""
    try:
        version = _read_report(claims).gates_version
    except PublicationReportWrong:
        return ""
    return f" (its report is by those of version {version[:40]})" if version else ""
