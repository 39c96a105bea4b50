"""`ctx handoff write` and `ctx handoff extend`: stores a document, and moves a deadline."""

from argparse import Namespace

from contextplane.app.handoff.contract import HandoffInvalid, read_document
from contextplane.app.handoff.revisions import extend_pack, handoff_ref
from contextplane.app.handoff.session import HandoffSession, WriteResult
from contextplane.app.packs.files import read_case_file
from contextplane.cli.exit import OK
from contextplane.cli.handoff.packs import handoff_session
from contextplane.cli.output import CommandOutput, clean
from contextplane.cli.parser import Usage
from contextplane.model.handoff import HandoffDocument
from contextplane.model.json.canonical import Json

__all__ = ["extend", "write_pack"]

_LISTED = 10


def write_pack(args: Namespace, output: CommandOutput) -> int:
    value = read_case_file(args.ref).file.value
    identity, revision = (None, None) if args.update is None else _target(args.update, value)
    with handoff_session(output) as session:
        document = _document(value, session, output)
        result = session.repository.write(
            document, identity=identity, expected_revision=revision, validate_only=args.dry_run
        )
    _print_result(result, output)
    return OK


def extend(args: Namespace, output: CommandOutput) -> int:
    """Extend the life of a pack, also of one that has expired."""
    ref = handoff_ref(args.ref.strip())
    if ref is not None and ref.revision is not None:
        raise Usage("a pack is extended as a whole", hint=f"ctx handoff extend {ref.id}")
    with handoff_session(output) as session:
        pack = extend_pack(session, args.ref, args.by).pack
    name = f"{pack.id}@{pack.revision}"
    output.entry(name, f"Extended: {name}, until {pack.expires_at}")
    output.answer({"id": pack.id, "revision": pack.revision, "expires_at": pack.expires_at})
    return OK


def _target(text: str, value: Json) -> tuple[str, int]:
    """Return the pack to update, and the revision that the document was made from.

    The revision is part of the reference, or of the document: 'ctx cat' prints it there.
    """
    ref = handoff_ref(text.strip())
    revision = ref.revision if ref is not None else None
    if revision is None and isinstance(value, dict) and type(value.get("revision")) is int:
        revision = int(str(value["revision"]))
    if revision is None:
        raise Usage(
            "argument --update: the revision that you edited is missing",
            hint="write pk_<id>@<revision>; 'ctx handoff show PACK' shows it",
        )
    return (ref.id.text if ref is not None else text), revision


def _document(value: Json, session: HandoffSession, output: CommandOutput) -> HandoffDocument:
    """Read the document. All its problems are listed before the refusal, up to a number."""
    try:
        return read_document(value, session.source_place())
    except HandoffInvalid as error:
        problems = error.details.get("problems")
        for problem in problems[:_LISTED] if isinstance(problems, list) and not output.json else ():
            output.failure_line(clean(f"{problem['path']}: {problem['message']}"))
        raise


def _print_result(result: WriteResult, output: CommandOutput) -> None:
    pack = result.pack
    name = f"{pack.id}@{pack.revision}"
    if result.stored:
        output.entry(name, f"Written: {name}, {pack.status}, until {pack.expires_at}")
    else:
        output.line(f"Valid, nothing was stored: {pack.status}, revision {pack.revision}")
    for moved in result.moved:
        path = f"{moved.now_path} " if moved.now_path else ""
        lines = f"{path}lines {moved.now.start}-{moved.now.end}"
        output.note(clean(f"moved: {moved.section_key}/{moved.ref_key}, now {lines}"))
    for ref in result.unanchored:
        output.warn(clean(f"not anchored: {ref.section_key}/{ref.ref_key}: {ref.reason}"))
    output.answer(
        {
            "id": pack.id if result.stored or pack.revision > 1 else None,
            "revision": pack.revision,
            "status": pack.status,
            "expires_at": pack.expires_at,
            "digest": str(result.digest) if result.stored else None,
            "stored": result.stored,
            "moved_refs": list(result.moved),
            "unanchored_refs": list(result.unanchored),
        }
    )
