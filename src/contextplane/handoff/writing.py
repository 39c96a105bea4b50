"""What a new revision is: from a document, the one before it, and the files that it refers to. It stores nothing."""

from collections.abc import Sequence

import msgspec

from contextplane.handoff.anchors import anchored
from contextplane.handoff.code import SourceReader, SourceRefused
from contextplane.handoff.lifetimes import DEFAULT_TTL_MINUTES, deadline
from contextplane.handoff.refusals import HandoffInvalid, RevisionConflict
from contextplane.model.canonical import canonical
from contextplane.model.handoff import Anchor, HandoffDocument, HandoffPack, Lines, Ref, Section, pack_bytes
from contextplane.model.ids import HandoffId
from contextplane.model.json_refusals import JsonRefused
from contextplane.model.timestamp import Timestamp

__all__ = ["conflict", "first_revision", "next_revision", "sized_bytes"]

_KEYS = 12


def first_revision(
    document: HandoffDocument, handoff_id: HandoffId, *, now: Timestamp, reader: SourceReader
) -> HandoffPack:
    """A new pack. Without a ttl it is good for 24 hours."""
    minutes = DEFAULT_TTL_MINUTES if document.ttl_minutes is None else document.ttl_minutes
    return HandoffPack(
        id=handoff_id.text,
        name=document.name,
        title=document.title,
        brief=document.brief,
        status=document.status,
        tags=document.tags,
        sections=_anchored(document.sections, (), reader),
        revision=1,
        created_at=str(now),
        updated_at=str(now),
        expires_at=str(deadline(now, minutes, field="document.ttl_minutes")),
    )


def next_revision(
    document: HandoffDocument, before: HandoffPack, *, now: Timestamp, reader: SourceReader
) -> HandoffPack:
    """The whole content replaced. The name stays; without a ttl, so does the deadline. Time never goes back."""
    if document.name is not None and document.name != before.name:
        raise HandoffInvalid(
            "name is immutable",
            at="document.name",
            hint="leave it out, or repeat it",
            details={"field": "document.name", "current": before.name, "guidance": "leave it out, or repeat it"},
        )
    ttl = document.ttl_minutes
    expires = before.expires if ttl is None else deadline(now, ttl, field="document.ttl_minutes")
    return msgspec.structs.replace(
        before,
        title=document.title,
        brief=document.brief,
        status=document.status,
        tags=document.tags,
        sections=_anchored(document.sections, before.sections, reader),
        revision=before.revision + 1,
        updated_at=str(max(now, before.updated)),
        expires_at=str(expires),
    )


def sized_bytes(pack: HandoffPack, max_pack_bytes: int) -> bytes:
    """The object that a revision is, unless it is too large, or holds what cannot be stored.

    Its size is that of what was written: anchors, which we add to it, do not count.
    """
    try:
        data = pack_bytes(pack)
    except JsonRefused as error:
        field = f"document{(error.at or '').replace('/', '.')}"
        raise HandoffInvalid(f"cannot be stored: {error.message}", at=field, details={"field": field}) from error
    size = len(data) if len(data) <= max_pack_bytes else len(data) - _anchors_size(pack)
    if size > max_pack_bytes:
        raise HandoffInvalid(
            f"the pack has {size} bytes, and {max_pack_bytes} are allowed",
            at="document",
            hint="split it into several packs",
            details={"field": "document", "size_bytes": size, "max_pack_bytes": max_pack_bytes},
        )
    return data


def conflict(expected: int, current: HandoffPack, before: HandoffPack | None) -> RevisionConflict:
    """Somebody wrote first. `before` is the expected revision, None when there never was one or it cannot be read."""
    changed = _changed(before.sections if before else (), current.sections)
    return RevisionConflict(
        f"expected revision {expected}, and the pack is at {current.revision}",
        at=current.id,
        hint="get the pack again, merge, and write with its revision",
        details={
            "expected_revision": expected,
            "current_revision": current.revision,
            "actual_revision": current.revision,
            "last_updated_at": str(current.updated).removesuffix("Z") + "+00:00",
            "changed_section_keys": changed[:_KEYS],
            "guidance": (
                "call input get for the latest pack, merge your intent with the changed sections,"
                f" then retry with expected_revision={current.revision}"
            ),
        },
    )


def _changed(before: Sequence[Section], after: Sequence[Section]) -> list[str]:
    old, new = {one.key: one for one in before}, {one.key: one for one in after}
    return sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))


def _anchors_size(pack: HandoffPack) -> int:
    """How many bytes of a pack its anchors are, each with its name and a comma."""
    anchors = (ref.anchor for section in pack.sections for ref in section.refs)
    return sum(len(canonical({"anchor": msgspec.to_builtins(anchor)})) - 1 for anchor in anchors)


def _anchored(sections: Sequence[Section], before: Sequence[Section], reader: SourceReader) -> tuple[Section, ...]:
    """Each ref with what its lines are now; one that leads to the same lines as before keeps what they were then.

    Those who edit what is said of a ref have not looked at its lines again. Another key or other lines are a new ref.
    """
    known = _Known(before)
    return tuple(
        msgspec.structs.replace(
            section,
            refs=tuple(
                msgspec.structs.replace(ref, anchor=known.anchor(section.key, ref) or _anchor(ref, reader))
                for ref in section.refs
            ),
        )
        for section in sections
    )


class _Known:
    """The anchors of the revision before, by the key, the path and the lines of their refs."""

    def __init__(self, sections: Sequence[Section]) -> None:
        refs = [(section.key, ref) for section in sections for ref in section.refs]
        self._here = {(key, *_leads(ref)): ref.anchor for key, ref in refs}
        # A ref that was put into another section is still the same.
        self._anywhere = {_leads(ref): ref.anchor for _, ref in refs}

    def anchor(self, section_key: str, ref: Ref) -> Anchor | None:
        return self._here.get((section_key, *_leads(ref))) or self._anywhere.get(_leads(ref))


def _leads(ref: Ref) -> tuple[str, str, Lines]:
    return ref.key, ref.path, ref.lines


def _anchor(ref: Ref, reader: SourceReader) -> Anchor | None:
    """None where there is nothing to hold on to: a draft may speak of files that are not there yet."""
    try:
        lines = reader.lines(ref.path)
    except SourceRefused:
        return None
    return anchored(lines, ref.lines)
