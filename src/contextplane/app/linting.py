"""Judging a pack that an author has in a file: what is read, what is compared, and who knows official numbers."""

import os
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeVar

import msgspec

from contextplane.app.documents import document
from contextplane.authoring.author_file import LARGEST, AuthorFile, AuthorFileTooLarge, read_json_file
from contextplane.authoring.finding import Finding, Law
from contextplane.authoring.gates.schema import typed_or_problems
from contextplane.authoring.gates.table import EVERY_LAW, Report, judged
from contextplane.authoring.surroundings import Surroundings
from contextplane.errors import ContextPlaneError, Family
from contextplane.model.context_pack.pack import ContextPack
from contextplane.model.overlay import Overlay
from contextplane.model.value import Value

if TYPE_CHECKING:
    from contextplane.authoring.overlays import Applied
    from contextplane.authoring.versions import Bump, BumpTooSmall
    from contextplane.model.canonical import Json

__all__ = [
    "DescriptionInvalid",
    "LawUnknown",
    "Linted",
    "VersionStep",
    "author_file",
    "law_behind",
    "linted",
    "overlay_from",
    "surroundings_from",
    "version_step",
]

_YAML = (".yaml", ".yml")
D = TypeVar("D", bound=msgspec.Struct)


class DescriptionInvalid(ContextPlaneError):
    """A file beside the pack, an overlay or a description of an environment, that has not its form."""

    code: ClassVar[str] = "description_invalid"
    family: ClassVar[Family] = "refused"


class LawUnknown(ContextPlaneError):
    """A code that no law of any gate has."""

    code: ClassVar[str] = "law_unknown"
    family: ClassVar[Family] = "not_found"


class Linted(Value, frozen=True):
    """What the gates say of a pack with its overlays; `applied` is what those changed, each with its origin.

    `value` is the pack with its overlays: what was judged.
    """

    report: Report
    value: "Json"
    applied: tuple["Applied", ...] = ()


class VersionStep(NamedTuple):
    """The class that a change asks for, and what is wrong with the number that was given."""

    bump: "Bump"
    refusal: "BumpTooSmall | None"


def author_file(path: str) -> AuthorFile:
    """Read a document: YAML by its extension, JSON otherwise; `-` is standard input, JSON."""
    with document(path) as data:
        if len(data) > LARGEST:
            raise AuthorFileTooLarge(
                f"has {len(data)} bytes, more than {LARGEST}", at=path, hint="keep records outside"
            )
        whole = bytes(data)
    try:
        if os.path.splitext(path)[1].lower() in _YAML:
            from contextplane.authoring.author_yaml import read_yaml_file

            return read_yaml_file(whole)
        return read_json_file(whole)
    except ContextPlaneError as error:
        raise error.under(f"{path}: " if error.at else path) from None


def linted(file: AuthorFile, overlays: tuple[Overlay, ...] = (), surroundings: Surroundings | None = None) -> Linted:
    """Run every gate over the pack with its overlays applied."""
    value: Json = file.value
    applied: tuple[Applied, ...] = ()
    if overlays:
        from contextplane.authoring.overlays import resolved_view

        view = resolved_view(value, overlays, identify=_official_number)
        value, applied = view.value, view.applied
    return Linted(report=judged(value, surroundings, identify=_official_number), value=value, applied=applied)


def version_step(old: AuthorFile, new: AuthorFile, report: Report) -> VersionStep:
    """The version class that the change from one pack to another asks for, and why a smaller bump is refused.

    `report` is of the new pack itself: what an overlay takes away does not make it safe. A new pack that may not be
    published has the class `reject`, whatever its number.
    """
    from contextplane.authoring.compare import compared
    from contextplane.authoring.versions import BumpTooSmall, check_bump, required_bump

    before, after = _pack(old, "the old pack"), _pack(new, "the new pack")
    errors = [f"{one.code} at {one.at}" for one in report.findings if one.severity == "error"]
    bump = required_bump(compared(old.value, new.value), unsafe=errors)
    try:
        if not errors and old.canonical != new.canonical:
            check_bump(before.ref, after.ref, bump)
    except BumpTooSmall as refusal:
        return VersionStep(bump, refusal)
    return VersionStep(bump, None)


def law_behind(code: str) -> Law[Any]:
    """The law that a finding of this code breaks."""
    laws = {law.code: law for law in EVERY_LAW}
    if code not in laws:
        from contextplane.authoring.nearest import nearest

        raise LawUnknown(
            f"no law has the code {code[:60]!r}", hint=nearest(code, laws, "see the codes that lint prints")
        )
    return laws[code]


def overlay_from(path: str) -> Overlay:
    return _typed(author_file(path), Overlay, path)


def surroundings_from(path: str) -> Surroundings:
    return _typed(author_file(path), Surroundings, path)


def _pack(file: AuthorFile, path: str) -> ContextPack:
    return _typed(file, ContextPack, path)


def _typed(file: AuthorFile, form: type[D], path: str) -> D:
    """The document of a file that is of its form. Else the first problem is told in full, and the others listed."""
    found = typed_or_problems(file.value, form)
    if isinstance(found, form):
        return found
    problems: list[Finding] = list(found) if isinstance(found, tuple) else []
    first = problems[0]
    place = file.place(first.at)
    raise DescriptionInvalid(
        f"{first.at or 'the document'}: {first.cause}",
        at=f"{path}:{place.line}:{place.column}",
        hint=first.cure,
        details={"problems": [{"at": one.at, "cause": one.cause, "cure": one.cure} for one in problems]},
    )


def _official_number(text: str) -> str | None:
    """Which official number a text is. Loaded when something may be one: the library takes longer than all gates."""
    from stdnum import iban
    from stdnum.in_ import aadhaar, pan
    from stdnum.us import ssn

    checks = ((aadhaar, "Aadhaar number"), (pan, "PAN of a taxpayer"), (ssn, "social security number"))
    kinds = [kind for module, kind in (*checks, (iban, "bank account number")) if module.is_valid(text)]
    return kinds[0] if kinds else None
