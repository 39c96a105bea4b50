"""What may not be kept for ever: a registry never forgets, so it is not told a secret, nor anything about a person."""

from typing import ClassVar

from contextplane.authoring.gates.table import Report
from contextplane.errors import ContextPlaneError, Family

__all__ = ["NEVER_KEPT", "ArtifactNotKept", "refuse_to_keep"]

NEVER_KEPT = frozenset(
    {"secret_present", "random_text_present", "endpoint_credentials", "personal_number_present", "people_listed"}
)
"""The laws of which a document that breaks one is not even kept as a draft."""


class ArtifactNotKept(ContextPlaneError):
    """A document that holds a secret or data of people: what is recorded is kept for ever, and this must not be."""

    code: ClassVar[str] = "artifact_not_kept"
    family: ClassVar[Family] = "refused"


def refuse_to_keep(report: Report, *, at: str) -> None:
    """Refuse a document by what its gates found, before anything of it is stored."""
    for one in report.findings:
        if one.code in NEVER_KEPT:
            raise ArtifactNotKept(
                f"{one.at}: {one.cause}, and what is recorded is kept for ever",
                at=at,
                hint=one.cure,
                details={"findings": [{"at": f.at, "code": f.code} for f in report.findings if f.code in NEVER_KEPT]},
            )
