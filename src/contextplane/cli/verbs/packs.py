"""List context packs, overlays and decision catalogs: every published version and where it stands.

ID lists the versions of that one. --drafts lists instead what is on its way and not published: which bytes,
how far they are, and whose approval is missing.
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.output import CommandOutput, clean
from contextplane.cli.registry.act import registry_session

if TYPE_CHECKING:
    from contextplane.registry.artifact_state import ArtifactState
    from contextplane.registry.version_view import VersionSummary

__all__ = ["add_arguments", "run"]

_SHOWN = 12


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", default="", help="only versions of this")
    parser.add_argument("--drafts", action="store_true", help="what is on its way and not published")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.view import list_drafts, list_versions

    with registry_session(args, output) as session:
        if args.drafts:
            states = [draft for draft in list_drafts(session) if args.id in {"", draft.name.pack_id}]
            return _drafts(states, output)
        found = list_versions(session, args.id)
    widest = max((len(str(one.ref)) for one in found), default=0)
    for one in found:
        output.entry(str(one.ref), _line(one, widest, output))
    if not found:
        of = f" of {clean(args.id)}" if args.id else ""
        output.line(f"No published versions{of}. 'ctx packs --drafts' lists what is on its way.")
    output.answer({"versions": [_told(one) for one in found]})
    return OK


def _line(one: "VersionSummary", widest: int, output: CommandOutput) -> str:
    from contextplane.cli.registry.render import STAGE_COLOR

    if one.problem or one.stage is None or one.digest is None:
        return f"{one.ref!s:<{widest}}  " + output.paint("red", f"[{clean(one.problem)}]")
    stage = output.paint(STAGE_COLOR[one.stage], f"{one.stage:<10}")
    told = [f"{one.ref!s:<{widest}}", stage, one.digest.hex[:_SHOWN], one.published_at[:10]]
    if one.pinned_in:
        told.append(f"pinned in {', '.join(map(clean, one.pinned_in))}")
    if one.doubtful_in:
        where = ", ".join(map(clean, one.doubtful_in))
        told.append(output.paint("red", f"must be pinned anew in {where}: its key is revoked"))
    if one.aliases:
        told.append(f"alias {', '.join(map(clean, one.aliases))}")
    if one.open_refreshes and one.stage == "published":  # what is withdrawn is not newly pinned anyway
        told.append(output.paint("yellow", "must be refreshed"))
    return "  ".join(told)


def _told(one: "VersionSummary") -> dict[str, object]:
    return {
        "ref": str(one.ref),
        "kind": one.kind,
        "stage": one.stage,
        "digest": str(one.digest) if one.digest else None,
        "issuer": one.issuer,
        "published_at": one.published_at,
        "pinned_in": one.pinned_in,
        "doubtful_in": one.doubtful_in,
        "aliases": one.aliases,
        "open_refreshes": one.open_refreshes,
        "problem": one.problem or None,
    }


def _drafts(states: "list[ArtifactState]", output: CommandOutput) -> int:
    from contextplane.cli.registry.render import STAGE_COLOR

    widest = max((len(str(artifact_state.name)) for artifact_state in states), default=0)
    for state in states:
        stage = output.paint(STAGE_COLOR[state.stage], f"{state.stage:<8}")
        line = f"{state.name!s:<{widest}}  {stage}  {state.digest}  {_waiting(state, output)}"
        output.entry(str(state.digest), line.rstrip())
    if not states:
        output.line("No drafts. 'ctx lint FILE --record' makes one known.")
    output.answer(
        {
            "drafts": [
                {
                    "ref": str(artifact_state.name),
                    "digest": str(artifact_state.digest),
                    "kind": artifact_state.kind,
                    "stage": artifact_state.stage,
                    "author": artifact_state.author,
                    "missing": artifact_state.missing,
                    "rejected_by": [
                        {"role": r.role, "key_id": r.key_id, "reason": r.reason} for r in artifact_state.rejected
                    ],
                }
                for artifact_state in states
            ]
        }
    )
    return OK


def _waiting(artifact_state: "ArtifactState", output: CommandOutput) -> str:
    """What a draft waits for."""
    if artifact_state.rejected:
        told = "; ".join(f"rejected as {clean(r.role)}: {clean(r.reason)}" for r in artifact_state.rejected)
        return output.paint("red", told)
    if artifact_state.missing:
        return f"to be approved as {', '.join(artifact_state.missing)}"
    return {"draft": "did not pass its gates", "reviewed": "to be signed", "signed": "to be published"}.get(
        artifact_state.stage, ""
    )
