"""`ctx verify pk_...[@N]`: every kept revision hashed again, and the history gone through."""

from contextplane.audit.handoff_verify import verify_handoff
from contextplane.cli.handoffs.opening import opening_desk
from contextplane.cli.screen import Screen, clean, counted, human_size
from contextplane.cli.verdicts import ANSWER_COLOR, STATUS_OF
from contextplane.handoff.names import not_found
from contextplane.model.reference import HandoffRef

__all__ = ["verify"]


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
            "revisions": [{"revision": one.revision, "digest": str(one.digest)} for one in verdict.revisions],
            "size": verdict.size,
            "signature": None,
            "troubles": verdict.troubles,
        }
    )
    return STATUS_OF[verdict.answer]
