"""Prints acts, pins and events of the registry; `ctx log id@X.Y.Z` prints all events of a version."""

from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence

from contextplane.app.registry.mirror import mirrored_history
from contextplane.app.registry.pins import PinResult
from contextplane.app.registry.release import ActResult
from contextplane.app.registry.session import AppendResult
from contextplane.app.registry.view import (
    PINS,
    AliasSet,
    IncidentClosed,
    IncidentOpened,
    RefreshReported,
    RefreshRequired,
    Review,
    VerifiedEvent,
    version_history,
)
from contextplane.cli.exit import OK
from contextplane.cli.keys.show import key_label
from contextplane.cli.output import CommandOutput, clean, format_second
from contextplane.cli.registry.session import registry_session
from contextplane.cli.terminal import page
from contextplane.errors import ContextPlaneError
from contextplane.model.ids import PackRef

__all__ = [
    "STAGE_COLOR",
    "appended_json",
    "event_json",
    "event_lines",
    "golden_text",
    "log_version",
    "note_still_pinned",
    "print_act",
    "print_pin",
]

STAGE_COLOR = {
    "draft": "yellow",
    "linted": "yellow",
    "reviewed": "cyan",
    "signed": "cyan",
    "withdrawn": "dim",
    "published": "green",
    "deprecated": "yellow",
    "revoked": "red",
}

_NEXT = {
    "reviewed": "sign {ref} --key NAME",
    "signed": "publish {ref} --key NAME",
    "published": "pin ENV {ref} --key NAME",
}
"""The next command for an artifact that waits for no reviewer."""


def print_act(
    result: ActResult, output: CommandOutput, *, name: str = "", preview: Mapping[str, object] | None = None
) -> None:
    """Print the stage of an artifact after an act, and what it waits for.

    `name`: how a command names it, if not by its version. `preview`: what was shown before the act.
    """
    output.line(f"{result.ref}  {output.paint(STAGE_COLOR[result.stage], result.stage)}  {result.digest}")
    if result.appended is None:
        output.line("Already done; nothing changed.")
    if result.rejected:
        output.line(f"{output.paint('red', 'Rejected')} as: {', '.join(result.rejected)}")
    if result.missing and result.stage != "withdrawn":
        output.line(f"Missing approvals: {', '.join(result.missing)}")
    if result.golden is not None:
        output.line(_golden_line(result.golden, result.golden_words))
    signed, needed = result.signatures
    if result.stage == "reviewed" and needed > signed:
        output.line(f"Signatures: {signed} of {needed} required.")
    if result.stage in _NEXT and not result.missing:
        output.line(output.paint("dim", f"Next: ctx {_next_command(result, name)}"))
    output.answer(
        {
            "ref": str(result.ref),
            "digest": str(result.digest),
            "stage": result.stage,
            "missing": list(result.missing),
            "rejected": list(result.rejected),
            "signatures": {"given": signed, "needed": needed} if needed else None,
            "changed": result.appended is not None,
            **({"preview": preview} if preview is not None else {}),
            **({"golden": result.golden, "golden_words": result.golden_words} if result.golden is not None else {}),
            **appended_json(result.appended),
        }
    )


def _next_command(result: ActResult, name: str) -> str:
    """Return the next command. Only a published version is always named by its number."""
    text = str(result.ref) if result.stage == "published" or not name else name
    return _NEXT[result.stage].format(ref=text)


def print_pin(
    result: PinResult,
    done: str,
    output: CommandOutput,
    *,
    pinned: bool = True,
    preview: Mapping[str, object] | None = None,
) -> None:
    """Print a pin after an act; `done` is the verb of the sentence, `pinned` whether it is pinned now.

    `preview`: what was shown before the act.
    """
    before = f", instead of {result.before}" if result.before is not None and result.before != result.ref else ""
    overlays = f", with {', '.join(map(str, result.overlays))}" if result.overlays and pinned else ""
    output.line(f"{result.ref} {done} {clean(result.environment)}{before}{overlays}.")
    if result.appended is None:
        output.line("Already done; nothing changed.")
    for overlay in () if pinned else result.overlays:
        away = f"ctx unpin {clean(result.environment)} {result.ref.pack_id} --overlay {overlay.pack_id}"
        output.line(f"{overlay} stays for the version that is pinned next. To remove it, too: {away}")
    for other in result.passed_over:
        output.line(f"Passed over {other.ref}: no new run would get it ({other.code}: {clean(other.reason)}).")
    if result.incidents:
        output.note(f"{result.ref} has an open incident: {', '.join(map(clean, result.incidents))}")
    if result.milliseconds is not None:
        output.line(f"It took {result.milliseconds} ms. {_golden_line(result.golden, result.golden_words)}")
    output.answer(
        {
            "environment": result.environment,
            "ref": str(result.ref),
            "digest": str(result.digest),
            "before": str(result.before) if result.before is not None else None,
            "changed": result.appended is not None,
            "overlays": [str(overlay) for overlay in result.overlays],
            "incidents": result.incidents,
            "passed_over": result.passed_over,
            "milliseconds": result.milliseconds,
            **({"preview": preview} if preview is not None else {}),
            "golden": result.golden,
            "golden_words": result.golden_words,
            **appended_json(result.appended),
        }
    )


