"""List published context packs, overlays and decision catalogs.

Each version is listed with its state, its pins and its aliases. ID lists the versions of one pack. --drafts lists
unpublished drafts instead: their digests, their states and the approvals that are missing.

"pinned, not served" means that an environment pins the version and no new run gets it there, with the code of the
refusal. It is about the version: the age of the registry and its witnesses are not looked at. A version that cannot be
read is listed with its problem. The exit status is that of the first problem. A deprecation or a revocation is a
decision, and no problem.

Versions of other stores ('ctx import', 'ctx pull') follow, with the store that they are from and the day up to which
they are known.

Examples:
  ctx packs             list every published version
  ctx packs support     list the versions of one pack
  ctx packs --drafts    list what is not published yet
"""

from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from contextplane.cli.exit import EXIT_OF, OK
from contextplane.cli.output import CommandOutput, clean
from contextplane.cli.registry.session import registry_session

if TYPE_CHECKING:
    from contextplane.app.registry.view import ArtifactState, VersionSummary

__all__ = ["add_arguments", "run"]

_SHOWN = 12


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("id", metavar="ID", nargs="?", default="", help="list only versions of this pack")
    parser.add_argument("--drafts", action="store_true", help="list unpublished drafts")


def run(args: Namespace, output: CommandOutput) -> int:
    from contextplane.app.registry.mirror import list_mirrors
    from contextplane.app.registry.view import list_drafts, list_versions
    from contextplane.cli.registry.mirror import mirror_json, mirror_line

    with registry_session(args, output) as session:
        if args.drafts:
            states = [draft for draft in list_drafts(session) if args.id in {"", draft.name.pack_id}]
            return _list_drafts(states, output)
        versions, mirrors = list_versions(session, args.id), list_mirrors(session, args.id)
    refs = [version.ref for version in versions] + [mirror.ref for mirror in mirrors]
    widest = max(map(len, map(str, refs)), default=0)
    for version in versions:
        output.entry(str(version.ref), _line(version, widest, output), clean(version.problem))
    for mirror in mirrors:
        output.entry(str(mirror.ref), mirror_line(mirror, widest, output), clean(mirror.problem))
    if not refs:
        of = f" of {clean(args.id)}" if args.id else ""
        output.line(f"No published versions{of}. 'ctx packs --drafts' lists drafts.")
    output.answer(
        {
            "versions": [_version_json(version) for version in versions],
            "mirrored": [mirror_json(mirror) for mirror in mirrors],
        }
    )
    families = [version.family for version in versions] + [mirror.family for mirror in mirrors]
    return next((EXIT_OF[family] for family in families if family is not None), OK)


def _line(version: "VersionSummary", widest: int, output: CommandOutput) -> str:
    from contextplane.cli.registry.render import STAGE_COLOR

    if version.problem or version.stage is None or version.digest is None:
        return f"{version.ref!s:<{widest}}  " + output.paint("red", f"[{clean(version.problem)}]")
    stage = output.paint(STAGE_COLOR[version.stage], f"{version.stage:<10}")
    columns = [f"{version.ref!s:<{widest}}", stage, version.digest.hex[:_SHOWN], version.published_at[:10]]
    unserved = dict(version.unserved_in)
    served = [environment for environment in version.pinned_in if environment not in unserved]
    if served:
        columns.append(f"pinned in {', '.join(map(clean, served))}")
    if unserved:
        where = ", ".join(f"{clean(environment)} ({code})" for environment, code in unserved.items())
        columns.append(output.paint("red", f"pinned, not served: {where}"))
    if version.doubtful_in:
        where = ", ".join(map(clean, version.doubtful_in))
        columns.append(output.paint("red", f"must be pinned again in {where}: its key is revoked"))
    if version.aliases:
        columns.append(f"alias {', '.join(map(clean, version.aliases))}")
    if version.open_refreshes and version.stage == "published":  # what is withdrawn is not newly pinned anyway
        columns.append(output.paint("yellow", "must be refreshed"))
    return "  ".join(columns)


def _version_json(version: "VersionSummary") -> dict[str, object]:
    return {
        "ref": str(version.ref),
        "kind": version.kind,
        "stage": version.stage,
        "digest": str(version.digest) if version.digest else None,
        "issuer": version.issuer,
        "published_at": version.published_at,
        "pinned_in": version.pinned_in,
        "doubtful_in": version.doubtful_in,
        "unserved_in": [{"environment": environment, "code": code} for environment, code in version.unserved_in],
        "aliases": version.aliases,
        "open_refreshes": version.open_refreshes,
        "problem": version.problem or None,
    }


def _list_drafts(states: "list[ArtifactState]", output: CommandOutput) -> int:
    from contextplane.cli.registry.render import STAGE_COLOR

    widest = max((len(str(state.name)) for state in states), default=0)
    for state in states:
        stage = output.paint(STAGE_COLOR[state.stage], f"{state.stage:<8}")
        line = f"{state.name!s:<{widest}}  {stage}  {state.digest}  {_next_step(state, output)}"
        output.entry(str(state.digest), line.rstrip())
    if not states:
        output.line("No drafts. 'ctx lint FILE --record' records one.")
    output.answer(
        {
            "drafts": [
                {
                    "ref": str(state.name),
                    "digest": str(state.digest),
                    "kind": state.kind,
                    "stage": state.stage,
                    "author": state.author,
                    "missing": state.missing,
                    "rejected_by": [
                        {"role": review.role, "key_id": review.key_id, "reason": review.reason}
                        for review in state.rejected
                    ],
                }
                for state in states
            ]
        }
    )
    return OK


def _next_step(state: "ArtifactState", output: CommandOutput) -> str:
    """Return what a draft waits for."""
    if state.rejected:
        reasons = "; ".join(f"rejected as {clean(review.role)}: {clean(review.reason)}" for review in state.rejected)
        return output.paint("red", reasons)
    if state.missing:
        return f"missing approvals: {', '.join(state.missing)}"
    return {"draft": "did not pass its gates", "reviewed": "not signed yet", "signed": "not published yet"}.get(
        state.stage, ""
    )
