"""A compiled context on one screen: what the run may do, what shaped it, what was kept from it."""

from collections.abc import Iterable, Iterator

from contextplane.app.account import Item, Moved, account_of
from contextplane.app.compiling import Compiled
from contextplane.cli.screen import Screen, clean
from contextplane.model.compiled_context import CompiledContext

__all__ = ["moved_lines", "tell", "tell_moved"]

_BAR = 20
_NAME = 10
_MOST = 12
"""So many of a kind are listed; the rest is counted."""

_MOST_MOVED = 40
_LONGEST = 150


def tell(compiled: CompiledContext, screen: Screen) -> None:
    """All of it, in the order in which it was decided."""
    items = account_of(compiled)
    ledger = compiled.context_ledger
    decided = [one for one in items if one.kind == "decision"]
    verdict = "".join(screen.paint("green" if one.inside else "red", _short(one.words)) for one in decided)
    screen.say(f"{screen.paint('bold', ledger.pack_ref)}  {verdict}")
    for kind, name in (("tool", "tools"), ("rule", "rules"), ("gate", "gates"), ("guardrail", "controls")):
        _listed(name, [one for one in items if one.kind == kind], screen)
    _line("redacts", ", ".join(compiled.runtime_controls.redaction_rules_active) or "nothing", screen)
    for kind, name in (("evidence", "evidence"), ("memory", "memory")):
        _listed(name, [one for one in items if one.kind == kind], screen)
    _requirements(compiled, items, screen)
    for n, line in enumerate(_bars(compiled, screen)):
        _line("" if n else "budget", line, screen)
    for warning in compiled.budget_report.warnings:
        _line("", screen.paint("yellow", clean(warning)), screen)
    _line("prompt", f"{ledger.prefix_length} bytes of prefix, {ledger.fixed_tokens} tokens outside the buckets", screen)
    _line("hash", ledger.compiled_context_hash, screen)


def tell_moved(found: Compiled, knobs: str, screen: Screen) -> None:
    """What the knobs moved."""
    screen.say(f"moved by {_short(knobs)}:")
    lines = list(moved_lines(found.moved, screen))
    for line in lines:
        screen.say(f"  {line}")
    if found.refused_before:
        screen.say(f"  everything: without that, it is refused with {found.refused_before}")
    elif not lines:
        screen.say("  nothing but the hash" if found.hash_moved else "  nothing")


def moved_lines(found: Iterable[Moved], screen: Screen) -> Iterator[str]:
    """A line for each thing that is otherwise; very many are counted."""
    things = list(found)
    for one in things[:_MOST_MOVED]:
        yield f"{_mark(one, screen)} {one.kind} {clean(one.id)}: {_short(_change(one))}"
    if len(things) > _MOST_MOVED:
        yield f"and {len(things) - _MOST_MOVED} more"


def _mark(one: Moved, screen: Screen) -> str:
    was, is_ = one.before is not None and one.before.inside, one.after is not None and one.after.inside
    if was == is_:
        return screen.paint("yellow", "~")
    return screen.paint("green", "+") if is_ else screen.paint("red", "-")


def _change(one: Moved) -> str:
    was = one.before.words if one.before is not None else "not there"
    return f"{was} -> {one.after.words if one.after is not None else 'not there'}"


def _listed(name: str, items: list[Item], screen: Screen) -> None:
    """Those that are in, then those that are not, each with its words."""
    shown = [one for one in items if one.inside] + [one for one in items if not one.inside]
    if not shown:
        _line(name, "none", screen)
    width = max((len(clean(one.id)) for one in shown[:_MOST]), default=0)
    for n, one in enumerate(shown[:_MOST]):
        mark = screen.paint("green", "+") if one.inside else screen.paint("dim", "-")
        _line("" if n else name, f"{mark} {clean(one.id):<{width}}  {_short(one.words)}".rstrip(), screen)
    if len(shown) > _MOST:
        rest = shown[_MOST:]
        inside = sum(one.inside for one in rest)
        _line("", f"and {len(rest)} more: {inside} in, {len(rest) - inside} out (--json lists them)", screen)


def _requirements(compiled: CompiledContext, items: Iterable[Item], screen: Screen) -> None:
    gate = compiled.evidence_gate
    if gate is None or not gate.required:
        return
    may = screen.paint("green", "may be committed") if gate.commit_allowed else screen.paint("yellow", "not yet")
    _line("decision", f"{may}: the evidence that it requires is {gate.sufficiency}", screen)
    for one in items:
        if one.kind == "requirement":
            mark = screen.paint("green", "+") if one.inside else screen.paint("yellow", "-")
            _line("", f"{mark} {clean(one.id)}: {_short(one.words)}", screen)


def _bars(compiled: CompiledContext, screen: Screen) -> Iterator[str]:
    report = compiled.budget_report
    for bucket, allotted in report.tokens_allocated.items():
        used = report.tokens_used_by_bucket[bucket]
        filled = min(_BAR, -(-used * _BAR // allotted)) if allotted else _BAR * (used > 0)
        dropped = report.dropped_block_ids.get(bucket, ())
        told = f"  dropped {_few(dropped)}" if dropped else ""
        bar = screen.paint("yellow" if dropped else "cyan", "#" * filled) + "." * (_BAR - filled)
        yield f"{bucket:<8} {bar} {used:>6,} of {allotted:,}{told}"


def _few(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_MOST]) + (f" and {len(names) - _MOST} more" if len(names) > _MOST else "")


def _line(name: str, text: str, screen: Screen) -> None:
    screen.say(f"{name:<{_NAME}}{text}")


def _short(text: str) -> str:
    shown = clean(text)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 3]}..."
