"""List context packs, overlays and decision catalogs: every published version and where it stands.

ID lists the versions of that one. --drafts lists instead what is on its way and not published: which bytes,
how far they are, and whose approval is missing.
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import OK
from contextplane.cli.output import Screen, clean
from contextplane.cli.registry.act import at_desk

if TYPE_CHECKING:
    from contextplane.app.registry.view import Listed
    from contextplane.registry.artifact_state import ArtifactState

__all__ = ["add_arguments", "run"]

_SHOWN = 12


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", default="", help="only versions of this")
    parser.add_argument("--drafts", action="store_true", help="what is on its way and not published")


def run(args: Namespace, screen: Screen) -> int:
    from contextplane.app.registry.view import drafts, listed

    with at_desk(args, screen) as desk:
        if args.drafts:
            states = [draft for draft in drafts(desk) if args.id in {"", draft.name.pack_id}]
            return _drafts(states, screen)
        found = listed(desk, args.id)
    widest = max((len(str(one.ref)) for one in found), default=0)
    for one in found:
        screen.entry(str(one.ref), _line(one, widest, screen))
    if not found:
        of = f" of {clean(args.id)}" if args.id else ""
        screen.say(f"No published versions{of}. 'ctx packs --drafts' lists what is on its way.")
    screen.answer({"versions": [_told(one) for one in found]})
    return OK


def _line(one: "Listed", widest: int, screen: Screen) -> str:
    from contextplane.cli.registry.render import STAGE_COLOR

    if one.problem or one.stage is None or one.digest is None:
        return f"{one.ref!s:<{widest}}  " + screen.paint("red", f"[{clean(one.problem)}]")
    stage = screen.paint(STAGE_COLOR[one.stage], f"{one.stage:<10}")
    told = [f"{one.ref!s:<{widest}}", stage, one.digest.hex[:_SHOWN], one.published_at[:10]]
    if one.pinned_in:
        told.append(f"pinned in {', '.join(map(clean, one.pinned_in))}")
    if one.doubtful_in:
        where = ", ".join(map(clean, one.doubtful_in))
        told.append(screen.paint("red", f"must be pinned anew in {where}: its key is revoked"))
    if one.aliases:
        told.append(f"alias {', '.join(map(clean, one.aliases))}")
    if one.open_refreshes and one.stage == "published":  # what is withdrawn is not newly pinned anyway
        told.append(screen.paint("yellow", "must be refreshed"))
    return "  ".join(told)


def _told(one: "Listed") -> dict[str, object]:
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


def _drafts(states: "list[ArtifactState]", screen: Screen) -> int:
    from contextplane.cli.registry.render import STAGE_COLOR

    widest = max((len(str(artifact_state.name)) for artifact_state in states), default=0)
    for state in states:
        stage = screen.paint(STAGE_COLOR[state.stage], f"{state.stage:<8}")
        line = f"{state.name!s:<{widest}}  {stage}  {state.digest}  {_waiting(state, screen)}"
        screen.entry(str(state.digest), line.rstrip())
    if not states:
        screen.say("No drafts. 'ctx lint FILE --record' makes one known.")
    screen.answer(
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


def _waiting(artifact_state: "ArtifactState", screen: Screen) -> str:
    """What a draft waits for."""
    if artifact_state.rejected:
        told = "; ".join(f"rejected as {clean(r.role)}: {clean(r.reason)}" for r in artifact_state.rejected)
        return screen.paint("red", told)
    if artifact_state.missing:
        return f"to be approved as {', '.join(artifact_state.missing)}"
    return {"draft": "did not pass its gates", "reviewed": "to be signed", "signed": "to be published"}.get(
        artifact_state.stage, ""
    )
