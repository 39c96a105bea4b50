"""What `ctx export`, `import`, `push`, `pull`, `packs` and `show` share for versions of other stores."""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean, human_size
from contextplane.cli.registry.session import registry_session

if TYPE_CHECKING:
    from contextplane.app.registry.mirror import ImportedBundle, MirroredVersion
    from contextplane.app.transfer import TransferRequest

__all__ = [
    "add_transfer",
    "export_version",
    "import_version",
    "mirror_json",
    "mirror_line",
    "mirror_lines",
    "print_import",
    "transfer_request",
]

_SHOWN = 12


def add_transfer(parser: ArgumentParser) -> None:
    """Add the arguments of `ctx push` and `ctx pull`."""
    parser.add_argument("store", metavar="STORE_FOLDER", help="the folder of the other store")
    parser.add_argument("version", metavar="VERSION", help="id@X.Y.Z, or id@NAME")
    parser.add_argument(
        "--environment",
        metavar="ENV",
        action="append",
        default=[],
        help="an environment to include (default: all that pin it); may be repeated",
    )
    parser.add_argument(
        "--trust-root",
        metavar="KEY_ID|FILE",
        action="append",
        default=[],
        help="the trust root for the store that published it; it is remembered",
    )


def transfer_request(args: Namespace) -> "TransferRequest":
    from contextplane.app.transfer import TransferRequest

    return TransferRequest(
        folder=args.store,
        name=args.version,
        environments=tuple(args.environment),
        roots=tuple(args.trust_root),
    )


def export_version(name: str, args: Namespace, output: CommandOutput) -> int:
    """Write a published version with its proofs to a file."""
    from contextplane.app.transfer import export_to_file

    with registry_session(args, output) as session:
        ref = session.named_version(name)
        exported, new = export_to_file(session, ref, args.output, args.environment, since=args.since or 0)
    print_line = output.note if args.output == "-" else output.line
    where = "standard output" if args.output == "-" else clean(args.output)
    size = human_size(len(exported.data))
    print_line(f"wrote {ref}, {size}, to {where}" if new else f"{where} already exists, with the same {ref}, {size}")
    print_line(_serving_line(exported.environments, exported.pinned_in))
    print_line(f"its log has {exported.size} entries, of {clean(exported.origin)}")
    output.answer(
        {
            "file": args.output,
            "ref": str(ref),
            "origin": exported.origin,
            "environments": exported.environments,
            "pinned_in": exported.pinned_in,
            "entries": exported.size,
            "size": len(exported.data),
            "new": new,
        }
    )
    return OK


def import_version(args: Namespace, output: CommandOutput, taken: bytes) -> int:
    """Import a file that `export_version` wrote. `taken`: what was read of standard input before."""
    from contextplane.app.settings import from_environment
    from contextplane.app.transfer import import_from_file

    with registry_session(args, output) as session:
        result = import_from_file(session, args.file, from_environment(), args.trust_root, taken)
    return print_import(result, output)


def print_import(result: "ImportedBundle", output: CommandOutput) -> int:
    """Print what was imported."""
    state = "mirrored" if result.new else "already mirrored"
    where = f"from {clean(result.origin)}, as it was at {result.time}"
    output.entry(str(result.ref), f"{state}  {result.ref}  {where}")
    output.line(_serving_line(result.environments, result.pinned_in))
    for mark in result.marks:
        output.line(f"note: {mark}")
    output.answer(
        {
            "ref": str(result.ref),
            "origin": result.origin,
            "digest": str(result.digest),
            "bundle": str(result.bundle),
            "environments": result.environments,
            "pinned_in": result.pinned_in,
            "marks": result.marks,
            "entries": result.size,
            "signed_at": str(result.time),
            "new": result.new,
        }
    )
    return OK


def _serving_line(environments: tuple[str, ...], pinned_in: tuple[str, ...]) -> str:
    if pinned_in:
        return f"new runs get it in {', '.join(map(clean, pinned_in))}"
    where = f"{', '.join(map(clean, environments))} " if environments else "no environment "
    return f"new runs do not get it: {where}pins it"


def mirror_line(mirror: "MirroredVersion", widest: int, output: CommandOutput) -> str:
    """Return the line of a mirrored version in a list."""
    release = mirror.release
    if release is None:
        return f"{mirror.ref!s:<{widest}}  " + output.paint("red", f"[{clean(mirror.problem)}]")
    resolved = release.admitted.resolved
    columns = [f"{mirror.ref!s:<{widest}}", f"{'mirrored':<10}", resolved.digest.hex[:_SHOWN], str(mirror.time)[:10]]
    if release.pinned_in:
        columns.append(f"pinned in {', '.join(map(clean, release.pinned_in))}")
    columns += [output.paint("red", mark) for mark in resolved.marks]
    return "  ".join([*columns, f"mirrored from {clean(mirror.origin)}"])


def mirror_lines(mirror: "MirroredVersion", output: CommandOutput) -> Iterator[str]:
    """Yield the details of a mirrored version."""
    release = mirror.release
    if release is None:
        return
    resolved = release.admitted.resolved
    kind = resolved.kind.replace("_", " ")
    yield f"{output.paint('bold', str(mirror.ref))}  {kind} of {clean(release.published.issuer)}"
    yield f"mirrored    from {clean(mirror.origin)}, as it was at {mirror.time}"
    yield f"digest      {resolved.digest}"
    for mark in resolved.marks:
        yield f"note        {output.paint('red', mark)}"
    yield f"signed by   {', '.join(resolved.signed_by)}"
    for catalog in release.published.catalogs:
        yield f"catalog     {catalog.id}@{catalog.version}  {catalog.digest}"
    yield f"pinned in   {', '.join(map(clean, release.pinned_in)) or 'no environment'}"
    yield f"exported    for {', '.join(map(clean, mirror.environments)) or 'no environment'}"


def mirror_json(mirror: "MirroredVersion") -> dict[str, object]:
    """Return a mirrored version for `--json`."""
    release = mirror.release
    resolved = release.admitted.resolved if release is not None else None
    return {
        "ref": str(mirror.ref),
        "mirrored_from": mirror.origin,
        "signed_at": None if mirror.time is None else str(mirror.time),
        "kind": None if resolved is None else resolved.kind,
        "digest": None if resolved is None else str(resolved.digest),
        "issuer": "" if release is None else release.published.issuer,
        "marks": () if resolved is None else resolved.marks,
        "signed_by": () if resolved is None else resolved.signed_by,
        "environments": mirror.environments,
        "pinned_in": () if release is None else release.pinned_in,
        "problem": mirror.problem or None,
    }
