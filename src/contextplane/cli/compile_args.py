"""The arguments of verbs that compile: the pack, the request, and overrides of its values (knobs)."""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.output import CommandOutput, clean
from contextplane.errors import ContextPlaneError

if TYPE_CHECKING:
    from collections.abc import Callable

    from contextplane.app.compile.context import CompletedCase, Override, PackSource
    from contextplane.app.packs.files import NamedFile
    from contextplane.model.ids import PackRef
    from contextplane.model.json.canonical import Json

__all__ = [
    "add_pack_arguments",
    "add_request_arguments",
    "assumed_json",
    "load_request",
    "load_source",
    "parse_overrides",
    "read_request",
]

_MODES = ("read_only", "local_write", "network", "delegated", "destructive")
_AUTHOR_EXTENSIONS = (".json", ".yaml", ".yml")
_BUCKETS = ("business", "policy", "tool", "evidence", "memory", "session")


def add_pack_arguments(parser: ArgumentParser, *, default: str = "") -> None:
    """Add the pack; `default`: the one that is compiled if none is named."""
    help_text = "the author's file, a published version (id@X.Y.Z), or the id of a pack with --environment"
    if default:
        parser.add_argument("pack", metavar="PACK", nargs="?", help=f"{help_text} (default: {default})")
    else:
        parser.add_argument("pack", metavar="PACK", help=help_text)
    parser.add_argument(
        "--environment", metavar="ENV", help="the name of the environment that pins it, not with a file"
    )
    parser.add_argument(
        "--overlay", metavar="FILE", action="append", default=[], help="apply this overlay first, to a file only"
    )
    parser.add_argument(
        "--catalog", metavar="CATALOG", action="append", default=[], help="use this decision catalog, with a file only"
    )


def add_request_arguments(parser: ArgumentParser) -> None:
    """Add the request, and the overrides of its values."""
    parser.add_argument(
        "--request",
        metavar="FILE",
        required=True,
        help="the request: an invokeAgent envelope, or one with its run context; - reads standard input",
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


def load_request(args: Namespace, output: CommandOutput) -> "tuple[PackSource, CompletedCase]":
    """Load pack and request. A bare envelope is completed; standard error lists what was assumed."""
    from contextplane.app.compile.context import complete_case

    overrides = parse_overrides(args)
    source, file = _load(args, output, read_request(args), overrides)
    case = complete_case(file, source.pack, overrides)
    if case.assumptions:
        output.note(f"{clean(args.request)} is an invokeAgent envelope, without a run context. Assumed:")
    for assumption in case.assumptions:
        output.note(f"- {clean(assumption.words)}")
    return source, case


def assumed_json(case: "CompletedCase") -> dict[str, object]:
    """Return what was assumed, as members of a JSON answer; none for a request that is complete."""
    return {"assumed": case.assumptions} if case.assumptions else {}


def load_source(
    args: Namespace, output: CommandOutput, case: "NamedFile", request: "Callable[[PackRef], Json] | None" = None
) -> "PackSource":
    """Load the pack: a published version as an environment pins it, or a file that passes every gate.

    `request` makes the request for a published version; by default it is the one in the file.
    """
    return _load(args, output, case, (), request)[0]


def _load(
    args: Namespace,
    output: CommandOutput,
    case: "NamedFile",
    overrides: "tuple[Override, ...]",
    request: "Callable[[PackRef], Json] | None" = None,
) -> "tuple[PackSource, NamedFile]":
    from contextplane.app.references import FileTarget, resolve_document
    from contextplane.cli.parser import Usage
    from contextplane.model.reference import names_file

    environment = args.environment
    if environment is not None and ("/" in environment or environment.endswith(_AUTHOR_EXTENSIONS)):
        raise Usage(
            f"--environment takes the name of an environment here, and {environment[:80]} is a file",
            hint="write the name, such as prod; 'ctx lint' and 'ctx check' take a file that describes it",
        )
    is_pack_id = environment is not None and names_file(args.pack) and _may_be_id(args.pack)
    if isinstance(resolve_document(args.pack), FileTarget) and not is_pack_id:
        if environment is not None:
            raise Usage(
                "--environment is for a published version",
                hint="write id or id@X.Y.Z for one, or leave it out: a FILE is compiled as it is",
            )
        from contextplane.app.compile.sources import source_from_file
        from contextplane.cli.pack_args import read_catalogs

        try:
            return source_from_file(args.pack, tuple(args.overlay), read_catalogs(args, output)), case
        except ContextPlaneError as error:
            if error.code == "document_unreadable" and error.at == args.pack and _may_be_id(args.pack):
                error.hint = "check the path; the id of a published pack needs --environment ENV"
            raise
    if environment is None or args.overlay or args.catalog:
        raise Usage(
            "a published version needs --environment, and takes neither --overlay nor --catalog",
            hint="name the environment that pins it: its pins bring the overlays, and the request names the catalogs",
        )
    return _load_published(args, output, case, overrides, request)


def _may_be_id(text: str) -> bool:
    """Whether a text may be the id of a pack: no path, and no name of an author's file."""
    return "/" not in text and text != "-" and not text.endswith(_AUTHOR_EXTENSIONS)


def _load_published(
    args: Namespace,
    output: CommandOutput,
    case: "NamedFile",
    overrides: "tuple[Override, ...]",
    request: "Callable[[PackRef], Json] | None",
) -> "tuple[PackSource, NamedFile]":
    from contextplane.app.compile.context import complete_case, pin_request
    from contextplane.app.compile.sources import (
        published_pack,
        read_placed_case,
        refuse_other_version,
        source_from_registry,
    )
    from contextplane.app.settings import from_environment
    from contextplane.cli.registry.session import registry_session
    from contextplane.model.document_kind import is_envelope
    from contextplane.model.ids import PackRef

    with registry_session(args, output) as session:
        chosen_by = "the command names"
        if "@" in args.pack:
            ref = PackRef.parse(args.pack)
        else:
            from contextplane.app.registry.mirror import find_pinned_version

            ref = find_pinned_version(session, args.pack, args.environment)
            chosen_by = f"{clean(args.environment)} pins"
            output.note(f"{chosen_by} {ref}")
            case = pin_request(case, ref)
        if request is not None:
            compile_case = read_placed_case(case, request(ref))
        else:
            whole = (
                complete_case(case, published_pack(session, ref), overrides).file
                if is_envelope(case.file.value)
                else case
            )
            compile_case = read_placed_case(whole, whole.file.value)
            refuse_other_version(whole, ref, compile_case, chosen_by)
        max_age = from_environment().registry_max_age
        return source_from_registry(session, ref, compile_case, args.environment, max_age=max_age), case
