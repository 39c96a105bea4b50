"""The finalize checklist: what a pack must hold before it may be called finalized. All that is missing is told."""

from collections.abc import Callable, Iterator

from contextplane.handoff.code import Looked
from contextplane.handoff.refusals import FinalizeRefused
from contextplane.handoff.verdict import verdict
from contextplane.model.handoff import HandoffPack, Lines, Ref, Section
from contextplane.model.value import Value

__all__ = ["MovedRef", "checked"]

_REQUIRED = ("scope", "findings", "qa")
_SUBSTANTIAL = ("scope", "findings")
_SAMPLED = 10


class MovedRef(Value, frozen=True):
    """A ref whose lines stand elsewhere in their file now."""

    section_key: str
    ref_key: str
    path: str
    was: Lines
    now: Lines


def checked(pack: HandoffPack, look: Callable[[Ref], Looked]) -> tuple[MovedRef, ...]:
    """Return the refs that moved, which is no fault; `FinalizeRefused` with all that is missing or stale."""
    sections = {section.key: section for section in pack.sections}
    missing_sections = [key for key in _REQUIRED if key not in sections]
    missing_fields = list(_missing_fields(sections, pack))
    looked = [(section, ref, look(ref)) for section in pack.sections for ref in section.refs]
    invalid = [_invalid(section, ref, seen) for section, ref, seen in looked if seen.stale]
    if missing_sections or missing_fields or invalid:
        raise FinalizeRefused(
            _message(missing_sections, missing_fields, invalid),
            at=pack.id if pack.revision > 1 else None,  # a new pack has an id when it is stored
            hint="mend what is named, or write it as a draft",
            details={
                "missing_sections": missing_sections,
                "missing_fields": missing_fields,
                "invalid_refs": invalid,
            },
        )
    return tuple(
        MovedRef(section_key=section.key, ref_key=ref.key, path=ref.path, was=ref.lines, now=seen.lines)
        for section, ref, seen in looked
        if seen.state == "moved" and seen.lines
    )


def _missing_fields(sections: dict[str, Section], pack: HandoffPack) -> Iterator[str]:
    for key in _SUBSTANTIAL:
        section = sections.get(key)
        if section and not ((section.description or "").strip() or section.refs or section.diagrams):
            yield f"{key}.content"
    if "qa" in sections and verdict(pack) is None:
        yield "qa.verdict"


def _invalid(section: Section, ref: Ref, seen: Looked) -> dict[str, object]:
    return {
        "section_key": section.key,
        "ref_key": ref.key,
        "path": ref.path,
        "line_start": ref.lines.start,
        "line_end": ref.lines.end,
        "reason": seen.why,
        "state": seen.state,
    }


def _message(sections: list[str], fields: list[str], invalid: list[dict[str, object]]) -> str:
    parts = [f"missing sections: {', '.join(sections)}"] if sections else []
    parts += [f"missing fields: {', '.join(fields)}"] if fields else []
    if invalid:
        told = [f"{one['section_key']}/{one['ref_key']} ({one['reason']})" for one in invalid[:_SAMPLED]]
        more = f", and {len(invalid) - _SAMPLED} more" if len(invalid) > _SAMPLED else ""
        parts.append(f"invalid refs: {', '.join(told)}{more}")
    return "finalize validation failed: " + "; ".join(parts)
