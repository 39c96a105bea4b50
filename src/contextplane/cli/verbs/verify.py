"""Verify a run, a file, a handoff pack, a published version, or the whole registry.

  an execution pack    its manifest, its entry, all its contents and the manifests of its parents are hashed again
  a file               its bytes are compared with the output that its sidecar FILE.ctx.json names. If it names none,
                       with the only output of the same base name. A renamed or moved file is unchecked.
  a handoff pack       pk_<id> or pk_<id>@3: every stored revision is hashed again and compared with its event, and the
                       history must be complete
  a version            id@X.Y.Z: its bytes, signatures and reviews, their place in the log, and what its publisher
                       claims: gates, version number, owner of the id

The result is one of:
  verified     status 0
  modified     status 11
  unchecked    status 10: something could not be checked
  unknown      status 13: no sidecar, or its pack is not in the store
  void         status 11: nothing of the registry was changed, and its log has events that count for nothing, because
               their keys did not have the right

--registry verifies every event, the log, both trees, every checkpoint, and every object that an event names; that what
publishers claim holds, by running the gates over every version again; and that nothing was rewritten, truncated, forked
or rolled back since the highest checkpoint seen from here. --sign then signs a fresh checkpoint. --inclusion and
--consistency write a proof that can be checked without a store.

An auditor keeps the newest checkpoint with -o FILE. --since FILE then verifies what came after it: every new entry and
checkpoint, and every stream with a new event from its first event on. It does not look at other events again.

Examples:
  ctx verify 3fa9          verify a run
  ctx verify answer.md     verify a file by its sidecar
  ctx verify --registry    verify the whole registry
  ctx verify --registry -o monday.note                          and keep its newest checkpoint
  ctx verify --registry --since monday.note -o tuesday.note     verify what is new
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.output import CommandOutput, clean, human_size, quantity
from contextplane.cli.render.execution import ANSWER_COLOR, STATUS_OF, remedy
from contextplane.cli.terminal import Bar

if TYPE_CHECKING:
    from contextplane.app.execution.verify import ArtifactVerdict, PackVerdict, VerificationProblem
    from contextplane.app.platform import Platform
    from contextplane.model.execution.manifest import Manifest
    from contextplane.model.ids import Digest, PackRef

__all__ = ["add_arguments", "run"]

_SHORT = 12
_DIGITS = 15


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "what",
        metavar="REF|FILE",
        nargs="?",
        help="an execution or handoff pack, a published version, or an output file",
    )
    parser.add_argument("--file", action="store_true", help="treat the argument as a file")
    registry = parser.add_argument_group("registry")
    registry.add_argument("--registry", action="store_true", help="verify the whole registry")
    registry.add_argument("--sign", action="store_true", help="then sign a fresh checkpoint, if nothing is wrong")
    registry.add_argument("--key", metavar="NAME|FILE", help="the key that signs, with --sign")
    registry.add_argument(
        "--passphrase-fd", metavar="N", type=_number, help="read its passphrase from this file descriptor"
    )
    registry.add_argument("--inclusion", metavar="REF", help="only write a proof that id@X.Y.Z was published")
    registry.add_argument(
        "--consistency",
        metavar="SIZE",
        type=_number,
        help="only write a proof that the first SIZE entries are unchanged",
    )
    registry.add_argument("--since", metavar="FILE", help="verify only what came since the checkpoint in this file")
    registry.add_argument(
        "-o", "--output", metavar="FILE", help="the file for the proof, or else for the newest checkpoint"
    )


def _number(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= _DIGITS:
        return int(text)
    raise ArgumentTypeError(f"not a number: {text[:20]!r}")


def _check(args: Namespace) -> None:
    """Refuse arguments that belong to another action."""
    from contextplane.cli.parser import Usage

    hint = "see 'ctx verify --help'"
    proof = args.inclusion is not None or args.consistency is not None
    for name in ("sign", "key", "passphrase_fd", "inclusion", "consistency", "since", "output"):
        if getattr(args, name) not in {None, False} and not args.registry:
            raise Usage(f"argument --{name.replace('_', '-')}: only with --registry", hint=hint)
    if args.registry and (args.what is not None or args.file):
        raise Usage("argument --registry: takes no REF and no FILE", hint=hint)
    if not args.registry and args.what is None:
        raise Usage("the following arguments are required: REF|FILE", hint=hint)
    if (args.sign and proof) or (args.inclusion is not None and args.consistency is not None):
        raise Usage("one of --sign, --inclusion and --consistency", hint=hint)
    if args.since is not None and (args.sign or proof):
        raise Usage("argument --since: not with --sign, --inclusion or --consistency", hint=hint)
    if proof and args.output is None:
        raise Usage("a proof is written to a file: --inclusion or --consistency, and -o FILE", hint=hint)


def run(args: Namespace, output: CommandOutput) -> int:
    _check(args)
    if args.registry:
        return _verify_registry(args, output)
    from contextplane.app.references import FileTarget, HandoffTarget, VersionTarget, resolve
    from contextplane.cli.store import open_store
    from contextplane.model.ids import PackRef

    target = resolve(args.what, files=True, file=args.file)
    if isinstance(target, HandoffTarget):
        from contextplane.cli.handoff.audit import verify

        return verify(target.ref, output)
    if isinstance(target, VersionTarget):
        return _verify_version(PackRef.parse(target.name), args, output)
    with open_store(output) as platform:
        if isinstance(target, FileTarget):
            return _verify_file(target.path, platform, output)
        return _verify_pack(args.what, platform, output)


def _verify_version(ref: "PackRef", args: Namespace, output: CommandOutput) -> int:
    from contextplane.cli.keys.session import local_principal
    from contextplane.cli.registry.audit import verify_version
    from contextplane.cli.store import store_session

    with store_session(output, local_principal(args), following=False) as session:
        return verify_version(session.registry(), ref, output)


def _verify_registry(args: Namespace, output: CommandOutput) -> int:
    from contextplane.cli.keys.session import local_principal
    from contextplane.cli.registry.audit import verify_registry
    from contextplane.cli.store import store_session

    with store_session(output, local_principal(args), following=False) as session:
        return verify_registry(session.registry(), args, output)


def _verify_pack(text: str, platform: "Platform", output: CommandOutput) -> int:
    from contextplane.app.execution.verify import verify_run

    bar = Bar(output)
    verdict = verify_run(platform, text, bar.step)
    bar.clear()
    _print_pack(verdict, output)
    output.answer(
        {
            "answer": verdict.answer,
            "pack": f"ctx://{verdict.digest.hex}",
            "created": verdict.manifest.created if verdict.manifest else None,
            "tools": _tools(verdict.manifest),
            "objects": verdict.objects,
            "size": verdict.size,
            "parents": [f"ctx://{parent.hex}" for parent in verdict.parents],
            "troubles": verdict.problems,
        }
    )
    return STATUS_OF[verdict.answer]


def _print_pack(verdict: "PackVerdict", output: CommandOutput) -> None:
    from contextplane.cli.output import format_created

    output.line(f"Pack:      {verdict.digest.hex[:_SHORT]}")
    output.line(f"Hash:      {verdict.digest.hex}")
    if verdict.manifest is not None:
        output.line(f"Created:   {format_created(verdict.manifest.created)}")
    if tools := _tools(verdict.manifest):
        output.line(f"Tools:     [{clean(' '.join(tools))}]")
    if verdict.parents:
        output.line(f"Parents:   {' '.join(parent.hex[:_SHORT] for parent in verdict.parents)}")
    output.line(f"Checked:   {quantity(verdict.objects, 'object')}, {human_size(verdict.size)}")
    output.line(f"Integrity: {output.paint(ANSWER_COLOR[verdict.answer], verdict.answer)}")
    for problem in verdict.problems:
        output.failure_line(f"  {problem.answer:<9} {clean(_problem_text(problem, verdict.digest))}")


def _problem_text(problem: "VerificationProblem", pack: "Digest") -> str:
    """Return what is wrong with a part of a pack. With --json there are whole digests, and the actual one."""
    import re

    from msgspec import UNSET

    from contextplane.app.damage import damage_sentence, short_ref

    if problem.damage is UNSET or problem.part is UNSET or problem.digest is UNSET:
        return re.sub(r"([0-9a-f]{12})[0-9a-f]{52}", r"\1", problem.what) + f"  {problem.why}"
    name = short_ref(pack, problem.part)
    if problem.part in {"manifest", "parent"}:
        name = f"{problem.part} ctx://{problem.digest.removeprefix('sha256:')[:_SHORT]}"
    return damage_sentence(name, problem.damage, problem.why)


def _verify_file(path: str, platform: "Platform", output: CommandOutput) -> int:
    from contextplane.app.execution.verify import verify_artifact

    verdict = verify_artifact(platform, path)
    _print_file(path, verdict, output)
    sidecar, pack, expected = verdict.sidecar, verdict.pack, verdict.expected
    output.answer(
        {
            "answer": verdict.answer,
            "why": verdict.why,
            "hint": remedy(verdict),
            "artifact": path,
            "pack": f"ctx://{pack.digest.hex}" if pack else None,
            "created": pack.manifest.created if pack else None,
            "output": expected.name if expected else None,
            "expected": str(expected.digest) if expected else None,
            "actual": str(verdict.actual) if verdict.actual else None,
            "sidecar": sidecar,
        }
    )
    return STATUS_OF[verdict.answer]


def _print_file(path: str, verdict: "ArtifactVerdict", output: CommandOutput) -> None:
    from contextplane.cli.output import format_created

    sidecar, pack = verdict.sidecar, verdict.pack
    output.line(f"Artifact:  {clean(path)}")
    if pack is not None:
        output.line(f"Pack:      {pack.digest.hex[:_SHORT]}")
        output.line(f"Created:   {format_created(pack.manifest.created)}")
    if sidecar is not None and sidecar.tools:
        output.line(f"Tools:     [{clean(' '.join(sidecar.tools))}]")
    reason = clean(_reason(verdict))
    output.line(f"Integrity: {output.paint(ANSWER_COLOR[verdict.answer], verdict.answer)}{reason}")
    if hint := remedy(verdict):
        output.line(f"Solution:  {clean(hint)}")
    if output.quiet and verdict.answer != "verified":
        output.failure_line(f"  {verdict.answer:<9} {clean(path)}{reason}")
    if sidecar is not None and sidecar.confidence:
        output.line(f"Confidence: {clean(sidecar.confidence)}")
    if sidecar is not None and sidecar.notes:
        output.line(f"Notes:     {clean(sidecar.notes)}")
    if pack is not None:
        output.line()
        output.line(f"To inspect: ctx show {pack.digest.hex[:_SHORT]}")
        output.line(f"To replay:  ctx replay {pack.digest.hex[:_SHORT]}")


def _reason(verdict: "ArtifactVerdict") -> str:
    if verdict.answer == "modified" and verdict.expected is not None and verdict.actual is not None:
        return f" (expected {verdict.expected.digest.hex[:_SHORT]}, actual {verdict.actual.hex[:_SHORT]})"
    return f" ({verdict.why})" if verdict.why else ""


def _tools(manifest: "Manifest | None") -> list[str]:
    return sorted({step.tool for step in manifest.steps if step.tool}) if manifest else []
