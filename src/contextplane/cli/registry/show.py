"""`ctx show id@X.Y.Z`: layers, state, signatures, reviews, gates, pins, history."""

from argparse import Namespace
from collections.abc import Iterator, Mapping

from contextplane.app.registry.view import Shown, shown
from contextplane.cli.exit import OK
from contextplane.cli.keys.show import called
from contextplane.cli.output import Screen, clean, counted, second
from contextplane.cli.pager import page
from contextplane.cli.registry.act import at_desk
from contextplane.cli.registry.render import STAGE_COLOR, event_lines, told_event, told_golden
from contextplane.model.timestamp import Timestamp

__all__ = ["show"]

_KIND = {"context_pack": "context pack", "decision_catalog": "decision catalog"}


def show(args: Namespace, screen: Screen) -> int:
    with at_desk(args, screen) as desk:
        found, names = shown(desk, desk.named_version(args.ref)), desk.keys.names()
    if screen.json:
        screen.answer(_answer(found, names))
    else:
        text = "\n".join(_lines(found, names, screen))
        screen.entry(str(found.ref), text) if screen.quiet else page(text, screen)
    return OK


def _lines(found: Shown, names: Mapping[str, str], screen: Screen) -> Iterator[str]:
    version = found.version
    yield f"{screen.paint('bold', str(found.ref))}  {_KIND.get(found.kind, found.kind)} of {clean(found.issuer)}"
    yield f"digest      {found.digest}"
    why = f": {clean(version.reason)}" if version is not None and version.reason else ""
    yield f"state       {screen.paint(STAGE_COLOR[found.stage], found.stage)}{why}"
    if version is not None and version.published_at is not None:
        doubt = screen.paint("red", ", which is revoked from before then on") if version.doubtful else ""
        yield f"published   {second(version.published_at)} by {called(version.published_by, names)}{doubt}"
    yield f"signed by   {', '.join(called(one, names) for one in found.signed_by) or 'nobody'}"
    wide = max((len(called(review.key_id, names)) for review in found.artifact.reviews), default=0)
    for n, one in enumerate(found.artifact.reviews):
        head = "reviews" if n == 0 else ""
        void = "" if one.counts else screen.paint("yellow", "  does not count")
        who = called(one.key_id, names)
        yield f"{head:<11} {one.role:<13} {one.verdict:<8} {who:<{wide}}  {clean(one.reason)}{void}"
    if found.artifact.missing and version is None:
        yield f"{'missing':<11} {', '.join(found.artifact.missing)}"
    for n, catalog in enumerate(found.catalogs):
        yield f"{'catalogs' if n == 0 else '':<11} {catalog.id}@{catalog.version}  {catalog.digest}"
    yield from _gates(found, screen)
    yield from _open(found, screen)
    widest = max((len(clean(where.environment)) for where in found.pins), default=0)
    for n, where in enumerate(found.pins):
        since = f"since {second(Timestamp.parse(where.at))} by {called(where.by, names)}"
        doubt = screen.paint("red", ", which is revoked from before then on") if where.doubtful else ""
        yield f"{'pinned in' if n == 0 else '':<11} {clean(where.environment):<{widest}}  {since}{doubt}"
    if found.aliases:
        yield f"{'aliases':<11} {', '.join(map(clean, found.aliases))}"
    parts = "layers" if found.kind == "context_pack" else "parts"
    for n, (name, told) in enumerate(found.layers):
        yield f"{parts if n == 0 else '':<11} {clean(name):<18} {clean(told)}".rstrip()
    yield "history"
    yield from (f"  {line}" for line in event_lines(found.history, names))


def _gates(found: Shown, screen: Screen) -> Iterator[str]:
    gates = found.gates
    if gates is None:
        return
    verdict = screen.paint("green", "passed") if gates.passed else screen.paint("red", "refused")
    counts = f"{counted(gates.errors, 'error')}, {counted(gates.warnings, 'warning')}"
    counts += f", {gates.unknown} that could not be told" if gates.unknown else ""
    yield f"gates       {verdict}: {counts}; golden cases: {told_golden(gates.golden)}"


def _open(found: Shown, screen: Screen) -> Iterator[str]:
    if found.version is None:
        return
    for refresh in found.version.open_refreshes:
        waiting = ", ".join(refresh.outstanding)
        yield f"refresh     {screen.paint('yellow', refresh.trigger)} ({clean(refresh.dependency)}): {waiting}"
    for incident in found.version.open_incidents:
        yield f"incident    {screen.paint('red', clean(incident))}"


def _answer(found: Shown, names: Mapping[str, str]) -> dict[str, object]:
    version, gates = found.version, found.gates
    return {
        "ref": str(found.ref),
        "digest": str(found.digest),
        "kind": found.kind,
        "issuer": found.issuer,
        "stage": found.stage,
        "reason": version.reason if version is not None else "",
        "published_at": str(version.published_at) if version is not None else None,
        "published_by": version.published_by if version is not None else None,
        "doubtful": version.doubtful if version is not None else False,
        "author": found.artifact.author,
        "signed_by": found.signed_by,
        "reviews": [
            {
                "role": review.role,
                "verdict": review.verdict,
                "key_id": review.key_id,
                "at": review.at,
                "reason": review.reason,
                "counts": review.counts,
            }
            for review in found.artifact.reviews
        ],
        "missing": found.artifact.missing,
        "catalogs": [
            {"ref": f"{catalog.id}@{catalog.version}", "digest": catalog.digest} for catalog in found.catalogs
        ],
        "gates": gates,
        "refreshes": [
            {
                "trigger": refresh.trigger,
                "dependency": refresh.dependency,
                "outstanding": refresh.outstanding,
            }
            for refresh in (version.open_refreshes if version is not None else ())
        ],
        "incidents": version.open_incidents if version is not None else (),
        "pins": found.pins,
        "aliases": found.aliases,
        "layers": dict(found.layers),
        "history": [told_event(event, names) for event in found.history],
    }
