"""Check a pack, or a file by its sidecar, against the store; or the whole registry.

A pack: its manifest, its entry, every blob that it refers to and every manifest in its line of parents
are hashed again. A file: its sidecar FILE.ctx.json names the pack it came from, and its bytes are compared
with those of the output that the sidecar names, or where it names none of the only one of the same base
name. A file that was renamed is unchecked, and so is one that lies where another output belongs.
A handoff pack, pk_<id> or one revision of it as pk_<id>@3: every kept revision is hashed again and must be
what its event says, and no event may be missing from its history.
A published version, id@X.Y.Z: its bytes, its signatures, the reviews before it, and their place in the log.
The answer is one of: verified (status 0), modified (11), unchecked (10: something could not be checked),
unknown (13: no sidecar, or its pack is not in the store).
--registry: every event of the registry, its log, both trees and every checkpoint, and that nothing was
rewritten, truncated, forked or rolled back since the highest checkpoint that was seen from here. --sign then
signs a fresh checkpoint. --inclusion and --consistency write a proof that others can check without a store.
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.output import Screen, clean, counted, human_size
from contextplane.cli.progress import Bar
from contextplane.cli.render.execution import ANSWER_COLOR, STATUS_OF, way_out

if TYPE_CHECKING:
    from contextplane.app.execution.verify import ArtifactVerdict
    from contextplane.app.platform import Platform
    from contextplane.audit.verify import PackVerdict, Trouble
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
        help="an execution or handoff pack, a published version, or a file that a run put out",
    )
    parser.add_argument("--file", action="store_true", help="it is a file, whatever it looks like")
    registry = parser.add_argument_group("the registry")
    registry.add_argument("--registry", action="store_true", help="verify all of the registry")
    registry.add_argument("--sign", action="store_true", help="and sign a fresh checkpoint, if nothing is wrong")
    registry.add_argument("--key", metavar="NAME|FILE", help="--sign: the key that signs")
    registry.add_argument("--passphrase-fd", metavar="N", type=_number, help="read its passphrase from there")
    registry.add_argument("--inclusion", metavar="REF", help="only prove that this version was published: id@X.Y.Z")
    registry.add_argument(
        "--consistency", metavar="SIZE", type=_number, help="only prove that its first SIZE entries are what they were"
    )
    registry.add_argument("-o", "--output", metavar="FILE", help="where to write a proof")


def _number(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= _DIGITS:
        return int(text)
    raise ArgumentTypeError(f"not a number: {text[:20]!r}")


def _check(args: Namespace) -> None:
    """Each takes what belongs to it, and nothing else."""
    from contextplane.cli.parser import Usage

    hint = "see 'ctx verify --help'"
    proof = args.inclusion is not None or args.consistency is not None
    for name in ("sign", "key", "passphrase_fd", "inclusion", "consistency", "output"):
        if getattr(args, name) not in {None, False} and not args.registry:
            raise Usage(f"argument --{name.replace('_', '-')}: only with --registry", hint=hint)
    if args.registry and (args.what is not None or args.file):
        raise Usage("argument --registry: takes no REF and no FILE", hint=hint)
    if not args.registry and args.what is None:
        raise Usage("the following arguments are required: REF|FILE", hint=hint)
    if (args.sign and proof) or (args.inclusion is not None and args.consistency is not None):
        raise Usage("one of --sign, --inclusion and --consistency", hint=hint)
    if proof != (args.output is not None):
        raise Usage("a proof is written to a file: --inclusion or --consistency, and -o FILE", hint=hint)


def run(args: Namespace, screen: Screen) -> int:
    _check(args)
    if args.registry:
        return _registry(args, screen)
    from contextplane.cli.open import opening
    from contextplane.cli.references import named_handoff, understood
    from contextplane.model.ids import PackRef
    from contextplane.model.reference import FilePath

    handoff = None if args.file else named_handoff(args.what)
    if handoff is not None:
        from contextplane.cli.handoff.compare import verify

        return verify(handoff, screen)
    named = None if args.file else understood(args.what, files=True).named
    if isinstance(named, PackRef):
        return _version(named, args, screen)
    with opening(screen) as platform:
        if args.file or isinstance(named, FilePath):
            return _file(args.what, platform, screen)
        return _pack(args.what, platform, screen)


def _version(ref: "PackRef", args: Namespace, screen: Screen) -> int:
    from contextplane.cli.keys.audit import verify_version
    from contextplane.cli.open import opening

    with opening(screen, following=False) as platform:
        return verify_version(platform, ref, args, screen)


def _registry(args: Namespace, screen: Screen) -> int:
    from contextplane.cli.keys.audit import verify_registry
    from contextplane.cli.open import opening

    with opening(screen, following=False) as platform:
        return verify_registry(platform, args, screen)


def _pack(text: str, platform: "Platform", screen: Screen) -> int:
    from contextplane.audit.verify import verify_pack
    from contextplane.cli.references import named_pack

    bar = Bar(screen)
    verdict = verify_pack(named_pack(text, platform), platform.entries, platform.objects, seen=bar.step)
    bar.clear()
    _tell_pack(verdict, screen)
    screen.answer(
        {
            "answer": verdict.answer,
            "pack": f"ctx://{verdict.digest.hex}",
            "created": verdict.manifest.created if verdict.manifest else None,
            "tools": _tools(verdict.manifest),
            "objects": verdict.objects,
            "size": verdict.size,
            "parents": [f"ctx://{parent.hex}" for parent in verdict.parents],
            "troubles": verdict.troubles,
        }
    )
    return STATUS_OF[verdict.answer]


def _tell_pack(verdict: "PackVerdict", screen: Screen) -> None:
    from contextplane.cli.output import told_time

    screen.say(f"Pack:      {verdict.digest.hex[:_SHORT]}")
    screen.say(f"Hash:      {verdict.digest.hex}")
    if verdict.manifest is not None:
        screen.say(f"Created:   {told_time(verdict.manifest.created)}")
    if tools := _tools(verdict.manifest):
        screen.say(f"Tools:     [{clean(' '.join(tools))}]")
    if verdict.parents:
        screen.say(f"Parents:   {' '.join(parent.hex[:_SHORT] for parent in verdict.parents)}")
    screen.say(f"Checked:   {counted(verdict.objects, 'object')}, {human_size(verdict.size)}")
    screen.say(f"Integrity: {screen.paint(ANSWER_COLOR[verdict.answer], verdict.answer)}")
    for trouble in verdict.troubles:
        screen.failure(f"  {trouble.answer:<9} {clean(_trouble(trouble, verdict.digest))}")


def _trouble(trouble: "Trouble", pack: "Digest") -> str:
    """What it is and what is wrong with it; --json has whole digests, and what was found instead."""
    import re

    from msgspec import UNSET

    from contextplane.store.damage import said, short

    if trouble.damage is UNSET or trouble.part is UNSET or trouble.digest is UNSET:
        return re.sub(r"([0-9a-f]{12})[0-9a-f]{52}", r"\1", trouble.what) + f"  {trouble.why}"
    name = short(pack, trouble.part)
    if trouble.part in {"manifest", "parent"}:
        name = f"{trouble.part} ctx://{trouble.digest.removeprefix('sha256:')[:_SHORT]}"
    return said(name, trouble.damage, trouble.why)


def _file(path: str, platform: "Platform", screen: Screen) -> int:
    from contextplane.app.execution.verify import verify_artifact

    verdict = verify_artifact(platform, path)
    _tell_file(path, verdict, screen)
    sidecar, pack, expected = verdict.sidecar, verdict.pack, verdict.expected
    screen.answer(
        {
            "answer": verdict.answer,
            "why": verdict.why,
            "hint": way_out(verdict),
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


def _tell_file(path: str, verdict: "ArtifactVerdict", screen: Screen) -> None:
    from contextplane.cli.output import told_time

    sidecar, pack = verdict.sidecar, verdict.pack
    screen.say(f"Artifact:  {clean(path)}")
    if pack is not None:
        screen.say(f"Pack:      {pack.digest.hex[:_SHORT]}")
        screen.say(f"Created:   {told_time(pack.manifest.created)}")
    if sidecar is not None and sidecar.tools:
        screen.say(f"Tools:     [{clean(' '.join(sidecar.tools))}]")
    reason = clean(_reason(verdict))
    screen.say(f"Integrity: {screen.paint(ANSWER_COLOR[verdict.answer], verdict.answer)}{reason}")
    if hint := way_out(verdict):
        screen.say(f"Way out:   {clean(hint)}")
    if screen.quiet and verdict.answer != "verified":
        screen.failure(f"  {verdict.answer:<9} {clean(path)}{reason}")
    if sidecar is not None and sidecar.confidence:
        screen.say(f"Confidence: {clean(sidecar.confidence)}")
    if sidecar is not None and sidecar.notes:
        screen.say(f"Notes:     {clean(sidecar.notes)}")
    if pack is not None:
        screen.say()
        screen.say(f"To inspect: ctx show {pack.digest.hex[:_SHORT]}")
        screen.say(f"To replay:  ctx replay {pack.digest.hex[:_SHORT]}")


def _reason(verdict: "ArtifactVerdict") -> str:
    if verdict.answer == "modified" and verdict.expected is not None and verdict.actual is not None:
        return f" (expected {verdict.expected.digest.hex[:_SHORT]}, actual {verdict.actual.hex[:_SHORT]})"
    return f" ({verdict.why})" if verdict.why else ""


def _tools(manifest: "Manifest | None") -> list[str]:
    return sorted({step.tool for step in manifest.steps if step.tool}) if manifest else []
