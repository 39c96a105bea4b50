"""The arguments of verbs that compile: the pack, the request, and overrides of its values (knobs)."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.output import CommandOutput

if TYPE_CHECKING:
    from collections.abc import Callable

    from contextplane.app.compile.context import Override, PackSource
    from contextplane.app.packs.files import NamedFile
    from contextplane.model.ids import PackRef
    from contextplane.model.json.canonical import Json

__all__ = ["add_pack_arguments", "add_request_arguments", "load_source", "parse_overrides", "read_request"]

_MODES = ("read_only", "local_write", "network", "delegated", "destructive")
_BUCKETS = ("business", "policy", "tool", "evidence", "memory", "session")


def add_pack_arguments(parser: ArgumentParser, *, default: str = "") -> None:
    """Add the pack; `default`: the one that is compiled if none is named."""
    help_text = "a published version (id@X.Y.Z), or the author's file"
    if default:
        parser.add_argument("pack", metavar="REF|FILE", nargs="?", help=f"{help_text} (default: {default})")
    else:
        parser.add_argument("pack", metavar="REF|FILE", help=help_text)
    parser.add_argument("--environment", metavar="ENV", help="the environment that pins it; with a REF only")
    parser.add_argument(
        "--overlay", metavar="FILE", action="append", default=[], help="apply this overlay first; with a FILE only"
    )
    parser.add_argument(
        "--catalog", metavar="CATALOG", action="append", default=[], help="use this decision catalog; with a FILE only"
    )


def add_request_arguments(parser: ArgumentParser) -> None:
    """Add the request, and the overrides of its values."""
    parser.add_argument(
        "--request", metavar="FILE", required=True, help="the request, with run context and environment"
    )
    knobs = parser.add_argument_group("overrides of the request")
    knobs.add_argument(
        "--set",
        metavar="PATH=VALUE",
        action="append",
        default=[],
        help="change a fact, or a place in the document; the value is JSON",
    )
    knobs.add_argument("--role", metavar="ROLE", help="the role of the user")
    knobs.add_argument("--safety-mode", metavar="MODE", choices=_MODES, help=f"the ceiling: {', '.join(_MODES)}")
    knobs.add_argument(
        "--bucket", metavar="NAME=TOKENS", action="append", default=[], help="the tokens of a bucket: evidence=100"
    )


def parse_overrides(args: Namespace) -> tuple["Override", ...]:
    """Return all overrides, in the order in which they are applied."""
    from contextplane.app.compile.context import Override, parse_override

    overrides = [parse_override(text) for text in args.set]
    if args.role is not None:
        overrides.append(Override(name="user.role", at="/run_context/user/role", value=args.role))
    if args.safety_mode is not None:
        overrides.append(Override(name="safety_mode", at="/run_context/safety_mode", value=args.safety_mode))
    return (*overrides, *map(_bucket_override, args.bucket))


def _bucket_override(text: str) -> "Override":
    from contextplane.app.compile.context import Override, OverrideInvalid

    name, _, tokens = text.partition("=")
    if name not in _BUCKETS or not (tokens.isascii() and tokens.isdecimal()) or len(tokens) > len("1000000000"):
        hint = f"such as evidence=100; the buckets are {', '.join(_BUCKETS)}"
        raise OverrideInvalid("write NAME=TOKENS", at=f"--bucket {text[:80]}", hint=hint)
    at = f"/run_context/run_budget/bucket_tokens/{name}"
    return Override(name=f"run.budget.bucket_tokens.{name}", at=at, value=int(tokens))


def read_request(args: Namespace) -> "NamedFile":
    """Read the file of the request."""
    from contextplane.app.packs.files import read_case_file
    from contextplane.cli.parser import Usage

    if args.request == "-" and args.pack == "-":
        raise Usage("pack and request cannot both come from standard input", hint="name a file for one of them")
    return read_case_file(args.request)


def load_source(
    args: Namespace, output: CommandOutput, case: "NamedFile", request: "Callable[[PackRef], Json] | None" = None
) -> "PackSource":
    """Load the pack: a published version as an environment pins it, or a file that passes every gate.

    `request` makes the request for a published version; by default it is the one in the file.
    """
    from contextplane.app.compile.sources import source_from_file
    from contextplane.app.references import FileTarget, resolve_document
    from contextplane.cli.parser import Usage

    if isinstance(resolve_document(args.pack), FileTarget):
        if args.environment is not None:
            raise Usage(
                "--environment is for a published version",
                hint="write id@X.Y.Z for one, or leave it out: a FILE is compiled as it is",
            )
        from contextplane.cli.pack_args import read_catalogs

        return source_from_file(args.pack, tuple(args.overlay), read_catalogs(args, output))
    if args.environment is None or args.overlay or args.catalog:
        raise Usage(
            "a published version needs --environment, and takes neither --overlay nor --catalog",
            hint="name the environment that pins it: its pins bring the overlays, and the request names the catalogs",
        )
    from contextplane.app.compile.sources import read_placed_case, source_from_registry
    from contextplane.app.settings import from_environment
    from contextplane.cli.registry.session import registry_session
    from contextplane.model.ids import PackRef

    ref = PackRef.parse(args.pack)
    compile_case = read_placed_case(case, request(ref) if request is not None else case.file.value)
    with registry_session(args, output) as session:
        max_age = from_environment().registry_max_age
        return source_from_registry(session, ref, compile_case, args.environment, max_age=max_age)
