"""`ctx diff OLD NEW`: two context packs, by layer, with the least version class of the change."""

from argparse import Namespace

from contextplane.app.packs.diff import compare_pack_files
from contextplane.app.packs.files import read_pack_file
from contextplane.app.registry.view import read_version
from contextplane.authoring.source_file import NamedFile
from contextplane.authoring.version_class import Comparison
from contextplane.cli.exit import DRIFT, OK
from contextplane.cli.output import CommandOutput, clean, quantity
from contextplane.cli.registry.act import registry_session
from contextplane.cli.render.packs import comparison_json, print_comparison
from contextplane.model.reference import names_file

__all__ = ["diff"]


def diff(args: Namespace, output: CommandOutput) -> int:
    """Each side is a file or a version of the registry; two files are compared without a store."""
    old, new = _packs((args.a, args.b), args, output)
    comparison = compare_pack_files(old, new)
    _tell(comparison, old, new, output)
    output.answer({"file_a": args.a, "file_b": args.b, **comparison_json(comparison)})
    return DRIFT if args.exit_code and not comparison.same else OK


def _packs(named: tuple[str, str], args: Namespace, output: CommandOutput) -> list[NamedFile]:
    if all(map(names_file, named)):
        return [read_pack_file(name) for name in named]
    with registry_session(args, output) as session:
        return [read_pack_file(name) if names_file(name) else read_version(session, name) for name in named]


def _called(pack: NamedFile, ref: str) -> str:
    """What a pack calls itself, and where it lies unless that says the same."""
    return ref if pack.path == ref else f"{ref} ({clean(pack.path)})"


def _tell(comparison: Comparison, old: NamedFile, new: NamedFile, output: CommandOutput) -> None:
    if comparison.same:
        output.line(f"No differences found. Both are {comparison.new}, in the same canonical form.")
        return
    output.line(f"Comparing {_called(old, str(comparison.old))} vs {_called(new, str(comparison.new))}")
    output.line()
    if not comparison.bump.reasons:
        output.line("Only the order of parts differs.")
    print_comparison(comparison, output, where=new.where)
    output.line()
    output.line(f"{quantity(len(comparison.bump.reasons), 'change')}. Least version class: {comparison.bump.least}")
    if comparison.refusal:
        # Nothing was refused here: the comparison was asked for, and it was made.
        output.line(f"{output.paint('yellow', 'Not ready to publish')}: {clean(comparison.refusal)}")
