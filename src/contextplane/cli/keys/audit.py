"""`ctx verify --registry`: all of it verified, signed anew, or a proof of it written to a file."""

from argparse import Namespace
from datetime import timedelta

from contextplane.app.platform import Platform
from contextplane.app.registry.audit import (
    ExportedProof,
    audit_registry,
    prove_consistency,
    prove_inclusion,
    renew_checkpoint,
    write_proof,
)
from contextplane.app.registry.resolve import load_for_replay
from contextplane.app.registry.session import RegistrySession
from contextplane.cli.exit import OK
from contextplane.cli.keys.session import key_store_for
from contextplane.cli.keys.show import key_label
from contextplane.cli.output import CommandOutput, clean, quantity
from contextplane.cli.progress import Bar
from contextplane.cli.render.execution import ANSWER_COLOR, STATUS_OF
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import Json
from contextplane.registry.audit import AuditResult
from contextplane.registry.log import CheckpointBeforeRevocation, VerifiedCheckpoint
from contextplane.registry.streams import LOG
from contextplane.trust.clock import seconds_behind
from contextplane.trust.dsse import encode_base64

__all__ = ["verify_registry", "verify_version"]

_PROGRAM = "python -m contextplane.testing.standalone_verifier"


def verify_registry(platform: Platform, args: Namespace, output: CommandOutput) -> int:
    session = RegistrySession(key_store_for(platform, args))
    if args.inclusion is not None:
        ref = PackRef.parse(args.inclusion)
        exported = prove_inclusion(session, ref)
        return _write_proof(exported, args.output, f"inclusion {args.output} {args.output}.entry", output)
    if args.consistency is not None:
        exported = prove_consistency(session, args.consistency)
        return _write_proof(exported, args.output, f"consistency {args.output} {encode_base64(exported.old_root)}", output)
    return _verify_all(session, args, output)


def verify_version(platform: Platform, ref: PackRef, args: Namespace, output: CommandOutput) -> int:
    """One version: its bytes, its signatures, its reviews, its place in the log. What is wrong is an error."""
    keys = key_store_for(platform, args)
    used = load_for_replay(RegistrySession(keys), ref)
    output.line(f"Version:    {ref}  {used.kind}")
    output.line(f"Bytes:      {used.digest}")
    names = keys.names()
    output.line(f"Signed by:  {', '.join(key_label(one, names) for one in used.signed_by)}")
    for mark in used.marks:
        output.line(f"Note:       {mark}")
    output.line(f"Integrity:  {output.paint(ANSWER_COLOR['verified'], 'verified')}")
    answer = {"answer": "verified", "ref": str(ref), "kind": used.kind, "digest": str(used.digest)}
    output.answer({**answer, "signed_by": used.signed_by, "marks": used.marks})
    return OK


def _verify_all(session: RegistrySession, args: Namespace, output: CommandOutput) -> int:
    with session.platform.catalog.read() as view:
        bar = Bar(output, view.streams.head(LOG))
    found = audit_registry(session, bar.step)
    bar.clear()
    fresh = None
    if args.sign and (found.sound or found.renewable):
        fresh = renew_checkpoint(session, found, session.keys.signer(args.key))
    sound = found.sound or fresh is not None
    answer = "verified" if sound else "modified"
    _print_audit(session, found, fresh, output)
    output.line(f"Integrity:  {output.paint(ANSWER_COLOR[answer], answer)}")
    for trouble in found.problems:
        output.failure_line(f"  {trouble.code}  {clean(trouble.at)}  {clean(trouble.message)}")
    if found.problems and sound:
        output.line("  The new checkpoint mends this.")
    elif found.renewable:
        output.line("  Everything else is as it should be: 'ctx verify --registry --sign' signs a fresh checkpoint.")
        if found.problems[0].code == CheckpointBeforeRevocation.code:
            output.line(
                "  If that was done since the revocation, this is not that log: restore a copy, and do not sign it."
            )
    output.answer(
        {
            "answer": answer,
            "registry": session.origin,
            "entries": found.entries,
            "subjects": found.subjects,
            "checkpoints": found.checkpoints,
            "by_revoked_keys": found.by_revoked,
            "checkpoint": _checkpoint_json(fresh or found.newest),
            "signed": fresh is not None,
            "clock_behind_seconds": _clock_lag(session, fresh or found.newest),
            "troubles": found.problems,
        }
    )
    return STATUS_OF[answer]


def _print_audit(session: RegistrySession, found: AuditResult, fresh: VerifiedCheckpoint | None, output: CommandOutput) -> None:
    output.line(f"Registry:   {session.origin}")
    log = f"{found.entries:,} {'entry' if found.entries == 1 else 'entries'}"
    output.line(f"Checked:    {log}, {quantity(found.subjects, 'subject')}, {quantity(found.checkpoints, 'checkpoint')}")
    if found.by_revoked:
        output.line(f"            {quantity(found.by_revoked, 'event')} by keys that are revoked from before then on")
    standing = fresh or found.newest
    if standing is not None:
        said = f"of {standing.time}" + (", signed now" if fresh is not None else "")
        output.line(f"Checkpoint: {standing.checkpoint.size:,} {encode_base64(standing.checkpoint.root)} {said}")
        behind = _clock_lag(session, standing)
        if behind:
            ahead = f"which is {timedelta(seconds=behind)} ahead of this machine's clock"
            output.line(output.paint("yellow", f"            {ahead}"))


def _clock_lag(session: RegistrySession, standing: VerifiedCheckpoint | None) -> int:
    """How far this machine's clock is behind the newest checkpoint, if more than a minute."""
    return 0 if standing is None else seconds_behind(session.keys.clock, standing.time)


def _checkpoint_json(standing: VerifiedCheckpoint | None) -> Json:
    if standing is None:
        return None
    return {
        "size": standing.checkpoint.size,
        "root": encode_base64(standing.checkpoint.root),
        "time": str(standing.time),
        "note": standing.note.decode(),
    }


def _write_proof(exported: ExportedProof, path: str, how: str, output: CommandOutput) -> int:
    write_proof(exported, path)
    entry = f" and {clean(path)}.entry" if exported.entry else ""
    output.line(f"Written to {clean(path)}{entry}. To check it, with a root and a key that you have from elsewhere:")
    output.line(f"  {_PROGRAM} {clean(how)} {exported.vkey}")
    output.answer(
        {
            "proof": path,
            "entry": f"{path}.entry" if exported.entry else None,
            "old_root": encode_base64(exported.old_root) if exported.old_root else None,
            "vkey": exported.vkey,
        }
    )
    return OK
