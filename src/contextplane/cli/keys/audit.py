"""`ctx verify --registry`: all of it verified, signed anew, or a proof of it written to a file."""

from argparse import Namespace
from datetime import timedelta

from contextplane.app.platform import Platform
from contextplane.app.registry.audit import Exported, consistency, inclusion, renewed, verified, write_proof
from contextplane.app.registry.resolve import vouched_for
from contextplane.app.registry.session import RegistryDesk
from contextplane.cli.exit import OK
from contextplane.cli.keys.session import desk_of
from contextplane.cli.keys.show import called
from contextplane.cli.output import Screen, clean, counted
from contextplane.cli.progress import Bar
from contextplane.cli.render.execution import ANSWER_COLOR, STATUS_OF
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import Json
from contextplane.registry.audit import Audit
from contextplane.registry.log import CheckpointBeforeRevocation, Standing
from contextplane.registry.streams import LOG
from contextplane.trust.clock import seconds_behind
from contextplane.trust.dsse import encoded

__all__ = ["verify_registry", "verify_version"]

_PROGRAM = "python -m contextplane.testing.standalone_verifier"


def verify_registry(platform: Platform, args: Namespace, screen: Screen) -> int:
    desk = RegistryDesk(desk_of(platform, args))
    if args.inclusion is not None:
        ref = PackRef.parse(args.inclusion)
        exported = inclusion(desk, ref)
        return _written(exported, args.output, f"inclusion {args.output} {args.output}.entry", screen)
    if args.consistency is not None:
        exported = consistency(desk, args.consistency)
        return _written(exported, args.output, f"consistency {args.output} {encoded(exported.old_root)}", screen)
    return _whole(desk, args, screen)


def verify_version(platform: Platform, ref: PackRef, args: Namespace, screen: Screen) -> int:
    """One version: its bytes, its signatures, its reviews, its place in the log. What is wrong is an error."""
    keys = desk_of(platform, args)
    used = vouched_for(RegistryDesk(keys), ref)
    screen.say(f"Version:    {ref}  {used.kind}")
    screen.say(f"Bytes:      {used.digest}")
    names = keys.names()
    screen.say(f"Signed by:  {', '.join(called(one, names) for one in used.signed_by)}")
    for mark in used.marks:
        screen.say(f"Note:       {mark}")
    screen.say(f"Integrity:  {screen.paint(ANSWER_COLOR['verified'], 'verified')}")
    answer = {"answer": "verified", "ref": str(ref), "kind": used.kind, "digest": str(used.digest)}
    screen.answer({**answer, "signed_by": used.signed_by, "marks": used.marks})
    return OK


def _whole(desk: RegistryDesk, args: Namespace, screen: Screen) -> int:
    with desk.platform.catalog.read() as view:
        bar = Bar(screen, view.streams.head(LOG))
    found = verified(desk, bar.step)
    bar.clear()
    fresh = None
    if args.sign and (found.sound or found.renewable):
        fresh = renewed(desk, found, desk.keys.signer(args.key))
    sound = found.sound or fresh is not None
    answer = "verified" if sound else "modified"
    _tell(desk, found, fresh, screen)
    screen.say(f"Integrity:  {screen.paint(ANSWER_COLOR[answer], answer)}")
    for trouble in found.troubles:
        screen.failure(f"  {trouble.code}  {clean(trouble.at)}  {clean(trouble.message)}")
    if found.troubles and sound:
        screen.say("  The new checkpoint mends this.")
    elif found.renewable:
        screen.say("  Everything else is as it should be: 'ctx verify --registry --sign' signs a fresh checkpoint.")
        if found.troubles[0].code == CheckpointBeforeRevocation.code:
            screen.say(
                "  If that was done since the revocation, this is not that log: restore a copy, and do not sign it."
            )
    screen.answer(
        {
            "answer": answer,
            "registry": desk.origin,
            "entries": found.entries,
            "subjects": found.subjects,
            "checkpoints": found.checkpoints,
            "by_revoked_keys": found.by_revoked,
            "checkpoint": _told(fresh or found.standing),
            "signed": fresh is not None,
            "clock_behind_seconds": _behind(desk, fresh or found.standing),
            "troubles": found.troubles,
        }
    )
    return STATUS_OF[answer]


def _tell(desk: RegistryDesk, found: Audit, fresh: Standing | None, screen: Screen) -> None:
    screen.say(f"Registry:   {desk.origin}")
    log = f"{found.entries:,} {'entry' if found.entries == 1 else 'entries'}"
    screen.say(f"Checked:    {log}, {counted(found.subjects, 'subject')}, {counted(found.checkpoints, 'checkpoint')}")
    if found.by_revoked:
        screen.say(f"            {counted(found.by_revoked, 'event')} by keys that are revoked from before then on")
    standing = fresh or found.standing
    if standing is not None:
        said = f"of {standing.time}" + (", signed now" if fresh is not None else "")
        screen.say(f"Checkpoint: {standing.checkpoint.size:,} {encoded(standing.checkpoint.root)} {said}")
        behind = _behind(desk, standing)
        if behind:
            ahead = f"which is {timedelta(seconds=behind)} ahead of this machine's clock"
            screen.say(screen.paint("yellow", f"            {ahead}"))


def _behind(desk: RegistryDesk, standing: Standing | None) -> int:
    """How far this machine's clock is behind the newest checkpoint, if more than a minute."""
    return 0 if standing is None else seconds_behind(desk.keys.clock, standing.time)


def _told(standing: Standing | None) -> Json:
    if standing is None:
        return None
    return {
        "size": standing.checkpoint.size,
        "root": encoded(standing.checkpoint.root),
        "time": str(standing.time),
        "note": standing.note.decode(),
    }


def _written(exported: Exported, path: str, how: str, screen: Screen) -> int:
    write_proof(exported, path)
    entry = f" and {clean(path)}.entry" if exported.entry else ""
    screen.say(f"Written to {clean(path)}{entry}. To check it, with a root and a key that you have from elsewhere:")
    screen.say(f"  {_PROGRAM} {clean(how)} {exported.vkey}")
    screen.answer(
        {
            "proof": path,
            "entry": f"{path}.entry" if exported.entry else None,
            "old_root": encoded(exported.old_root) if exported.old_root else None,
            "vkey": exported.vkey,
        }
    )
    return OK
