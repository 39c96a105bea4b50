"""`ctx verify --registry` and `ctx verify id@X.Y.Z`: verifies, signs anew, or writes a proof."""

from argparse import Namespace
from datetime import timedelta

from contextplane.app.registry.audit import (
    AuditResult,
    CheckpointBeforeRevocation,
    ExportedProof,
    VerifiedCheckpoint,
    audit_registry,
    clock_lag,
    encode_base64,
    log_length,
    prove_consistency,
    prove_inclusion,
    read_checkpoint,
    reject_existing,
    renew_checkpoint,
    write_checkpoint,
    write_proof,
)
from contextplane.app.registry.mirror import ResolvedDocument, find_mirror
from contextplane.app.registry.resolve import load_for_replay
from contextplane.app.registry.session import RegistrySession
from contextplane.cli.exit import OK
from contextplane.cli.keys.show import key_label
from contextplane.cli.output import CommandOutput, clean, quantity
from contextplane.cli.render.execution import ANSWER_COLOR, STATUS_OF
from contextplane.cli.terminal import Bar
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import PackRef
from contextplane.model.json.canonical import Json

__all__ = ["verify_registry", "verify_version"]

_PROGRAM = "python -m contextplane.testing.standalone_verifier"


def verify_registry(session: RegistrySession, args: Namespace, output: CommandOutput) -> int:
    if args.inclusion is not None:
        ref = PackRef.parse(args.inclusion)
        exported = prove_inclusion(session, ref)
        return _write_proof(exported, args.output, f"inclusion {args.output} {args.output}.entry", output)
    if args.consistency is not None:
        exported = prove_consistency(session, args.consistency)
        return _write_proof(
            exported, args.output, f"consistency {args.output} {encode_base64(exported.old_root)}", output
        )
    return _verify_all(session, args, output)


def verify_version(session: RegistrySession, ref: PackRef, output: CommandOutput) -> int:
    """Verify a version: bytes, signatures, reviews, its place in the log. A problem is an error."""
    used, origin = _load_version(session, ref)
    output.line(f"Version:    {ref}  {used.kind}")
    if origin:
        output.line(f"Mirrored:   from {clean(origin)}")
    output.line(f"Bytes:      {used.digest}")
    names = session.keys.names()
    output.line(f"Signed by:  {', '.join(key_label(key_id, names) for key_id in used.signed_by)}")
    for mark in used.marks:
        output.line(f"Note:       {mark}")
    output.line(f"Integrity:  {output.paint(ANSWER_COLOR['verified'], 'verified')}")
    answer = {"answer": "verified", "ref": str(ref), "kind": used.kind, "digest": str(used.digest)}
    output.answer({**answer, "signed_by": used.signed_by, "marks": used.marks})
    return OK


def _load_version(session: RegistrySession, ref: PackRef) -> tuple[ResolvedDocument, str]:
    """Load a version of this registry, else a mirrored one with the origin of its store."""
    try:
        return load_for_replay(session, ref), ""
    except ContextPlaneError as error:
        mirror = find_mirror(session, ref) if error.code == "version_not_found" else None
        if mirror is None or mirror.release is None:
            raise
        return mirror.release.admitted.resolved, mirror.origin


def _verify_all(session: RegistrySession, args: Namespace, output: CommandOutput) -> int:
    if args.output is not None:
        reject_existing(args.output)
    bar = Bar(output, log_length(session))
    audit = _audit_since(session, args.since, bar) if args.since is not None else audit_registry(session, bar.step)
    bar.clear()
    fresh = None
    if args.sign and audit.signable:
        fresh = renew_checkpoint(session, audit, session.keys.signer(args.key))
    is_whole = not audit.damage or (fresh is not None and audit.renewable)
    answer = _answer(audit) if is_whole else "modified"
    kept = fresh or audit.newest
    if args.output is not None and is_whole and kept is not None:
        write_checkpoint(kept, args.output)
    _print_audit(session, audit, fresh, output)
    output.line(f"Integrity:  {output.paint(ANSWER_COLOR[answer], answer)}")
    for problem in audit.problems:
        void = "in the log  " if problem.logged and not audit.damage else ""  # of a damaged log nothing is known
        output.failure_line(f"  {void}{problem.code}  {clean(problem.at)}  {clean(problem.message)}")
    _print_ways_out(audit, is_fixed=is_whole, output=output)
    if args.output is not None and is_whole:
        output.line(f"Kept:       {clean(args.output)}")
    output.answer(
        {
            "answer": answer,
            "registry": session.origin,
            **({} if audit.since is None else {"since": audit.since.size}),
            "entries": audit.entries,
            "subjects": audit.subjects,
            "checkpoints": audit.checkpoints,
            "by_revoked_keys": audit.by_revoked,
            "checkpoint": _checkpoint_json(fresh or audit.newest),
            "signed": fresh is not None,
            "clock_behind_seconds": clock_lag(session, fresh or audit.newest),
            "troubles": audit.problems,
        }
    )
    return OK if fresh is not None and is_whole else STATUS_OF[answer]


