"""Prints a compiled context: what the run may do, what shaped it, and what overrides changed.

A line has a head, and words after it. On a terminal the words are wrapped below themselves; in a pipe a line stays one.
"""

from collections.abc import Iterable, Iterator

from contextplane.app.compile.context import CompiledCase, ContextItem, ItemChange, value_at
from contextplane.cli.output import CommandOutput, clean
from contextplane.cli.render.wrapped_line import LineHead, print_wrapped
from contextplane.model.compiled_context import CompiledContext

__all__ = ["one_line", "print_compiled", "print_item_changes", "print_override_effects"]

_LONGEST = 150
_LONGEST_TOOL = 1000
"""The limits of a tool are printed whole: those that are cut off would be read as absent."""

_MOVED_MOST = 40
_BEFORE = 80
"""The length of what an item was. What it is now may be longer."""

_ABSENT = {"gate": "not active", "redaction": "not active"}
"""The words for an item of these kinds that is not in the report; of all others they are `not there`."""

_BAR = 20
_NAME = 10
_WORDS = _NAME + 4
_LIST_MOST = 12
"""How many items of a kind are listed; the others are counted."""


def one_line(text: str, longest: int = _LONGEST) -> str:
    """Return a text that stays on its line, cut if it is longer."""
    shown = clean(text)
    return shown if len(shown) <= longest else f"{shown[: longest - 3]}..."


def print_override_effects(case: CompiledCase, overrides: str, output: CommandOutput) -> None:
    """Print what the overrides changed."""
    output.line(f"moved by {one_line(overrides)}:")
    changes = case.changes
    print_item_changes(changes, "  ", output)
    if case.refused_before:
        output.line(f"  everything: without it, the request is refused with {case.refused_before}")
    elif not changes:
        output.line("  nothing but the hash" if case.hash_changed else "  nothing")


def print_item_changes(changes: Iterable[ItemChange], indent: str, output: CommandOutput) -> None:
    """Print a line for each changed item; very many are counted."""
    items = list(changes)
    for item in items[:_MOVED_MOST]:
        name = f"{item.kind} {clean(item.id)}: "
        print_wrapped(
            LineHead(f"{indent}{_mark(item, output)} {name}", len(indent) + 2 + len(name), len(indent) + 4),
            _change_words(item),
            output,
        )
    if len(items) > _MOVED_MOST:
        output.line(f"{indent}and {len(items) - _MOVED_MOST} more")


def _mark(change: ItemChange, output: CommandOutput) -> str:
    was_inside = change.before is not None and change.before.inside
    is_inside = change.after is not None and change.after.inside
    if was_inside == is_inside:
        return output.paint("yellow", "~")
    return output.paint("green", "+") if is_inside else output.paint("red", "-")


def _change_words(change: ItemChange) -> str:
    return f"{_words(change, change.before, _BEFORE)} -> {_words(change, change.after)}"


def _words(change: ItemChange, item: ContextItem | None, longest: int = _LONGEST) -> str:
    return one_line(item.words, longest) if item is not None else _ABSENT.get(change.kind, "not there")


def print_compiled(case: CompiledCase, items: Iterable[ContextItem], output: CommandOutput) -> None:
    """Print the decision and the request first, then everything in the order in which it was decided."""
    items = tuple(items)
    compiled, ledger = case.context, case.context.context_ledger
    for item in items:
        if item.kind == "decision":
            head = LineHead(f"{output.paint('bold', ledger.pack_ref)}  ", len(ledger.pack_ref) + 2, _NAME)
            print_wrapped(head, one_line(item.words), output, "green" if item.inside else "red")
    _print_line("request", one_line(_request_line(case)), output)
    for kind, name in (("tool", "tools"), ("rule", "rules"), ("gate", "gates"), ("guardrail", "controls")):
        _print_items(name, [item for item in items if item.kind == kind], output)
    redacted = [f"{item.id} ({item.words})" for item in items if item.kind == "redaction" and item.words != "active"]
    idle = [item.id for item in items if item.kind == "redaction" and item.words == "active"]
    _print_line("redacts", clean(", ".join((*redacted, *idle))) or "nothing but secrets", output)
    for kind, name in (("evidence", "evidence"), ("memory", "memory")):
        _print_items(name, [item for item in items if item.kind == kind], output)
    _print_requirements(compiled, items, output)
    _print_notes(compiled, items, output)
    for n, line in enumerate(_bars(case, output)):
        _print_line("" if n else "budget", line, output)
    for warning in compiled.budget_report.warnings:
        _print_line("", output.paint("yellow", clean(warning)), output)
    prompt = f"{ledger.prefix_length:,} bytes of prefix, {ledger.fixed_tokens:,} tokens outside the buckets"
    _print_line("prompt", prompt, output)
    _print_line("hash", ledger.compiled_context_hash, output)


def _request_line(case: CompiledCase) -> str:
    """Return the intent, the role of the user, and what the run may do at most."""
    role = value_at(case.value, "/run_context/user/role")
    who = f"by {role}" if isinstance(role, str) else "by a user without a role"
    ceiling = value_at(case.value, "/run_context/safety_mode")
    return f"{value_at(case.value, '/request/input/intent')} {who}; the run's ceiling is {ceiling}"