def _golden_line(outcome: str | None, words: str) -> str:
    return f"Golden cases: {golden_text(outcome)} ({clean(words)})"


def golden_text(outcome: str | None) -> str:
    """Return the outcome of golden cases in words."""
    return (outcome or "not_run").replace("_", " ")


def note_still_pinned(environments: Sequence[str], ref: PackRef, output: CommandOutput) -> None:
    """Note the environments that still pin a version which takes no new traffic any more."""
    for environment in environments:
        output.note(f"{clean(environment)} pins {ref}: new runs there are refused until it pins another version")


def appended_json(appended: AppendResult | None) -> dict[str, object]:
    """Return the appended events, and the size of the log with them."""
    if appended is None:
        return {"events": [], "log_size": None}
    return {
        "events": [
            {
                "kind": event.kind,
                "stream": event.event.subject,
                "seq": event.event.seq,
                "entry": event.event.entry,
                "at": event.event.at,
            }
            for event in appended.events
        ],
        "log_size": appended.newest.checkpoint.size,
    }


_VERDICT = {"approve": "approved", "reject": "rejected"}
_KINDS = {"rolled_back": "pinned again", "unpinned": "no longer pinned", "refresh_required": "must be refreshed"}
"""Words for events whose name does not say it. A rollback is in the history of the version that is pinned again."""


def log_version(args: Namespace, output: CommandOutput) -> int:
    """Print the history of a version: of its bytes before it was published, of itself, and of its pins."""
    with registry_session(args, output) as session:
        ref = session.named_version(args.ref)
        try:
            mirror, events = None, version_history(session, ref)
            names: Mapping[str, str] = session.keys.names()
        except ContextPlaneError as error:
            mirror = mirrored_history(session, ref) if error.code == "version_not_found" else None
            if mirror is None:
                raise
            events, names = mirror.events, mirror.names
    if output.quiet:
        for event in events:
            output.entry(_place(event), _place(event))
    else:
        lines = [*event_lines(events, names)]
        if mirror is not None:
            lines.append(f"mirrored from {clean(mirror.origin)}, as it was at {mirror.time}; of pins, only the newest")
        page("\n".join(lines), output)
    answer: dict[str, object] = {"ref": str(ref), "events": [event_json(event, names) for event in events]}
    output.answer(answer if mirror is None else {**answer, "mirrored_from": mirror.origin})
    return OK


def event_lines(events: Sequence[VerifiedEvent], names: Mapping[str, str]) -> Iterator[str]:
    """Yield a line for each event: when, by which key, what, and why."""
    columns = [(key_label(event.by.key_id, names), _what(event)) for event in events]
    wide, wider = (max(map(len, column), default=0) for column in zip(*columns, strict=True)) if columns else (0, 0)
    for event, (who, what) in zip(events, columns, strict=True):
        revoked = "  [this key is revoked from before that time]" if event.by.revoked else ""
        yield f"{format_second(event.at)}  {who:<{wide}}  {what:<{wider}}  {clean(event.event.reason)}{revoked}"


def event_json(event: VerifiedEvent, names: Mapping[str, str]) -> dict[str, object]:
    return {
        "kind": event.kind,
        "stream": event.event.subject,
        "seq": event.event.seq,
        "entry": event.event.entry,
        "at": event.event.at,
        "by": event.by.key_id,
        "name": names.get(event.by.key_id),
        "revoked": event.by.revoked,
        "reason": event.event.reason,
        "change": event.change,
    }


def _place(event: VerifiedEvent) -> str:
    """Return the name of an event, as errors have it: its stream, and its number there."""
    return f"{event.event.subject}@{event.event.seq}"


def _what(event: VerifiedEvent) -> str:
    kind, stream = _KINDS.get(event.kind, event.kind.replace("_", " ")), event.event.subject
    if stream.startswith(PINS):
        return f"{kind} in {clean(stream.removeprefix(PINS).partition('/')[0])}"
    match event.change:
        case Review(verdict=verdict, role=role):
            return f"{_VERDICT[verdict]} as {clean(role)}"
        case RefreshReported(action=action, passed=passed):
            return f"{clean(action)} {'passed' if passed else 'failed'}"
        case AliasSet(alias=alias):
            return f"called {clean(alias)}"
        case RefreshRequired(dependency=of) | IncidentOpened(incident=of) | IncidentClosed(incident=of):
            return f"{kind}: {clean(of)}"
    return kind