def _audit_since(session: RegistrySession, path: str, bar: Bar) -> AuditResult:
    """Verify what came since the checkpoint in a file, which is the place of what is wrong with it."""
    kept = read_checkpoint(path)
    try:
        return audit_registry(session, bar.step, kept)
    except ContextPlaneError as error:
        error.at = error.at or path
        raise


def _answer(audit: AuditResult) -> str:
    return "void" if len(audit.problems) > len(audit.damage) else "verified"


def _print_ways_out(audit: AuditResult, *, is_fixed: bool, output: CommandOutput) -> None:
    """Print what to do about the problems. `is_fixed`: nothing is left but void events."""
    if audit.damage and is_fixed:
        output.line("  The new checkpoint fixes this.")
    elif audit.renewable:
        output.line("  Everything else is in order: 'ctx verify --registry --sign' signs a fresh checkpoint.")
        if audit.damage[0].code == CheckpointBeforeRevocation.code:
            output.line(
                "  If you did that after the revocation, this log was replaced: restore a copy, and do not sign it."
            )
    if is_fixed and _answer(audit) == "void":
        output.line("  The log has this for good. What was done without a right is void: every reader passes over it.")
        output.line("  To verify from here on without them: -o FILE keeps this checkpoint, --since FILE begins there.")


def _print_audit(
    session: RegistrySession, audit: AuditResult, fresh: VerifiedCheckpoint | None, output: CommandOutput
) -> None:
    output.line(f"Registry:   {session.origin}")
    log = f"{audit.entries:,} {'entry' if audit.entries == 1 else 'entries'}"
    output.line(
        f"Checked:    {log}, {quantity(audit.subjects, 'subject')}, {quantity(audit.checkpoints, 'checkpoint')}"
    )
    if audit.since is not None:
        before = f"its first {audit.since.size:,} entries, of {audit.since.time} and before"
        output.line(f"Not checked: {before}, except in streams that have new events")
    if audit.is_first_format and audit.entries:
        sealed = "was sealed now: a program of an earlier release cannot read the store any more"
        unsealed = "is only read until an owner seals it: ctx verify --registry --sign --key OWNER"
        output.line(f"Format:     the first, which {unsealed if fresh is None else sealed}")
    if audit.by_revoked:
        output.line(f"            {quantity(audit.by_revoked, 'event')} by keys that are revoked from before that time")
    checkpoint = fresh or audit.newest
    if checkpoint is not None:
        when = f"of {checkpoint.time}" + (", signed now" if fresh is not None else "")
        output.line(f"Checkpoint: {checkpoint.checkpoint.size:,} {encode_base64(checkpoint.checkpoint.root)} {when}")
        behind = clock_lag(session, checkpoint)
        if behind:
            ahead = f"which is {timedelta(seconds=behind)} ahead of this machine's clock"
            output.line(output.paint("yellow", f"            {ahead}"))


def _checkpoint_json(checkpoint: VerifiedCheckpoint | None) -> Json:
    if checkpoint is None:
        return None
    return {
        "size": checkpoint.checkpoint.size,
        "root": encode_base64(checkpoint.checkpoint.root),
        "time": str(checkpoint.time),
        "note": checkpoint.note.decode(),
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
