"""`ctx diff pk_...@3 pk_...@5`: two revisions of handoff packs, in words and as unified diffs.

`ctx verify pk_...[@N]`: every kept revision hashed again, and the history gone through.
"""

from collections.abc import Iterator

from msgspec import UNSET

from contextplane.audit.handoff import HandoffChange, handoff_diff, verify_handoff
from contextplane.cli.exit import DRIFT, OK
from contextplane.cli.handoff.read import found, opening_desk
from contextplane.cli.output import Screen, clean, counted, human_size, shortened
from contextplane.cli.render.execution import ANSWER_COLOR, STATUS_OF, text_lines
from contextplane.handoff.reader import Found, not_found
from contextplane.model.json.canonical import SORTED
from contextplane.model.reference import HandoffRef

__all__ = ["diff", "verify"]

_INDENT = " " * 6


def diff(a: HandoffRef, b: HandoffRef, screen: Screen, *, exit_code: bool) -> int:
    with opening_desk(screen) as desk:
        ours, theirs = found(str(a), desk), found(str(b), desk)
    changes = handoff_diff(ours.pack, theirs.pack)
    _tell(changes, ours, theirs, screen)
    screen.answer(
        {
            "pack_a": _name(ours),
            "pack_b": _name(theirs),
            "digest_a": str(ours.digest),
            "digest_b": str(theirs.digest),
            "has_drift": bool(changes),
            "entries": changes,
        }
    )
    return DRIFT if exit_code and changes else OK


def _name(pack: Found) -> str:
    return f"{pack.pack.id}@{pack.pack.revision}"


def _tell(changes: tuple[HandoffChange, ...], ours: Found, theirs: Found, screen: Screen) -> None:
    if not changes:
        same = ours.digest == theirs.digest
        why = "It is the same revision." if same else "The revisions differ only in their number and their times."
        screen.say(f"No differences found. {why}")
        return
    screen.say(f"Comparing {_name(ours)} vs {_name(theirs)}")
    screen.say()
    screen.say(f"{counted(len(changes), 'difference')} found:")
    screen.say()
    for number, change in enumerate(changes, 1):
        screen.say(f"  {number}. {_line(change)}")
        for line in text_lines(change.text, screen) if change.text is not UNSET else ():
            screen.say(_INDENT + line)


def _line(change: HandoffChange) -> str:
    told = f"[{change.type}] {shortened(clean(change.description))}"
    values = " -> ".join(_values(change)) if change.text is UNSET else ""
    return f"{told}: {values}" if values else told


def _values(change: HandoffChange) -> Iterator[str]:
    """What each has, where that is short enough to be told beside the words."""
    for value in (change.a, change.b):
        if value is UNSET or value is None:
            continue
        yield shortened(clean(value if isinstance(value, str) else SORTED.encode(value).decode()))


def verify(ref: HandoffRef, screen: Screen) -> int:
    with opening_desk(screen) as desk:
        platform = desk.platform
        if platform is None:
            raise not_found(str(ref.id))
        verdict = verify_handoff(ref.id, ref.revision, catalog=platform.catalog, objects=platform.objects)
    events, revisions = counted(verdict.events, "event"), counted(len(verdict.revisions), "revision")
    screen.say(f"Handoff:   {ref}")
    screen.say(f"Checked:   {events}, {revisions} whole, {human_size(verdict.size)}")
    screen.say(f"Integrity: {screen.paint(ANSWER_COLOR[verdict.answer], verdict.answer)}")
    for trouble in verdict.troubles:
        screen.failure(f"  {trouble.answer:<9} {clean(trouble.what)}  {clean(trouble.why)}")
    screen.answer(
        {
            "answer": verdict.answer,
            "pack": str(ref),
            "events": verdict.events,
            "revisions": [
                {"revision": revision.revision, "digest": str(revision.digest)} for revision in verdict.revisions
            ],
            "size": verdict.size,
            "signature": None,
            "troubles": verdict.troubles,
        }
    )
    return STATUS_OF[verdict.answer]
