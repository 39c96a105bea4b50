"""Write packs, with everything that they refer to, to one file.

REF is ctx://<hash>, the first digits of a hash, or a handoff pack: pk_<id>@3 with its revisions up to that one, or
pk_<id> with all. FILE is a plain tar file; 'ctx import' reads it. It holds the manifests, their contents, and the packs
that they were forked from. Parents that are not in this store are named.

REF can also be one version of the registry, id@X.Y.Z, or id@NAME for an alias or an environment. FILE then holds the
version with its signatures, reviews, pins and the proofs that they are in the log. The store that imports it verifies
all of them, and can run the version in the same environments. --environment names environments that do not pin it yet.
--since is for a store whose trust root is a checkpoint: it adds the proof that the log continues it. A version that was
imported from another store is written as it came, after verifying it again.

The same packs give the same bytes. A pack with missing or damaged parts is refused, and no file is left. An existing
file is never replaced: unless it has the same bytes, it is a conflict.

Examples:
  ctx export 3fa9 81c2 -o runs.tar            write two runs
  ctx export pk_abcd2345 -o handoff.tar       write a handoff pack
  ctx export support@1.0.0 -o support.json    write a published version with its proofs
"""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean, human_size, quantity

if TYPE_CHECKING:
    from contextplane.app.execution.archive import ArchiveExportResult
    from contextplane.app.references import Target

__all__ = ["add_arguments", "export", "run"]

_LISTED = 20
_DIGITS = 15


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("refs", metavar="REF", nargs="+", help="a pack to write")
    parser.add_argument(
        "-o", "--output", metavar="FILE", required=True, help="the file to write, - for standard output"
    )
    versions = parser.add_argument_group("for a version of the registry")
    versions.add_argument(
        "--environment",
        metavar="ENV",
        action="append",
        default=[],
        help="an environment to include (default: all that pin it); may be repeated",
    )
    versions.add_argument(
        "--since", metavar="SIZE", type=_size, help="prove that the log continues its first SIZE entries"
    )


def _size(text: str) -> int:
    if text.isascii() and text.isdecimal() and len(text) <= _DIGITS:
        return int(text)
    raise ArgumentTypeError(f"not a number of entries: {text[:20]!r}")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.references import HandoffTarget, resolve

    targets = [(ref, resolve(ref)) for ref in args.refs]
    version = _single_version(targets, args)
    if version is not None:
        from contextplane.cli.registry.mirror import export_version

        _require_writable(args.output, output)
        return export_version(version, args, output)
    handoffs = [ref for ref, target in targets if isinstance(target, HandoffTarget)]
    packs = [ref for ref, target in targets if not isinstance(target, HandoffTarget)]
    return export(packs, output, handoffs=handoffs, path=args.output)


def export(packs: list[str], output: CommandOutput, *, handoffs: list[str], path: str) -> int:
    """Write execution packs, and handoff packs, which are named by their ids or their names."""
    _require_writable(path, output)
    result = _export_handoffs(packs, handoffs, path, output) if handoffs else _export_runs(packs, path, output)
    _print_result(result, path, output)
    return OK


def _single_version(targets: "list[tuple[str, Target]]", args: Namespace) -> str | None:
    """Return the version of the registry to export; None if packs are. A version is exported alone."""
    from contextplane.app.references import VersionTarget
    from contextplane.cli.parser import Usage

    versions = [target.name for _, target in targets if isinstance(target, VersionTarget)]
    if versions and len(targets) > 1:
        raise Usage("a version is exported by itself", at=versions[0][:200], hint="write one file for each")
    if not versions and (args.environment or args.since is not None):
        raise Usage("--environment and --since are for a version", hint="ctx export id@X.Y.Z -o FILE")
    return versions[0] if versions else None


def _require_writable(path: str, output: CommandOutput) -> None:
    if path == "-":
        _require_free(output)
    _require_file(path)


def _export_runs(refs: list[str], path: str, output: CommandOutput) -> "ArchiveExportResult":
    from contextplane.app.execution.archive import export_packs
    from contextplane.app.references import find_run
    from contextplane.cli.store import open_store, progress_bar

    with open_store(output) as platform, progress_bar(output) as bar:
        return export_packs(platform, [find_run(ref, platform) for ref in refs], path, progress=bar)


def _export_handoffs(refs: list[str], handoffs: list[str], path: str, output: CommandOutput) -> "ArchiveExportResult":
    from contextplane.app.execution.archive import export_packs
    from contextplane.app.handoff.revisions import select_revision
    from contextplane.app.platform import ensure_index_current
    from contextplane.app.references import find_run
    from contextplane.cli.handoff.packs import handoff_session
    from contextplane.cli.store import progress_bar
    from contextplane.model.reference import HandoffRef

    with handoff_session(output) as session:
        selected = [select_revision(session, handoff).pack for handoff in handoffs]
        platform = session.require_store(handoffs[0])
        if refs:
            ensure_index_current(platform)
        packs = [find_run(ref, platform) for ref in refs]
        revisions = [HandoffRef(id=pack.handoff_id, revision=pack.revision) for pack in selected]
        with progress_bar(output) as bar:
            return export_packs(platform, packs, path, handoffs=revisions, progress=bar)


def _print_result(result: "ArchiveExportResult", path: str, output: CommandOutput) -> None:
    # If the archive is on standard output, lines for people go to the other one.
    print_line = output.note if path == "-" else output.line
    for parent in result.absent:
        print_line(f"parents not included  ctx://{parent.hex}  not in this store")
    packs = len(result.header.packs) + len(result.header.handoffs)
    totals = f"{quantity(packs, 'pack')}, {quantity(result.objects, 'object')}, {human_size(result.size)}"
    where = "standard output" if path == "-" else clean(path)
    print_line(f"wrote {totals} to {where}" if result.new else f"{where} already exists, with the same {totals}")
    for parent in result.header.parents[:_LISTED]:
        print_line(f"parents included  ctx://{parent.hex}")
    if len(result.header.parents) > _LISTED:
        print_line(f"parents included  {len(result.header.parents) - _LISTED:,} more")
    output.answer(
        {
            "file": path,
            "handoffs": [f"{handoff.id}@{handoff.last.revision}" for handoff in result.header.handoffs],
            "roots": [f"ctx://{pack.hex}" for pack in result.header.roots],
            "parents": [f"ctx://{pack.hex}" for pack in result.header.parents],
            "parents_not_included": [f"ctx://{pack.hex}" for pack in result.absent],
            "objects": result.objects,
            "size": result.size,
            "new": result.new,
        }
    )


def _require_file(path: str) -> None:
    """Refuse the path of a folder."""
    import os

    from contextplane.cli.parser import Usage

    if path.endswith(os.sep) or os.path.isdir(path):
        raise Usage(f"-o names a folder, not a file: {path[:200]!r}", hint="ctx export REF -o FOLDER/FILE")


def _require_free(output: CommandOutput) -> None:
    """Refuse to write the archive to standard output if the answer goes there, or if it is a terminal."""
    from contextplane.cli.parser import Usage

    if output.json:
        raise Usage(
            "the archive and the answer cannot both go to standard output", hint="ctx export REF -o FILE --json"
        )
    if output.out.isatty():
        raise Usage("standard output is a terminal", hint="ctx export REF -o FILE")