def _print_items(name: str, items: list[ContextItem], output: CommandOutput) -> None:
    """Print the items that are in, then those that are not, each with its words."""
    shown = [item for item in items if item.inside] + [item for item in items if not item.inside]
    if not shown:
        _print_line(name, "none", output)
    names = _short_names(shown)
    width = max(map(len, names[:_LIST_MOST]), default=0)
    for n, (item, short_name) in enumerate(zip(shown[:_LIST_MOST], names, strict=False)):
        mark = output.paint("green", "+") if item.inside else output.paint("dim", "-")
        head = LineHead(f"{'' if n else name:<{_NAME}}{mark} {short_name:<{width}}  ", _NAME + width + 4, _WORDS)
        print_wrapped(head, one_line(item.words, _LONGEST_TOOL if item.kind == "tool" else _LONGEST), output)
    if len(shown) > _LIST_MOST:
        others = shown[_LIST_MOST:]
        inside = sum(item.inside for item in others)
        _print_line("", f"and {len(others)} more: {inside} in, {len(others) - inside} out (--json lists them)", output)


def _short_names(items: list[ContextItem]) -> list[str]:
    """Return the name of each item: a rule without its bundle, unless two bundles have one of that name."""
    last = [item.id.rpartition("#")[2] for item in items]
    return [
        clean(name if item.kind == "rule" and last.count(name) == 1 else item.id)
        for item, name in zip(items, last, strict=True)
    ]


def _print_requirements(compiled: CompiledContext, items: Iterable[ContextItem], output: CommandOutput) -> None:
    gate = compiled.evidence_gate
    if gate is None or not gate.required:
        return
    color, may = _may_commit(compiled, commit=gate.commit_allowed)
    _print_line("decision", f"{output.paint(color, may)}; the evidence that it requires is {gate.sufficiency}", output)
    for item in items:
        if item.kind == "requirement":
            mark = output.paint("green", "+") if item.inside else output.paint("yellow", "-")
            name = clean(item.id)
            print_wrapped(
                LineHead(f"{'':{_NAME}}{mark} {name}: ", _NAME + len(name) + 4, _WORDS), one_line(item.words), output
            )


def _print_notes(compiled: CompiledContext, items: Iterable[ContextItem], output: CommandOutput) -> None:
    """Print the notes of the stages, such as an unknown signal; without those on gates, which have lines."""
    idle = tuple(f"{item.id} is not active" for item in items if item.kind == "gate" and not item.inside)
    notes = [(stage.stage, note) for stage in compiled.context_ledger.stages for note in stage.notes]
    lines = [f"{stage}: {note}" for stage, note in notes if not note.startswith(idle)]
    for n, line in enumerate(lines[:_LIST_MOST]):
        head = LineHead(f"{'' if n else 'noticed':<{_NAME}}", _NAME, _WORDS)
        print_wrapped(head, one_line(line), output, "yellow")
    if len(lines) > _LIST_MOST:
        _print_line("", f"and {len(lines) - _LIST_MOST} more (--json lists them)", output)


def _may_commit(compiled: CompiledContext, *, commit: bool) -> tuple[str, str]:
    """Return whether a decision may be committed, with its colour. Policy comes first, approvals last."""
    verdict = compiled.policy_decision
    if verdict is not None and not verdict.allowed:
        return "red", "denied by policy"
    if not commit:
        return "yellow", "not yet"
    waits = ", ".join(map(clean, compiled.runtime_controls.approval_gates_active))
    return ("yellow", f"may be committed after {waits}") if waits else ("green", "may be committed")


def _bars(case: CompiledCase, output: CommandOutput) -> Iterator[str]:
    report = case.context.budget_report
    for bucket, allotted in report.tokens_allocated.items():
        dropped = report.dropped_block_ids.get(bucket, ())
        omitted = f"  dropped {_first_names(dropped)}" if dropped else ""
        yield (
            _bar(bucket, report.tokens_used_by_bucket[bucket], allotted, "yellow" if dropped else "cyan", output)
            + omitted
        )
    total = value_at(case.value, "/run_context/run_budget/total_tokens")
    if isinstance(total, int):
        over = any(omission.reason == "over_total_budget" for omission in case.context.manifests.omission_manifest)
        yield _bar("total", report.tokens_used_at_compile, total, "yellow" if over else "cyan", output)


def _bar(name: str, used: int, allotted: int, color: str, output: CommandOutput) -> str:
    filled = min(_BAR, -(-used * _BAR // allotted)) if allotted else _BAR * (used > 0)
    return f"{name:<8} {output.paint(color, '#' * filled)}{'.' * (_BAR - filled)} {used:>6,} of {allotted:,}"


def _first_names(names: tuple[str, ...]) -> str:
    return ", ".join(names[:_LIST_MOST]) + (f" and {len(names) - _LIST_MOST} more" if len(names) > _LIST_MOST else "")


def _print_line(name: str, text: str, output: CommandOutput) -> None:
    output.line(f"{name:<{_NAME}}{text}")
