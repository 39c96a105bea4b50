"""What holds where a request says nothing of it: a timezone and a currency that there are.

Whether a language has the form of BCP 47, the schema says. A region is an id: some are countries, others places of a
provider, such as ap-south-1.
"""

from collections.abc import Iterator

from contextplane.authoring.currencies import currencies
from contextplane.authoring.finding import Broken, Law
from contextplane.authoring.nearest import nearest
from contextplane.authoring.subject import Subject
from contextplane.authoring.timezones import RELEASE, timezones

__all__ = ["LAWS"]

_AT = "/pack_meta/environment_defaults"


def defaults_are_known(subject: Subject) -> Iterator[Broken]:
    """The timezone by default is one of IANA's, and the currency one of ISO 4217."""
    said = subject.pack.pack_meta.environment_defaults
    if said.timezone not in timezones():
        cause = f"{said.timezone!r} is no timezone of the IANA database {RELEASE}"
        yield Broken(at=f"{_AT}/timezone", cause=cause, cure=nearest(said.timezone, timezones(), "correct it"))
    if said.currency not in currencies():
        cause = f"{said.currency!r} is no currency of ISO 4217"
        yield Broken(at=f"{_AT}/currency", cause=cause, cure=nearest(said.currency, currencies(), "correct it"))


LAWS: tuple[Law[Subject], ...] = (
    # A list that is written down grows old: what it does not hold is told, and refused by nobody.
    Law(gate="integrity", code="environment_default_unknown", check=defaults_are_known, severity="warning"),
)
