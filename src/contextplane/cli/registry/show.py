"""`ctx show id@X.Y.Z`: prints the state, signatures, reviews, gates, pins and history of a version."""

from argparse import Namespace
from collections.abc import Iterator, Mapping

from contextplane.app.registry.mirror import MirroredVersion, find_mirror
from contextplane.app.registry.view import VersionDetails, show_version
from contextplane.cli.exit import EXIT_OF, OK
from contextplane.cli.keys.show import key_label
from contextplane.cli.output import CommandOutput, clean, format_second, quantity
from contextplane.cli.registry.render import STAGE_COLOR, event_json, event_lines, golden_text
from contextplane.cli.registry.session import registry_session
from contextplane.cli.terminal import page
from contextplane.errors import ContextPlaneError
from contextplane.model.timestamp import Timestamp

__all__ = ["show"]

_KIND = {"context_pack": "context pack", "decision_catalog": "decision catalog"}


def show(args: Namespace, output: CommandOutput) -> int:
    with registry_session(args, output) as session:
        ref = session.named_version(args.ref)
        try:
            details, names = show_version(session, ref), session.keys.names()
        except ContextPlaneError as error:
            mirror = find_mirror(session, ref) if error.code == "version_not_found" else None
            if mirror is None:
                raise
            return _show_mirror(mirror, output)
    if output.json:
        output.answer(_answer(details, names))
    else:
        text = "\n".join(_lines(details, names, output))
        output.entry(str(details.ref), text) if output.quiet else page(text, output)
    return next((EXIT_OF[pin.family] for pin in details.pins if pin.family is not None and pin.is_broken), OK)


def _show_mirror(mirror: MirroredVersion, output: CommandOutput) -> int:
    """Print a version of another store, as far as its bundle shows it."""
    from contextplane.cli.registry.mirror import mirror_json, mirror_lines

    text = "\n".join(mirror_lines(mirror, output))
    output.entry(str(mirror.ref), text) if output.quiet or output.json else page(text, output)
    output.answer(mirror_json(mirror))
    return OK if mirror.family is None else EXIT_OF[mirror.family]


def _lines(details: VersionDetails, names: Mapping[str, str], output: CommandOutput) -> Iterator[str]:
    version = details.version
    kind = _KIND.get(details.kind, details.kind)
    yield f"{output.paint('bold', str(details.ref))}  {kind} of {clean(details.issuer)}"
    yield f"digest      {details.digest}"
    why = f": {clean(version.reason)}" if version is not None and version.reason else ""
    yield f"state       {output.paint(STAGE_COLOR[details.stage], details.stage)}{why}"
    if version is not None and version.published_at is not None:
        doubt = output.paint("red", ", which is revoked from before that time") if version.doubtful else ""
        yield f"published   {format_second(version.published_at)} by {key_label(version.published_by, names)}{doubt}"
    yield f"signed by   {', '.join(key_label(key_id, names) for key_id in details.signed_by) or 'nobody'}"
    wide = max((len(key_label(review.key_id, names)) for review in details.artifact.reviews), default=0)
    for n, review in enumerate(details.artifact.reviews):
        head = "reviews" if n == 0 else ""
        void = "" if review.counts else output.paint("yellow", "  does not count")
        who = key_label(review.key_id, names)
        yield f"{head:<11} {review.role:<13} {review.verdict:<8} {who:<{wide}}  {clean(review.reason)}{void}"
    if details.artifact.missing and version is None:
        yield f"{'missing':<11} {', '.join(details.artifact.missing)}"
    for n, catalog in enumerate(details.catalogs):
        yield f"{'catalogs' if n == 0 else '':<11} {catalog.id}@{catalog.version}  {catalog.digest}"
    yield from _gate_lines(details, output)
    yield from _open_lines(details, output)
    widest = max((len(clean(pin.environment)) for pin in details.pins), default=0)
    for n, pin in enumerate(details.pins):
        since = f"since {format_second(Timestamp.parse(pin.at))} by {key_label(pin.by, names)}"
        doubt = output.paint("red", ", which is revoked from before that time") if pin.doubtful else ""
        lost = output.paint("red", f", not served ({pin.unserved})") if pin.unserved and not pin.doubtful else ""
        yield f"{'pinned in' if n == 0 else '':<11} {clean(pin.environment):<{widest}}  {since}{doubt}{lost}"
    if details.aliases:
        yield f"{'aliases':<11} {', '.join(map(clean, details.aliases))}"
    parts = "layers" if details.kind == "context_pack" else "parts"
    for n, (name, summary) in enumerate(details.layers):
        yield f"{parts if n == 0 else '':<11} {clean(name):<18} {clean(summary)}".rstrip()
    yield "history"
    yield from (f"  {line}" for line in event_lines(details.history, names))


def _gate_lines(details: VersionDetails, output: CommandOutput) -> Iterator[str]:
    gates = details.gates
    if gates is None:
        return
    verdict = output.paint("green", "passed") if gates.passed else output.paint("red", "refused")
    counts = f"{quantity(gates.errors, 'error')}, {quantity(gates.warnings, 'warning')}"
    counts += f", {gates.unknown} skipped" if gates.unknown else ""
    yield f"gates       {verdict}: {counts}; golden cases: {golden_text(gates.golden)}"


def _open_lines(details: VersionDetails, output: CommandOutput) -> Iterator[str]:
    if details.version is None:
        return
    for refresh in details.version.open_refreshes:
        waiting = ", ".join(refresh.outstanding)
        yield f"refresh     {output.paint('yellow', refresh.trigger)} ({clean(refresh.dependency)}): {waiting}"
    for incident in details.version.open_incidents:
        yield f"incident    {output.paint('red', clean(incident))}"


def _answer(details: VersionDetails, names: Mapping[str, str]) -> dict[str, object]:
    version, gates = details.version, details.gates
    return {
        "ref": str(details.ref),
        "digest": str(details.digest),
        "kind": details.kind,
        "issuer": details.issuer,
        "stage": details.stage,
        "reason": version.reason if version is not None else "",
        "published_at": str(version.published_at) if version is not None else None,
        "published_by": version.published_by if version is not None else None,
        "doubtful": version.doubtful if version is not None else False,
        "author": details.artifact.author,
        "signed_by": details.signed_by,
        "reviews": [
            {
                "role": review.role,
                "verdict": review.verdict,
                "key_id": review.key_id,
                "at": review.at,
                "reason": review.reason,
                "counts": review.counts,
            }
            for review in details.artifact.reviews
        ],
        "missing": details.artifact.missing,
        "catalogs": [
            {"ref": f"{catalog.id}@{catalog.version}", "digest": catalog.digest} for catalog in details.catalogs
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
        "pins": [
            {
                "environment": pin.environment,
                "at": pin.at,
                "by": pin.by,
                "doubtful": pin.doubtful,
                "unserved": pin.unserved,
            }
            for pin in details.pins
        ],
        "aliases": details.aliases,
        "layers": dict(details.layers),
        "history": [event_json(event, names) for event in details.history],
    }
